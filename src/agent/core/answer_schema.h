// How an agent is told the JSON Schema that its answer must meet. Pure functions.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "model/agent.h"

namespace clawdforge {

// Whether the agent takes it by Conversation::schema. Any other agent is told in its prompt.
inline bool takes_schema(const AgentSpec& spec) { return spec.protocol == AgentProtocol::claude; }

inline std::string with_schema(std::string_view prompt, std::string_view schema) {
  return fmt::format(
      "{}\n\nAnswer with one JSON object and nothing else: no words around it, no code fence. It "
      "must meet this JSON Schema:\n{}",
      prompt, schema);
}

}  // namespace clawdforge
