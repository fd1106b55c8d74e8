#include "transcript/journal_json.h"

#include <algorithm>
#include <boost/json.hpp>

#include "base/text.h"
#include "json/json_members.h"
#include "json/json_parse.h"

namespace clawdforge {
namespace {

constexpr std::size_t kClosingFrameBytes = 384;  // most closing events have less around their text

void append_failure(std::string& out, const TurnOutcome& outcome, const Failure& failure) {
  append_member(out, "error", failure.message);
  append_member(out, "stderr", outcome.error_tail);
  append_member(out, "code", failure.code);
  append_member(out, "detail", outcome.failed_text.empty() ? failure.message : outcome.failed_text);
}

void append_success(std::string& out, const TurnOutcome& outcome) {
  append_member(out, "text", outcome.text);
  if (outcome.is_text_truncated) append_member(out, "text_truncated", true);
  if (outcome.is_events_truncated) append_member(out, "events_truncated", true);
  if (!outcome.result.empty()) {
    append_name(out, "result");
    out += outcome.result;
  }
  append_member(out, "usage", outcome.usage);
  append_member(out, "cost_usd", outcome.cost_usd);
}

}  // namespace

std::string opening_json(const TurnOpening& opening) {
  std::string out = "{";
  append_member(out, "turn_index", opening.turn_index);
  append_member(out, "at", opening.at);
  if (!opening.prompt) return out + '}';
  const std::string_view kept = cut_to(*opening.prompt, kKeptTurnPromptBytesMax);
  append_member(out, "prompt", kept);
  if (kept.size() < opening.prompt->size()) append_member(out, "prompt_truncated", true);
  append_name(out, "files");
  out += '[';
  for (const std::string& name : opening.files) {
    if (out.back() != '[') out += ',';
    append_json_string(out, name);
  }
  return out + "]}";
}

std::string title_of(std::string_view prompt) {
  constexpr std::string_view kBlanks = " \t\r\n\v\f";
  const std::size_t begin = prompt.find_first_not_of(kBlanks);
  if (begin == prompt.npos) return {};
  prompt = prompt.substr(begin);
  prompt = first_characters(prompt.substr(0, prompt.find_first_of("\r\n")), kTitleCharactersMax);
  std::string title(prompt.substr(0, prompt.find_last_not_of(kBlanks) + 1));
  // It is shown in lists, on terminals too.
  std::ranges::replace_if(
      title, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, ' ');
  return title;
}

std::string closing_json(const SessionId& session_id, const TurnOutcome& outcome) {
  std::string out;
  out.reserve(kClosingFrameBytes + outcome.text.size() + outcome.error_tail.size());
  out += '{';
  append_member(out, "ok", !outcome.failure);
  append_member(out, "session_id", session_id.str());
  append_member(out, "turn_index", outcome.turn_index);
  if (outcome.failure) {
    append_failure(out, outcome, *outcome.failure);
  } else {
    append_success(out, outcome);
  }
  if (outcome.is_resumed) append_member(out, "resumed", *outcome.is_resumed);
  append_member(out, "stop_reason", outcome.stop_reason);
  append_member(out, "duration_ms", outcome.duration.count());
  out += '}';
  return out;
}

std::string question_json(std::string_view id, std::int64_t turn_index, std::int64_t asked_at,
                          std::optional<std::int64_t> expires_at, const PermissionRequest& question,
                          std::string_view message) {
  std::string out = "{";
  append_member(out, "id", id);
  append_member(out, "turn_index", turn_index);
  append_member(out, "title", question.title);
  append_member(out, "kind", question.kind);
  append_name(out, "options");
  out += '[';
  for (const PermissionOption& option : question.options) {
    out += out.back() == '[' ? "{" : ",{";
    append_member(out, "option_id", option.option_id);
    append_member(out, "name", option.name);
    append_member(out, "kind", option.kind);
    out += '}';
  }
  out += ']';
  append_member(out, "asked_at", asked_at);
  append_member(out, "expires_at", expires_at);
  if (!message.empty()) {
    append_name(out, "message");
    out += message;
  }
  out += '}';
  return out;
}

std::string resolution_json(std::string_view id, std::string_view decision,
                            const std::optional<std::string>& option_id, std::string_view by) {
  std::string out = "{";
  append_member(out, "id", id);
  append_member(out, "decision", decision);
  append_member(out, "option_id", option_id);
  append_member(out, "by", by);
  out += '}';
  return out;
}

std::string tool_in(std::string_view message) {
  const auto parsed = parse_json(message, kJournalJsonDepthMax);
  const boost::json::object* asked = parsed ? parsed->if_object() : nullptr;
  const boost::json::value* const params =
      asked == nullptr ? nullptr : asked->if_contains("params");
  if (params != nullptr && params->is_object()) asked = params->if_object();
  const boost::json::value* const tool =
      asked == nullptr ? nullptr : asked->if_contains("toolCall");
  if (tool == nullptr || !tool->is_object()) return {};
  return boost::json::serialize(*tool);
}

}  // namespace clawdforge
