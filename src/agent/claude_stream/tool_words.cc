#include "agent/claude_stream/tool_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>

#include "base/text.h"
#include "json/json_fields.h"
#include "json/json_members.h"

namespace clawdforge {
namespace json = boost::json;

namespace {

constexpr std::size_t kTitleBytesMax = 4096;

std::string_view input_word(const json::object& input, std::string_view key) {
  return text_in(input, key).value_or("");
}

struct Named {
  std::string_view tool;
  std::string_view kind;
  std::string_view title;  // while nothing is known of the input
};
constexpr std::array<Named, 15> kTools = {{{"Bash", "execute", "Terminal"},
                                           {"BashOutput", "execute", "Terminal"},
                                           {"KillShell", "execute", "Terminal"},
                                           {"Read", "read", "Read File"},
                                           {"NotebookRead", "read", "Read Notebook"},
                                           {"LS", "search", "List"},
                                           {"Write", "edit", "Preparing file…"},
                                           {"Edit", "edit", "Edit"},
                                           {"NotebookEdit", "edit", "Edit Notebook"},
                                           {"Glob", "search", "Find"},
                                           {"Grep", "search", "grep"},
                                           {"WebFetch", "fetch", "Fetch"},
                                           {"WebSearch", "fetch", "Search"},
                                           {"Task", "think", "Task"},
                                           {"ExitPlanMode", "switch_mode", "Ready to code?"}}};

Named named(std::string_view tool) {
  if (tool == "Agent") tool = "Task";
  const auto* const found = std::ranges::find(kTools, tool, &Named::tool);
  return found == kTools.end() ? Named{tool, "other", tool} : *found;
}

std::string_view shown_path(std::string_view path, std::string_view working_dir) {
  const bool is_below = !working_dir.empty() && path.size() > working_dir.size() &&
                        path.starts_with(working_dir) && path[working_dir.size()] == '/';
  return is_below ? path.substr(working_dir.size() + 1) : path;
}

std::string text_content(std::string_view text) {
  std::string out = R"({"type":"content","content":{"type":"text")";
  append_member(out, "text", text);
  return out + "}}";
}

std::string listed_text(std::string_view text) {
  return text.empty() ? "[]" : "[" + text_content(text) + "]";
}

std::string diff_content(std::string_view path, std::optional<std::string_view> before,
                         std::string_view after) {
  std::string out = R"({"type":"diff")";
  append_member(out, "path", path);
  append_member(out, "oldText", before);
  append_member(out, "newText", after);
  return out + "}";
}

std::string location(std::string_view path, std::optional<std::int64_t> line) {
  std::string out = "{";
  append_member(out, "path", path);
  if (line) append_member(out, "line", *line);
  return out + "}";
}

// A fence that does not end inside of the text.
std::string fenced(std::string_view text, std::string_view language) {
  std::size_t longest = 2;
  std::size_t run = 0;
  for (const char c : text) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  const std::string fence(longest + 1, '`');
  while (text.ends_with('\n')) text.remove_suffix(1);
  return fmt::format("{}{}\n{}\n{}", fence, language, text, fence);
}

void say_read(ToolWords& words, const json::object& input, std::string_view path) {
  const std::int64_t offset = std::max<std::int64_t>(count_in(input, "offset"), 1);
  const std::int64_t limit = count_in(input, "limit");
  if (limit > 0) {
    words.title += fmt::format(" ({} - {})", offset, offset + limit - 1);
  } else if (offset > 1) {
    words.title += fmt::format(" (from line {})", offset);
  }
  words.locations = "[" + location(path, offset) + "]";
}

void say_file(ToolWords& words, std::string_view name, const json::object& input,
              std::string_view working_dir) {
  std::string_view path = input_word(input, "file_path");
  if (path.empty()) path = input_word(input, "notebook_path");
  words.locations = "[]";
  if (path.empty()) return;
  const std::string_view verb = name == "NotebookEdit" ? "Edit Notebook" : name;
  words.title = fmt::format("{} {}", verb, shown_path(path, working_dir));
  words.locations = "[" + location(path, std::nullopt) + "]";
  if (name == "Read") say_read(words, input, path);
  if (const auto content = text_in(input, "content"); name == "Write" && content) {
    words.content = "[" + diff_content(path, std::nullopt, *content) + "]";
  }
  if (const auto after = text_in(input, "new_string"); name == "Edit" && after) {
    words.content = "[" + diff_content(path, input_word(input, "old_string"), *after) + "]";
  }
  if (const auto after = text_in(input, "new_source"); name == "NotebookEdit" && after) {
    words.content = "[" + diff_content(path, std::nullopt, *after) + "]";
  }
}

void say_search(ToolWords& words, std::string_view name, const json::object& input) {
  const std::string_view pattern = input_word(input, "pattern");
  const std::string_view path = input_word(input, "path");
  if (name != "Grep") words.locations = path.empty() ? "[]" : "[" + location(path, {}) + "]";
  if (pattern.empty()) return;
  if (name == "Grep") {
    words.title = fmt::format("grep \"{}\"", pattern);
    if (!path.empty()) words.title.append(" ").append(path);
  } else {
    words.title = path.empty() ? fmt::format("Find `{}`", pattern)
                               : fmt::format("Find `{}` `{}`", path, pattern);
  }
}

// A block of a result as it is shown; empty: not at all.
std::string shown_block(const json::object& block, bool is_error) {
  if (input_word(block, "type") == "text") {
    const std::string_view text = input_word(block, "text");
    return text_content(is_error ? fenced(text, "") : std::string(text));
  }
  const json::object* source = object_in(block, "source");
  if (input_word(block, "type") != "image" || source == nullptr) return {};
  std::string out = R"({"type":"content","content":{"type":"image")";
  append_member(out, "data", input_word(*source, "data"));
  append_member(out, "mimeType", input_word(*source, "media_type"));
  return out + "}}";
}

std::string shown_result(std::string_view name, const json::value& content, bool is_error) {
  if (const json::string* text = content.if_string()) {
    if (text->empty()) return {};
    if (is_error || name == "Read") return listed_text(fenced(*text, ""));
    return listed_text(name == "Bash" ? fenced(*text, "console") : std::string(*text));
  }
  const json::array* blocks = content.if_array();
  if (blocks == nullptr) return {};
  std::string out = "[";
  for (const json::value& entry : *blocks) {
    const json::object* block = entry.if_object();
    const std::string shown = block == nullptr ? std::string() : shown_block(*block, is_error);
    if (shown.empty()) continue;
    if (out.back() != '[') out += ',';
    out += shown;
  }
  return out == "[" ? std::string() : out + "]";
}

void append_line(std::string& text, std::string_view line, bool& is_first) {
  if (!std::exchange(is_first, false)) text += '\n';
  text += line;
}

// What an edit has changed, with the lines around it.
void say_hunk(ResultWords& words, std::string_view path, const json::object& hunk) {
  const json::array* lines = array_in(hunk, "lines");
  if (lines == nullptr) return;
  std::string before;
  std::string after;
  bool is_first_before = true;
  bool is_first_after = true;
  for (const json::value& entry : *lines) {
    const json::string* line = entry.if_string();
    if (line == nullptr || line->empty()) continue;
    const std::string_view rest = std::string_view(*line).substr(1);
    const char sign = line->front();
    if (sign == ' ' || sign == '-') append_line(before, rest, is_first_before);
    if (sign == ' ' || sign == '+') append_line(after, rest, is_first_after);
  }
  words.content += words.content.empty() ? "[" : ",";
  words.content += diff_content(path, before, after);
  words.locations += words.locations.empty() ? "[" : ",";
  words.locations += location(path, std::max<std::int64_t>(count_in(hunk, "newStart"), 1));
}

ResultWords patch_words(const json::object& report) {
  ResultWords words;
  const json::array* hunks = array_in(report, "structuredPatch");
  const auto path = text_in(report, "filePath");
  if (hunks == nullptr || !path) return words;
  for (const json::value& entry : *hunks) {
    if (const json::object* hunk = entry.if_object()) say_hunk(words, *path, *hunk);
  }
  if (!words.content.empty()) words.content += ']';
  if (!words.locations.empty()) words.locations += ']';
  return words;
}

}  // namespace

ToolWords tool_words(std::string_view name, const json::object& input,
                     std::string_view working_dir) {
  const Named tool = named(name);
  ToolWords words;
  words.title = tool.title;
  words.kind = tool.kind;
  const auto entitle = [&](std::string_view text) {
    if (!text.empty()) words.title = text;
  };
  if (tool.tool == "Bash") {
    entitle(input_word(input, "command"));
    words.content = listed_text(input_word(input, "description"));
  } else if (tool.kind == "read" || tool.kind == "edit") {
    say_file(words, name, input, working_dir);
  } else if (tool.kind == "search") {
    say_search(words, name, input);
  } else if (tool.tool == "WebFetch") {
    const std::string_view url = input_word(input, "url");
    if (!url.empty()) words.title = fmt::format("Fetch {}", url);
    words.content = listed_text(input_word(input, "prompt"));
  } else if (tool.tool == "WebSearch") {
    const std::string_view query = input_word(input, "query");
    if (!query.empty()) words.title = fmt::format("\"{}\"", query);
  } else if (tool.tool == "Task") {
    entitle(input_word(input, "description"));
    words.content = listed_text(input_word(input, "prompt"));
  } else if (tool.kind == "switch_mode") {
    words.content = listed_text(input_word(input, "plan"));
  }
  words.title = cut_to(words.title, kTitleBytesMax);
  return words;
}

ResultWords result_words(std::string_view name, const json::object& result,
                         const json::object* report) {
  const bool is_error = is_true_in(result, "is_error");
  if (!is_error && named(name).kind == "edit") {
    return report == nullptr ? ResultWords{} : patch_words(*report);
  }
  const json::value* content = result.if_contains("content");
  if (content == nullptr) return {};
  return {.content = shown_result(name, *content, is_error), .locations = {}};
}

std::string plan_entries(const json::object& input) {
  std::string out = "[";
  const json::array* todos = array_in(input, "todos");
  if (todos == nullptr) return out + "]";
  for (const json::value& entry : *todos) {
    const json::object* todo = entry.if_object();
    if (todo == nullptr) continue;
    std::string_view status = input_word(*todo, "status");
    if (status != "in_progress" && status != "completed") status = "pending";
    std::string_view text = input_word(*todo, status == "in_progress" ? "activeForm" : "content");
    if (text.empty()) text = input_word(*todo, "content");
    out += out.back() == '[' ? "{" : ",{";
    append_member(out, "content", text);
    append_member(out, "priority", "medium");
    append_member(out, "status", status);
    out += '}';
  }
  return out + "]";
}

}  // namespace clawdforge
