#include "model/session.h"

#include <charconv>

#include "model/number_text.h"

namespace clawdforge {

std::string_view name_of(EventKind kind) {
  switch (kind) {
    case EventKind::update:
      return "update";
    case EventKind::permission:
      return "permission";
    case EventKind::permission_resolved:
      return "permission_resolved";
    case EventKind::done:
      return "done";
    case EventKind::failed:
      return "failed";
  }
  return {};
}

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
  event.kind = line.substr(0, line.find('"'));
  line.remove_prefix(event.kind.size());
  if (!takes(line, R"(","data":)") || line.size() < 2 || line.back() != '}') return std::nullopt;
  line.remove_suffix(1);
  event.json = line;
  return event;
}

}  // namespace clawdforge
