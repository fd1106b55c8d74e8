#include "sessions/turn.h"

#include "json/json_members.h"

namespace clawdforge {
namespace {

void append_failure(std::string& out, const TurnOutcome& outcome, const Failure& failure) {
  append_member(out, "error", failure.message);
  append_member(out, "stderr", outcome.error_tail);
  append_member(out, "code", failure.code);
  append_member(out, "detail", failure.message);
}

void append_success(std::string& out, const TurnOutcome& outcome) {
  append_member(out, "text", outcome.text);
  if (outcome.is_text_truncated) append_member(out, "text_truncated", true);
  if (outcome.is_events_truncated) append_member(out, "events_truncated", true);
  append_member(out, "usage", outcome.usage);
  append_member(out, "cost_usd", outcome.cost_usd);
}

}  // namespace

std::string turn_json(std::string_view session_id, const TurnOutcome& outcome) {
  std::string out = "{";
  append_member(out, "ok", !outcome.failure);
  append_member(out, "session_id", session_id);
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

}  // namespace clawdforge
