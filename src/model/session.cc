#include "model/session.h"

#include <array>
#include <charconv>

#include "base/text.h"

namespace clawdforge {
namespace {

constexpr std::array<std::string_view, 5> kTurnStateNames = {"accepted", "done", "failed",
                                                             "cancelled", "interrupted"};
constexpr std::array<std::string_view, 3> kCloseReasonNames = {"closed", "idle", "token_revoked"};
constexpr std::array<std::string_view, 6> kEventKindNames = {
    "update", "permission", "permission_resolved", "done", "failed", "turn"};

void append_optional(std::string& out, std::string_view name, std::optional<std::int64_t> number) {
  if (number) return append_numbered(out, name, *number);
  out.append(name).append("null");
}

}  // namespace

std::string_view name_of(TurnState state) { return name_among(kTurnStateNames, state); }

std::optional<TurnState> turn_state_from(std::string_view name) {
  return value_among<TurnState>(kTurnStateNames, name);
}

std::string_view name_of(CloseReason reason) { return name_among(kCloseReasonNames, reason); }

std::string_view name_of(EventKind kind) { return name_among(kEventKindNames, kind); }

bool is_closing(EventKind kind) { return kind == EventKind::done || kind == EventKind::failed; }

void append_event_line(std::string& out, const Event& event) {
  append_event_line(out, EventView{.id = event.id,
                                   .turn_index = event.turn_index,
                                   .kind = event.kind,
                                   .json = event.json,
                                   .at = unix_seconds(event.at),
                                   .offset_ms = event.offset_ms});
}

void append_event_line(std::string& out, const EventView& event) {
  append_numbered(out, R"({"id":)", event.id);
  append_numbered(out, R"(,"turn_index":)", event.turn_index);
  append_optional(out, R"(,"at":)", event.at);
  append_optional(out, R"(,"offset_ms":)", event.offset_ms);
  out += R"(,"event":")";
  out += name_of(event.kind);
  out += R"(","data":)";
  out += event.json;
  out += "}\n";
}

namespace {

// Takes `text` off the front of `rest`.
bool takes(std::string_view& rest, std::string_view text) {
  if (!rest.starts_with(text)) return false;
  rest.remove_prefix(text.size());
  return true;
}

bool takes(std::string_view& rest, std::int64_t& number) {
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  if (error != std::errc()) return false;
  rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
  return true;
}

// A number that may be null or not there at all.
bool takes_member(std::string_view& rest, std::string_view name,
                  std::optional<std::int64_t>& number) {
  if (!takes(rest, name) || takes(rest, "null")) return true;
  std::int64_t value = 0;
  if (!takes(rest, value)) return false;
  number = value;
  return true;
}

}  // namespace

std::optional<EventView> event_in(std::string_view line) {
  EventView event;
  if (!takes(line, R"({"id":)") || !takes(line, event.id)) return std::nullopt;
  if (!takes(line, R"(,"turn_index":)") || !takes(line, event.turn_index)) return std::nullopt;
  if (!takes_member(line, R"(,"at":)", event.at)) return std::nullopt;
  if (!takes_member(line, R"(,"offset_ms":)", event.offset_ms)) return std::nullopt;
  if (!takes(line, R"(,"event":")")) return std::nullopt;
  const std::string_view name = line.substr(0, line.find('"'));
  const auto kind = value_among<EventKind>(kEventKindNames, name);
  if (!kind) return std::nullopt;
  event.kind = *kind;
  line.remove_prefix(name.size());
  if (!takes(line, R"(","data":)") || line.size() < 2 || line.back() != '}') return std::nullopt;
  line.remove_suffix(1);
  event.json = line;
  return event;
}

}  // namespace clawdforge
