// Translates the events of a turn into the few shapes that older clients read. Pure.
#pragma once

#include <span>
#include <string>

namespace clawdforge {

// JSON text of an array. `raw` are messages of the agent, one JSON object each, with either
// nesting of an update. Adjacent pieces of the agent's message become
// {"type":"text","content"}, of its thoughts {"type":"thinking","content"}, a tool call with
// all that was said about it later {"type":"tool_call","name","args","result"} at the place
// of the call. The rest is dropped.
std::string simple_events(std::span<const std::string> raw);

}  // namespace clawdforge
