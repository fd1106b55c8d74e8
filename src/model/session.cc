#include "model/session.h"

#include <array>
#include <charconv>

#include "base/text.h"

namespace clawdforge {
namespace {

constexpr std::array<std::string_view, 5> kTurnStateNames = {"accepted", "done", "failed",
                                                             "cancelled", "interrupted"};
constexpr std::array<std::string_view, 3> kCloseReasonNames = {"closed", "idle", "token_revoked"};
constexpr std::array<std::string_view, 5> kEventKindNames = {
    "update", "permission", "permission_resolved", "done", "failed"};

}  // namespace

std::string_view name_of(TurnState state) { return name_among(kTurnStateNames, state); }

std::optional<TurnState> turn_state_from(std::string_view name) {
  return value_among<TurnState>(kTurnStateNames, name);
}

std::string_view name_of(CloseReason reason) { return name_among(kCloseReasonNames, reason); }

std::string_view name_of(EventKind kind) { return name_among(kEventKindNames, kind); }

bool is_closing(EventKind kind) { return kind == EventKind::done || kind == EventKind::failed; }

void append_event_line(std::string& out, const Event& event) {
  append_numbered(out, R"({"id":)", event.id);
  append_numbered(out, R"(,"turn_index":)", event.turn_index);
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

}  // namespace

std::optional<EventView> event_in(std::string_view line) {
  EventView event;
  if (!takes(line, R"({"id":)") || !takes(line, event.id)) return std::nullopt;
  if (!takes(line, R"(,"turn_index":)") || !takes(line, event.turn_index)) return std::nullopt;
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
