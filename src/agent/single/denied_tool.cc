#include "agent/single/denied_tool.h"

#include <boost/json.hpp>
#include <string>

#include "base/text.h"
#include "json/json_fields.h"
#include "json/json_parse.h"

namespace clawdforge {
namespace json = boost::json;
namespace {

// A longer question is not read again: its title tells what was asked for.
constexpr std::size_t kReadQuestionBytesMax = 256 * 1024;

const json::object* tool_call_in(const json::value& message) {
  const json::object* const object = message.if_object();
  const json::object* const params = object == nullptr ? nullptr : object_in(*object, "params");
  return params == nullptr ? nullptr : object_in(*params, "toolCall");
}

// What the adapter for Claude calls the tool, or what the call says itself.
std::string_view name_in(const json::object& call) {
  const json::object* const meta = object_in(call, "_meta");
  const json::object* const claude = meta == nullptr ? nullptr : object_in(*meta, "claudeCode");
  if (claude != nullptr) {
    if (const auto name = text_in(*claude, "toolName")) return *name;
  }
  return text_in(call, "name").value_or("");
}

}  // namespace

Denial denied_tool(const PermissionRequest& question, std::string_view message) {
  Denial denial{.tool = std::string(cut_to(question.title, kDenialToolBytesMax)), .input = {}};
  if (message.size() > kReadQuestionBytesMax) return denial;
  const auto value = parse_json(message, kAgentJsonDepthMax);
  const json::object* const call = value ? tool_call_in(*value) : nullptr;
  if (call == nullptr) return denial;
  const std::string_view name = name_in(*call);
  if (!name.empty()) denial.tool = cut_to(name, kDenialToolBytesMax);
  if (const json::value* input = call->if_contains("rawInput")) {
    denial.input = cut_to(json::serialize(*input), kDenialInputBytesMax);
  }
  return denial;
}

}  // namespace clawdforge
