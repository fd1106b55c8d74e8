#include "transcript/simple_events.h"

#include <boost/json.hpp>
#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "agent/acp/acp_message.h"
#include "base/json_text.h"
#include "json/json_fields.h"

namespace clawdforge {
namespace json = boost::json;

namespace {

enum class Shape : std::uint8_t { text, thinking, tool_call };

struct Simple {
  Shape shape = Shape::text;
  std::string content;    // of the first two; of a tool call its name
  bool is_named = false;  // not only titled
  std::string args = "{}";
  std::string result = "null";
  bool has_output = false;  // the result is the tool's own, not only what is shown of it
};

class Translation {
 public:
  void take(const json::object& message);
  std::string written() const;

 private:
  void add_text(Shape shape, std::string_view text);
  void add_tool(const json::object& update, bool is_call);

  std::vector<Simple> all_;
  std::map<std::string, std::size_t, std::less<>> tools_;  // places in all_, by id
};

// What there is to read in a tool's content.
std::string text_of(const json::array& content) {
  std::string text;
  for (const json::value& entry : content) {
    const json::object* part = entry.if_object();
    const json::object* block = part == nullptr ? nullptr : object_in(*part, "content");
    const auto piece = block == nullptr ? std::nullopt : text_in(*block, "text");
    if (!piece) continue;
    if (!text.empty()) text += '\n';
    text += *piece;
  }
  return text;
}

void fill(Simple& tool, const json::object& update) {
  if (const auto name = text_in(update, "name"); name && !name->empty()) {
    tool.content = *name;
    tool.is_named = true;
  } else if (const auto title = text_in(update, "title"); title && !tool.is_named) {
    tool.content = *title;
  }
  if (const json::object* input = object_in(update, "rawInput"))
    tool.args = json::serialize(*input);
  const json::value* output = update.if_contains("rawOutput");
  if (output != nullptr && !output->is_null()) {
    tool.result = json::serialize(*output);
    tool.has_output = true;
  } else if (const json::array* content = array_in(update, "content");
             content != nullptr && !tool.has_output) {
    const std::string text = text_of(*content);
    if (text.empty()) return;
    tool.result.clear();
    append_json_string(tool.result, text);
  }
}

void Translation::add_text(Shape shape, std::string_view text) {
  if (text.empty()) return;
  if (all_.empty() || all_.back().shape != shape) all_.push_back({.shape = shape, .content = {}});
  all_.back().content += text;
}

// An update of a call that was made in an earlier turn, or never told, is of no use unless
// it says what it is about.
void Translation::add_tool(const json::object& update, bool is_call) {
  const auto id = text_in(update, "toolCallId");
  if (id) {
    if (const auto known = tools_.find(*id); known != tools_.end()) {
      fill(all_[known->second], update);
      return;
    }
  }
  if (!is_call && !text_in(update, "name") && !text_in(update, "title")) return;
  if (id) tools_.emplace(*id, all_.size());
  all_.push_back({.shape = Shape::tool_call, .content = {}});
  fill(all_.back(), update);
}

void Translation::take(const json::object& message) {
  if (text_in(message, "method") != "session/update") return;
  const json::object* params = object_in(message, "params");
  if (params == nullptr) return;
  const json::object* nested = object_in(*params, "update");
  const json::object& update = nested != nullptr ? *nested : *params;
  const std::string_view kind = text_in(update, "sessionUpdate").value_or("");
  if (kind == "agent_message_chunk" || kind == "agent_thought_chunk") {
    const json::object* content = object_in(update, "content");
    if (content == nullptr) return;
    add_text(kind == "agent_message_chunk" ? Shape::text : Shape::thinking,
             text_in(*content, "text").value_or(""));
  } else if (kind == "tool_call" || kind == "tool_call_update") {
    add_tool(update, kind == "tool_call");
  }
}

std::string Translation::written() const {
  std::string out = "[";
  for (const Simple& simple : all_) {
    if (out.size() > 1) out += ',';
    if (simple.shape == Shape::tool_call) {
      out += R"({"type":"tool_call","name":)";
      append_json_string(out, simple.content);
      out.append(R"(,"args":)").append(simple.args);
      out.append(R"(,"result":)").append(simple.result);
    } else {
      out += simple.shape == Shape::text ? R"({"type":"text","content":)"
                                         : R"({"type":"thinking","content":)";
      append_json_string(out, simple.content);
    }
    out += '}';
  }
  return out + "]";
}

}  // namespace

std::string simple_events(std::span<const std::string> raw) {
  Translation translation;
  json::parse_options options;
  options.max_depth = kAgentJsonDepthMax;
  for (const std::string& line : raw) {
    json::monotonic_resource memory;
    json::error_code error;
    const json::value value = json::parse(line, error, &memory, options);
    if (!error && value.is_object()) translation.take(value.get_object());
  }
  return translation.written();
}

}  // namespace clawdforge
