#include "agent/acpx/acpx_line.h"

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <utility>

#include "json/json_fields.h"
#include "json/json_parse.h"

namespace clawdforge {
namespace json = boost::json;

namespace {

// What a client says to an agent. Whatever else asks is the agent.
constexpr std::array<std::string_view, 15> kClientMethods = {
    "initialize",       "authenticate",      "logout",
    "session/new",      "session/load",      "session/resume",
    "session/list",     "session/fork",      "session/close",
    "session/delete",   "session/prompt",    "session/cancel",
    "session/set_mode", "session/set_model", "session/set_config_option"};
constexpr std::string_view kCancelRequest = "$/cancel_request";  // either may say so
// Requests of an agent that are open at once; one more makes us forget all.
constexpr std::size_t kAcpxRequestsMax = 1024;

std::string string_in(const json::object& object, std::string_view key) {
  return std::string(text_in(object, key).value_or(""));
}

std::optional<json::value> object_of(std::string_view line) {
  auto value = parse_json(line, kAgentJsonDepthMax);
  if (!value || !value->is_object()) return std::nullopt;
  return value;
}

AcpxFault fault_of(const json::object& error) {
  AcpxFault fault;
  const json::value* code = error.if_contains("code");
  if (code != nullptr && code->is_int64()) fault.code = code->get_int64();
  fault.message = string_in(error, "message");
  if (const json::object* about = object_in(error, "data")) {
    fault.acpx_code = string_in(*about, "acpxCode");
    fault.detail_code = string_in(*about, "detailCode");
  }
  return fault;
}

std::vector<AcpOption> options_in(const json::object& object, std::string_view key) {
  std::vector<AcpOption> options;
  const json::array* list = array_in(object, key);
  if (list == nullptr) return options;
  for (const json::value& entry : *list) {
    const json::object* option = entry.if_object();
    if (option == nullptr) continue;
    options.push_back({.id = string_in(*option, "id"),
                       .category = string_in(*option, "category"),
                       .current = string_in(*option, "currentValue"),
                       .values = {}});
  }
  return options;
}

// Of a line that is known to be an object: what acp_message() does not look at.
AcpxFault fault_in(std::string_view line) {
  const auto value = object_of(line);
  if (!value) return {};
  const json::object* error = object_in(value->get_object(), "error");
  return error == nullptr ? AcpxFault{} : fault_of(*error);
}

std::string session_id_in(std::string_view line) {
  const auto value = object_of(line);
  if (!value) return {};
  const json::object* params = object_in(value->get_object(), "params");
  return params == nullptr ? "" : string_in(*params, "sessionId").substr(0, kAgentIdBytesMax);
}

// The option that was chosen; none: cancelled, or an error.
std::optional<std::string> choice_in(std::string_view line) {
  const auto value = object_of(line);
  if (!value) return std::nullopt;
  const json::object* result = object_in(value->get_object(), "result");
  const json::object* outcome = result == nullptr ? nullptr : object_in(*result, "outcome");
  if (outcome == nullptr) return std::nullopt;
  const auto option = text_in(*outcome, "optionId");
  if (!option) return std::nullopt;
  return std::string(*option);
}

}  // namespace

std::optional<AcpxAnswer> acpx_answer(std::string_view line) {
  const auto value = object_of(line);
  if (!value) return std::nullopt;
  const json::object& object = value->get_object();
  AcpxAnswer answer;
  if (const json::object* error = object_in(object, "error")) {
    answer.fault = fault_of(*error);
    return answer;
  }
  answer.action = string_in(object, "action");
  answer.record_id = string_in(object, "acpxRecordId");
  answer.is_created = is_true_in(object, "created");
  answer.is_cancelled = is_true_in(object, "cancelled");
  answer.options = options_in(object, "configOptions");
  if (const json::object* state = object_in(object, "acpx")) {
    answer.options = options_in(*state, "config_options");
  }
  if (answer.action.empty() && answer.record_id.empty()) return std::nullopt;
  return answer;
}

AcpxTraffic::Heard AcpxTraffic::take(std::string_view line) {
  auto message = acp_message(std::string(line));
  if (!message) return {.kind = Kind::no_object, .message = {}, .fault = {}, .session_id = {}};
  if (message->kind == AcpKind::response) return take_response(std::move(*message), line);
  return take_call(std::move(*message), line);
}

AcpxTraffic::Heard AcpxTraffic::take_call(AcpMessage message, std::string_view line) {
  Heard heard;
  if (message.method == kCancelRequest) return heard;
  // Once the agent has been asked, acpx asks nothing more: an agent that uses such a name
  // does not end its turn by it.
  const bool is_client = !is_asked_ || message.kind == AcpKind::notification;
  if (is_client && std::ranges::find(kClientMethods, message.method) != kClientMethods.end()) {
    if (message.method == "initialize") initialize_id_ = message.id;
    if (message.method == "session/load" || message.method == "session/resume") {
      heard.kind = Kind::loading;
    } else if (message.method == "session/new") {
      heard.kind = Kind::beginning;
    } else if (message.method == "session/prompt") {
      heard.kind = Kind::asked;
      heard.session_id = session_id_in(line);
      prompt_id_ = message.id;
      is_asked_ = true;
    }
    return heard;
  }
  if (message.kind == AcpKind::request) {
    if (message.id.size() > kAgentIdBytesMax) {
      heard.kind = Kind::bad_id;
      return heard;
    }
    if (questions_.size() + others_.size() >= kAcpxRequestsMax) others_.clear();
    if (message.question && questions_.size() < kAcpxRequestsMax &&
        !questions_.contains(message.id) &&
        question_bytes_ + message.json.size() <= kAcpxQuestionBytesMax) {
      question_bytes_ += message.json.size();
      const std::string id = message.id;
      questions_.emplace(id, std::move(message));  // told with its answer, which follows
    } else {
      others_.insert(message.id);
    }
    return heard;
  }
  heard.kind = Kind::event;
  heard.message = std::move(message);
  return heard;
}

// Both sides number their requests from zero. An agent waits for its answer before it ends
// its turn, so a response that could be either is acpx's, unless it ends a turn.
AcpxTraffic::Heard AcpxTraffic::take_response(AcpMessage message, std::string_view line) {
  Heard heard;
  const bool is_stop = message.result && !message.result->stop_reason.empty();
  if (message.id == "null" && message.error) {
    heard.kind = Kind::fault;
    heard.fault = fault_in(line);
  } else if (is_stop && !is_over_) {
    is_over_ = true;
    heard.kind = Kind::end;
    heard.message = std::move(message);
  } else if (auto asked = questions_.extract(message.id)) {
    heard.kind = Kind::event;
    heard.message = std::move(asked.mapped());
    question_bytes_ -= heard.message.json.size();
    if (auto& question = heard.message.question) {
      question->is_answered = true;
      question->answer = choice_in(line);
    }
  } else if (others_.erase(message.id) > 0) {
    heard.kind = Kind::nothing;
  } else if (is_asked_ && !is_over_ && message.id == prompt_id_) {
    is_over_ = true;
    heard.kind = Kind::end;
    heard.message = std::move(message);
  } else if (message.id == initialize_id_ && message.result) {
    heard.kind = Kind::opening;
    heard.message = std::move(message);
  }
  return heard;
}

std::vector<AcpMessage> AcpxTraffic::take_questions() {
  std::vector<AcpMessage> questions;
  question_bytes_ = 0;
  for (auto& [id, message] : std::exchange(questions_, {})) {
    if (message.question) message.question->is_answered = true;
    questions.push_back(std::move(message));
  }
  return questions;
}

}  // namespace clawdforge
