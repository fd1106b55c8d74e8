// What Claude's tools are called in the Agent Client Protocol: title, kind, the files that a call
// is about, and what is shown of its input and of its result. Pure.
#pragma once

#include <boost/json/fwd.hpp>
#include <string>
#include <string_view>

namespace clawdforge {

inline constexpr std::string_view kTodoTool = "TodoWrite";

// A tool call before it has a result.
struct ToolWords {
  std::string title;
  std::string_view kind;
  std::string content = "[]";  // JSON
  std::string locations;       // JSON; empty: the tool is about no file
};
// `input` may be incomplete. Paths below `working_dir` are shown without it.
ToolWords tool_words(std::string_view name, const boost::json::object& input,
                     std::string_view working_dir);

// What is shown of a result; empty: what is shown already stays. `result` is the block that the
// model gets, `report` what the tool itself says of it, or null.
struct ResultWords {
  std::string content;    // JSON
  std::string locations;  // JSON
};
ResultWords result_words(std::string_view name, const boost::json::object& result,
                         const boost::json::object* report);

// The entries of a plan, as JSON, of what the todo tool is called with.
std::string plan_entries(const boost::json::object& input);

}  // namespace clawdforge
