#include "forge/turn.h"

#include <fmt/format.h>

#include <iterator>

#include "base/json_text.h"

namespace clawdforge {
namespace {

void append_text_field(std::string& out, std::string_view name, std::string_view value) {
  fmt::format_to(std::back_inserter(out), R"("{}":)", name);
  append_json_string(out, value);
  out += ',';
}

void append_failure(std::string& out, const TurnOutcome& outcome, const AgentFailure& failure) {
  append_text_field(out, "error", failure.sentence);
  append_text_field(out, "stderr", outcome.error_tail);
  append_text_field(out, "code", failure.code);
  append_text_field(out, "detail", failure.sentence);
}

void append_success(std::string& out, const TurnOutcome& outcome) {
  append_text_field(out, "text", outcome.text);
  if (outcome.is_text_truncated) out += R"("text_truncated":true,)";
  if (outcome.is_events_truncated) out += R"("events_truncated":true,)";
  out += R"("usage":)";
  if (outcome.usage) {
    append_usage(out, *outcome.usage);
  } else {
    out += "null";
  }
  if (outcome.cost_usd) {
    fmt::format_to(std::back_inserter(out), R"(,"cost_usd":{},)", *outcome.cost_usd);
  } else {
    out += R"(,"cost_usd":null,)";
  }
}

}  // namespace

void append_usage(std::string& out, const Usage& usage) {
  fmt::format_to(std::back_inserter(out),
                 R"({{"input_tokens":{},"output_tokens":{},"cache_read_tokens":{},)"
                 R"("cache_write_tokens":{}}})",
                 usage.input_tokens, usage.output_tokens, usage.cache_read_tokens,
                 usage.cache_write_tokens);
}

std::string turn_json(std::string_view session_id, const TurnOutcome& outcome) {
  std::string out = outcome.failure ? R"({"ok":false,)" : R"({"ok":true,)";
  append_text_field(out, "session_id", session_id);
  fmt::format_to(std::back_inserter(out), R"("turn_index":{},)", outcome.turn_index);
  if (outcome.failure) {
    append_failure(out, outcome, *outcome.failure);
  } else {
    append_success(out, outcome);
  }
  if (outcome.is_resumed) {
    out += *outcome.is_resumed ? R"("resumed":true,)" : R"("resumed":false,)";
  }
  out += R"("stop_reason":)";
  if (outcome.stop_reason) {
    append_json_string(out, *outcome.stop_reason);
  } else {
    out += "null";
  }
  fmt::format_to(std::back_inserter(out), R"(,"duration_ms":{}}})", outcome.duration.count());
  return out;
}

}  // namespace clawdforge
