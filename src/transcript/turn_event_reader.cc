#include "transcript/turn_event_reader.h"

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <boost/json/monotonic_resource.hpp>

#include "base/text.h"
#include "json/json_fields.h"
#include "json/json_parse.h"

namespace clawdforge {
namespace json = boost::json;

namespace {

std::string_view word_in(const json::object& object, std::string_view key) {
  return text_in(object, key).value_or("");
}

// For what is kept in memory and in the ledger: short, and without control characters.
std::string_view kind_in(const json::object& object) {
  const std::string_view kind = word_in(object, "kind");
  const bool is_word = kind.size() <= kAgentKindBytesMax &&
                       std::ranges::none_of(kind, [](unsigned char c) { return c < 0x20; });
  return is_word ? kind : std::string_view();
}

std::string label_in(const json::object& object, std::string_view key) {
  return std::string(cut_to(word_in(object, key), kAgentLabelBytesMax));
}

std::string_view piece_in(const json::object& update) {
  const json::object* content = object_in(update, "content");
  return content == nullptr ? std::string_view() : word_in(*content, "text");
}

// The adapter for Codex tells what its commands print only here, piece by piece.
std::optional<std::string_view> printed_in(const json::object& update) {
  const json::object* const meta = object_in(update, "_meta");
  if (meta == nullptr) return std::nullopt;
  const json::object* piece = object_in(*meta, "terminal_output_delta");
  if (piece == nullptr) piece = object_in(*meta, "terminal_output");
  return piece == nullptr ? std::nullopt : text_in(*piece, "data");
}

ToolReport tool_report_of(const json::object& update, bool is_call) {
  ToolReport report{.is_call = is_call,
                    .call_id = text_in(update, "toolCallId"),
                    .name = text_in(update, "name"),
                    .title = text_in(update, "title"),
                    .kind = kind_in(update),
                    .status = word_in(update, "status"),
                    .input = object_in(update, "rawInput"),
                    .output = update.if_contains("rawOutput"),
                    .content = array_in(update, "content"),
                    .printed = printed_in(update)};
  if (report.output != nullptr && report.output->is_null()) report.output = nullptr;
  return report;
}

Plan plan_of(const json::object& update) {
  Plan plan;
  const json::array* entries = array_in(update, "entries");
  if (entries == nullptr) return plan;
  for (const json::value& entry : *entries) {
    const json::object* step = entry.if_object();
    if (step == nullptr) continue;
    plan.steps.push_back({.text = word_in(*step, "content"),
                          .priority = word_in(*step, "priority"),
                          .status = word_in(*step, "status")});
  }
  return plan;
}

UsageReport usage_report_of(const json::object& update) {
  UsageReport report;
  const json::object* cost = object_in(update, "cost");
  if (cost != nullptr && text_in(*cost, "currency").value_or("USD") == "USD") {
    report.cost_usd = number_in(*cost, "amount");
  }
  const std::int64_t size = count_in(update, "size");
  if (size > 0) report.context = ContextUse{.used = count_in(update, "used"), .size = size};
  return report;
}

TurnEvent update_of(const json::object& params) {
  const json::object* nested = object_in(params, "update");
  const json::object& update = nested != nullptr ? *nested : params;
  const std::string_view kind = word_in(update, "sessionUpdate");
  if (kind == "agent_message_chunk") return TextPiece{piece_in(update)};
  if (kind == "agent_thought_chunk") return ThoughtPiece{piece_in(update)};
  if (kind == "tool_call") return tool_report_of(update, true);
  if (kind == "tool_call_update") return tool_report_of(update, false);
  if (kind == "plan") return plan_of(update);
  if (kind == "usage_update") return usage_report_of(update);
  return UnknownMessage{};
}

Question question_of(const json::object& message, const json::object& params) {
  Question question;
  PermissionRequest& asked = question.asked;
  asked.ask_id = json::serialize(message.at("id"));
  if (const json::object* call = object_in(params, "toolCall")) {
    question.call_id = word_in(*call, "toolCallId");
    asked.kind = kind_in(*call);
    asked.title = label_in(*call, "title");
    if (asked.title.empty()) asked.title = label_in(*call, "name");
  }
  if (const json::array* options = array_in(params, "options")) {
    for (const json::value& entry : *options) {
      if (asked.options.size() >= kQuestionOptionsMax) break;
      const json::object* option = entry.if_object();
      const auto id = option == nullptr ? std::nullopt : text_in(*option, "optionId");
      if (!id || id->size() > kAgentLabelBytesMax) continue;
      asked.options.push_back({.option_id = std::string(*id),
                               .name = label_in(*option, "name"),
                               .kind = std::string(kind_in(*option))});
    }
  }
  return question;
}

AgentStop stop_of(const json::object& result) {
  AgentStop stop{.stop_reason = word_in(result, "stopReason"), .usage = {}};
  if (stop.stop_reason.size() > kAgentStopReasonBytesMax) stop.stop_reason = {};
  if (const json::object* usage = object_in(result, "usage")) {
    stop.usage = Usage{.input_tokens = count_in(*usage, "inputTokens"),
                       .output_tokens = count_in(*usage, "outputTokens"),
                       .cache_read_tokens = count_in(*usage, "cachedReadTokens"),
                       .cache_write_tokens = count_in(*usage, "cachedWriteTokens")};
  }
  return stop;
}

// The journal's `done` and `failed`: see closing_json().
TurnClosed closed_of(const json::object& closing) {
  TurnClosed closed{.is_ok = is_true_in(closing, "ok"),
                    .stop_reason = word_in(closing, "stop_reason"),
                    .usage = {},
                    .cost_usd = number_in(closing, "cost_usd"),
                    .code = word_in(closing, "code"),
                    .message = word_in(closing, "detail")};
  if (const json::object* usage = object_in(closing, "usage")) {
    closed.usage = Usage{.input_tokens = count_in(*usage, "input_tokens"),
                         .output_tokens = count_in(*usage, "output_tokens"),
                         .cache_read_tokens = count_in(*usage, "cache_read_tokens"),
                         .cache_write_tokens = count_in(*usage, "cache_write_tokens")};
  }
  return closed;
}

// The journal's `permission`: see question_json().
Question kept_question_of(const json::object& kept) {
  Question question;
  if (const json::object* message = object_in(kept, "message")) {
    TurnEvent event = turn_event_in(*message);
    if (auto* asked = std::get_if<Question>(&event)) question = std::move(*asked);
  }
  question.id = word_in(kept, "id");
  return question;
}

}  // namespace

TurnEvent turn_event_in(const json::object& message) {
  const std::string_view method = word_in(message, "method");
  if (message.if_contains("method") == nullptr) {
    const json::object* result = object_in(message, "result");
    const json::value* error = message.if_contains("error");
    if (result == nullptr || (error != nullptr && !error->is_null())) return UnknownMessage{};
    const bool is_stop = text_in(*result, "stopReason") || object_in(*result, "usage") != nullptr;
    return is_stop ? TurnEvent(stop_of(*result)) : UnknownMessage{};
  }
  static const json::object kNothing;
  const json::object* given = object_in(message, "params");
  const json::object& params = given != nullptr ? *given : kNothing;
  const bool is_request = message.if_contains("id") != nullptr;
  if (method == "session/update" && !is_request) return update_of(params);
  if (method == "session/request_permission" && is_request) return question_of(message, params);
  return UnknownMessage{};
}

std::string shown_text(const json::array& content) {
  std::string text;
  for (const json::value& entry : content) {
    const json::object* part = entry.if_object();
    const json::object* block = part == nullptr ? nullptr : object_in(*part, "content");
    const auto piece = block == nullptr ? std::nullopt : text_in(*block, "text");
    if (!piece) continue;
    if (!text.empty()) text += '\n';
    text += *piece;
  }
  return text;
}

// Its memory is used again for every message.
struct TurnEventReader::Document {
  std::array<unsigned char, 8192> scratch;
  json::monotonic_resource memory{scratch.data(), scratch.size()};
  std::optional<json::value> value;
};

TurnEventReader::TurnEventReader() : document_(std::make_unique<Document>()) {}
TurnEventReader::~TurnEventReader() = default;

const json::object* TurnEventReader::parse(std::string_view text, std::size_t depth_max) {
  document_->value.reset();
  document_->memory.release();
  std::optional<json::value>& value = document_->value;
  value = parse_json(text, depth_max, &document_->memory);
  return value ? value->if_object() : nullptr;
}

TurnEvent TurnEventReader::read_message(std::string_view message) {
  const json::object* const object = parse(message, kAgentJsonDepthMax);
  return object == nullptr ? TurnEvent() : turn_event_in(*object);
}

TurnEvent TurnEventReader::read_line(const EventView& line) {
  if (line.kind == EventKind::update) return read_message(line.json);
  const json::object* const object = parse(line.json, kJournalJsonDepthMax);
  if (object == nullptr) return UnknownMessage{};
  if (line.kind == EventKind::permission) return kept_question_of(*object);
  if (line.kind == EventKind::permission_resolved) {
    return QuestionAnswer{.id = word_in(*object, "id"),
                          .decision = word_in(*object, "decision"),
                          .by = word_in(*object, "by")};
  }
  if (line.kind == EventKind::turn) return TurnOpened{.prompt = text_in(*object, "prompt")};
  return closed_of(*object);
}

}  // namespace clawdforge
