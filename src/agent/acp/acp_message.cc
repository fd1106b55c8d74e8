#include "agent/acp/acp_message.h"

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <boost/json/monotonic_resource.hpp>

#include "agent/failure/masking.h"
#include "json/json_fields.h"
#include "json/json_repair.h"

namespace clawdforge {
namespace json = boost::json;

namespace {

std::string string_in(const json::object& object, std::string_view key) {
  return std::string(text_in(object, key).value_or(""));
}

// Either a flat list of values or groups of them.
void append_values(std::vector<std::string>& values, const json::array& list) {
  for (const json::value& entry : list) {
    const json::object* object = entry.if_object();
    if (object == nullptr) continue;
    if (const auto value = text_in(*object, "value")) values.emplace_back(*value);
    const json::array* group = array_in(*object, "options");
    if (group == nullptr) continue;
    for (const json::value& member : *group) {
      const json::object* inner = member.if_object();
      if (inner == nullptr) continue;
      if (const auto value = text_in(*inner, "value")) values.emplace_back(*value);
    }
  }
}

std::vector<AcpOption> options_of(const json::object& result) {
  std::vector<AcpOption> options;
  const json::array* list = array_in(result, "configOptions");
  if (list == nullptr) return options;
  for (const json::value& entry : *list) {
    const json::object* object = entry.if_object();
    if (object == nullptr) continue;
    AcpOption option{.id = string_in(*object, "id"),
                     .category = string_in(*object, "category"),
                     .current = string_in(*object, "currentValue"),
                     .values = {}};
    if (const json::array* values = array_in(*object, "options")) {
      append_values(option.values, *values);
    }
    options.push_back(std::move(option));
  }
  return options;
}

std::optional<Usage> usage_of(const json::object& result) {
  const json::object* usage = object_in(result, "usage");
  if (usage == nullptr) return std::nullopt;
  return Usage{.input_tokens = count_in(*usage, "inputTokens"),
               .output_tokens = count_in(*usage, "outputTokens"),
               .cache_read_tokens = count_in(*usage, "cachedReadTokens"),
               .cache_write_tokens = count_in(*usage, "cachedWriteTokens")};
}

// A result that is no object is one without fields: some agents answer null.
AcpResult result_of(const json::value& value) {
  AcpResult result;
  const json::object* object = value.if_object();
  if (object == nullptr) return result;
  result.protocol_version = count_in(*object, "protocolVersion");
  if (const json::object* abilities = object_in(*object, "agentCapabilities")) {
    result.can_load = is_true_in(*abilities, "loadSession");
    const json::object* sessions = object_in(*abilities, "sessionCapabilities");
    result.can_resume = sessions != nullptr && object_in(*sessions, "resume") != nullptr;
  }
  if (const json::object* agent = object_in(*object, "agentInfo")) {
    result.agent_name = string_in(*agent, "name");
    result.agent_version = string_in(*agent, "version");
  }
  result.session_id = string_in(*object, "sessionId");
  result.options = options_of(*object);
  if (const json::object* modes = object_in(*object, "modes")) {
    result.mode = string_in(*modes, "currentModeId");
  }
  result.stop_reason = string_in(*object, "stopReason");
  if (result.stop_reason.size() > kAgentStopReasonBytesMax) result.stop_reason.clear();
  result.usage = usage_of(*object);
  return result;
}

AcpError error_of(const json::value& value) {
  AcpError error;
  const json::object* object = value.if_object();
  if (object == nullptr) return error;
  const json::value* code = object->if_contains("code");
  if (code != nullptr && code->is_int64()) error.code = code->get_int64();
  error.message = string_in(*object, "message");
  if (const json::object* about = object_in(*object, "data")) {
    error.kind = string_in(*about, "errorKind");
  }
  return error;
}

PermissionRequest question_of(const json::object& params, const AcpMessage& message) {
  PermissionRequest question;
  question.ask_id = message.id;
  question.kind = message.tool_kind;
  if (const json::object* call = object_in(params, "toolCall")) {
    question.title = string_in(*call, "title");
    if (question.title.empty()) question.title = string_in(*call, "name");
  }
  if (const json::array* options = array_in(params, "options")) {
    for (const json::value& entry : *options) {
      const json::object* option = entry.if_object();
      if (option == nullptr || !text_in(*option, "optionId")) continue;
      question.options.push_back({.option_id = string_in(*option, "optionId"),
                                  .name = string_in(*option, "name"),
                                  .kind = string_in(*option, "kind")});
    }
  }
  return question;
}

void read_tool(const json::object& call, AcpMessage& message) {
  message.tool_call_id = string_in(call, "toolCallId");
  message.tool_kind = string_in(call, "kind");
}

void read_update(const json::object& params, AcpMessage& message) {
  const json::object* nested = object_in(params, "update");
  const json::object& update = nested != nullptr ? *nested : params;
  const std::string_view kind = text_in(update, "sessionUpdate").value_or("");
  if (kind == "agent_message_chunk") {
    if (const json::object* content = object_in(update, "content")) {
      message.text = string_in(*content, "text");
    }
  } else if (kind == "tool_call" || kind == "tool_call_update") {
    read_tool(update, message);
  } else if (kind == "usage_update") {
    const json::object* cost = object_in(update, "cost");
    if (cost != nullptr && text_in(*cost, "currency").value_or("USD") == "USD") {
      message.cost_usd = number_in(*cost, "amount");
    }
  }
}

void read_call(const json::object& object, AcpMessage& message) {
  message.method = string_in(object, "method");
  static const json::object kNothing;
  const json::object* given = object_in(object, "params");
  const json::object& params = given != nullptr ? *given : kNothing;
  if (message.kind == AcpKind::notification) {
    if (message.method == "session/update") read_update(params, message);
    return;
  }
  if (message.method != "session/request_permission") return;
  if (const json::object* call = object_in(params, "toolCall")) read_tool(*call, message);
  message.question = question_of(params, message);
}

void read_object(const json::object& object, AcpMessage& message) {
  const json::value* id = object.if_contains("id");
  if (id != nullptr) message.id = json::serialize(*id);
  if (object.if_contains("method") != nullptr) {
    message.kind = id != nullptr ? AcpKind::request : AcpKind::notification;
    read_call(object, message);
    return;
  }
  const json::value* result = object.if_contains("result");
  const json::value* error = object.if_contains("error");
  if (id == nullptr) message.id = "null";  // whoever answers so cannot tell to what
  if (error != nullptr && !error->is_null()) {
    message.kind = AcpKind::response;
    message.error = error_of(*error);
  } else if (result != nullptr) {
    message.kind = AcpKind::response;
    message.result = result_of(*result);
  } else {
    message.id.clear();  // neither asks nor answers
  }
}

bool read_json(AcpMessage& message) {
  constexpr std::size_t kScratchBytes = 8 * 1024;
  std::array<unsigned char, kScratchBytes> scratch;
  json::monotonic_resource memory(scratch.data(), scratch.size());
  json::parse_options options;
  options.max_depth = kAgentJsonDepthMax;
  json::error_code error;
  const json::value value = json::parse(message.json, error, &memory, options);
  if (error || !value.is_object()) return false;
  read_object(value.get_object(), message);
  return true;
}

}  // namespace

std::optional<AcpMessage> acp_message(std::string_view line) {
  constexpr std::string_view kBlanks = " \t\r";
  const std::size_t begin = line.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos || line[begin] != '{') return std::nullopt;
  AcpMessage message;
  message.json = line.substr(begin, line.find_last_not_of(kBlanks) + 1 - begin);
  std::ranges::replace(message.json, '\r', ' ');
  if (read_json(message)) return message;
  std::string repaired = valid_utf8(message.json);
  if (repaired.contains("\\u")) repaired = without_half_characters(repaired);
  if (repaired == message.json) return std::nullopt;
  message = {};
  message.json = std::move(repaired);
  if (read_json(message)) return message;
  return std::nullopt;
}

}  // namespace clawdforge
