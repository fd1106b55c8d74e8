#include "api/shapes/simple_stream.h"

#include <fmt/format.h>

#include <algorithm>

namespace clawdforge {
namespace {

// The one event in an array; empty: there is none.
std::string only_of(std::string array) {
  if (array.size() <= 2) return {};
  array.pop_back();
  array.erase(0, 1);
  return array;
}

}  // namespace

std::string SimpleStream::take(std::string_view message, std::int64_t turn_index) {
  std::string id;
  bool has_ended = false;
  {
    const TurnEvent event = reader_.read_message(message);
    if (const auto* const report = std::get_if<ToolReport>(&event); report && report->call_id) {
      id = fmt::format("{}/{}", turn_index, *report->call_id);
      has_ended = report->status == "completed" || report->status == "failed";
    }
  }
  if (id.empty()) {
    SimpleEvents one;
    one.add(message);
    return only_of(one.take_json());
  }
  if (std::ranges::find(told_, id) != told_.end()) return {};
  tool(id).add(message);
  return has_ended ? end_tool(id) : std::string();
}

SimpleEvents& SimpleStream::tool(const std::string& id) {
  const auto known = std::ranges::find(tools_, id, &Tool::id);
  if (known != tools_.end()) return *known->said;
  if (tools_.size() == kSimpleToolsMax) tools_.pop_front();
  return *tools_.emplace_back(Tool{id, std::make_unique<SimpleEvents>()}).said;
}

std::string SimpleStream::end_tool(const std::string& id) {
  const auto known = std::ranges::find(tools_, id, &Tool::id);
  std::string json = only_of(known->said->take_json());
  tools_.erase(known);
  if (json.empty()) return json;
  if (told_.size() == kSimpleToldToolsMax) told_.pop_front();
  told_.push_back(id);
  return json;
}

}  // namespace clawdforge
