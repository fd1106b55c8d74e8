// SimpleStream tells an agent's messages one by one in the shapes of the format `simple`: each
// piece of the agent's message and of its thoughts as it comes, a tool call when it is known whole.
// What it needs for that is what was said about tool calls that have not ended. Of one reader.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include "api/shapes/simple_events.h"
#include "transcript/turn_event_reader.h"

namespace clawdforge {

// Tool calls that are under way at the same time, and those that were told lately: of one more, the
// oldest is forgotten.
inline constexpr std::size_t kSimpleToolsMax = 64;
inline constexpr std::size_t kSimpleToldToolsMax = 256;

class SimpleStream {
 public:
  // What the message tells, as JSON of an object; empty: nothing.
  std::string take(std::string_view message, std::int64_t turn_index);

 private:
  struct Tool {
    std::string id;
    std::unique_ptr<SimpleEvents> said;
  };

  SimpleEvents& tool(const std::string& id);
  std::string end_tool(const std::string& id);

  TurnEventReader reader_;
  std::deque<Tool> tools_;
  std::deque<std::string> told_;  // ids
};

}  // namespace clawdforge
