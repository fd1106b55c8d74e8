#include "cli/dialogue/chat_event.h"

#include <boost/json.hpp>

#include "json/json_fields.h"
#include "json/json_parse.h"

namespace clawdforge {
namespace json = boost::json;
namespace {

constexpr double kMillisecondsPerSecond = 1000.0;

std::string string_in(const json::object& object, std::string_view key) {
  return std::string(text_in(object, key).value_or(std::string_view()));
}

std::string serialized_in(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains({key.data(), key.size()});
  return value == nullptr || value->is_null() ? std::string() : json::serialize(*value);
}

std::string content_text(const json::object& update) {
  const json::object* content = object_in(update, "content");
  return content == nullptr ? std::string() : string_in(*content, "text");
}

void read_tool_content(const json::array& contents, ToolNews& news) {
  for (const json::value& entry : contents) {
    if (!entry.is_object()) continue;
    const json::object& content = entry.get_object();
    const std::string type = string_in(content, "type");
    if (type == "diff") {
      news.diffs.push_back({string_in(content, "path"), string_in(content, "oldText"),
                            string_in(content, "newText")});
    } else if (type == "content") {
      if (!news.output.empty()) news.output += '\n';
      news.output += content_text(content);
    }
  }
}

ToolNews read_tool(const json::object& update) {
  ToolNews news;
  news.id = string_in(update, "toolCallId");
  news.title = string_in(update, "title");
  news.kind = string_in(update, "kind");
  news.status = string_in(update, "status");
  news.input = serialized_in(update, "rawInput");
  if (const json::array* contents = array_in(update, "content")) read_tool_content(*contents, news);
  if (news.output.empty()) {
    const auto output = text_in(update, "rawOutput");
    news.output = output ? std::string(*output) : serialized_in(update, "rawOutput");
  }
  return news;
}

ChatEvent read_update(const json::object& message) {
  const json::object* params = object_in(message, "params");
  const json::object* update = params == nullptr ? nullptr : object_in(*params, "update");
  if (update == nullptr) return Unshown{};
  const std::string_view kind = text_in(*update, "sessionUpdate").value_or("");
  if (kind == "agent_message_chunk") return AgentText{content_text(*update)};
  if (kind == "agent_thought_chunk") return AgentThought{content_text(*update)};
  if (kind == "tool_call" || kind == "tool_call_update") return read_tool(*update);
  if (kind != "plan") return Unshown{};
  AgentPlan plan;
  if (const json::array* entries = array_in(*update, "entries")) {
    for (const json::value& entry : *entries) {
      if (!entry.is_object()) continue;
      plan.entries.push_back(
          {string_in(entry.get_object(), "content"), string_in(entry.get_object(), "status")});
    }
  }
  return plan;
}

AgentQuestion read_question(const json::object& data) {
  AgentQuestion question;
  question.id = string_in(data, "id");
  question.title = string_in(data, "title");
  question.kind = string_in(data, "kind");
  question.is_open = number_in(data, "expires_at").has_value();
  if (const json::array* options = array_in(data, "options")) {
    for (const json::value& option : *options) {
      if (!option.is_object()) continue;
      const json::object& o = option.get_object();
      question.options.push_back(
          {string_in(o, "option_id"), string_in(o, "name"), string_in(o, "kind")});
    }
  }
  // The agent's own message says what exactly it is about.
  const json::object* message = object_in(data, "message");
  const json::object* params = message == nullptr ? nullptr : object_in(*message, "params");
  const json::object* call = params == nullptr ? nullptr : object_in(*params, "toolCall");
  if (call != nullptr) question.input = serialized_in(*call, "rawInput");
  return question;
}

ChatTurnEnd read_end(const json::object& data, bool is_ok) {
  ChatTurnEnd end;
  end.is_ok = is_ok;
  end.turn_index = count_in(data, "turn_index");
  end.stop_reason = string_in(data, "stop_reason");
  end.code = string_in(data, "code");
  end.error = string_in(data, "error");
  end.cost_usd = number_in(data, "cost_usd");
  end.seconds = number_in(data, "duration_ms").value_or(0) / kMillisecondsPerSecond;
  if (const json::object* usage = object_in(data, "usage")) {
    end.input_tokens = count_in(*usage, "input_tokens");
    end.output_tokens = count_in(*usage, "output_tokens");
  }
  end.is_resumed = is_true_in(data, "resumed");
  const json::value* resumed = data.if_contains("resumed");
  end.is_forgotten = resumed != nullptr && resumed->is_bool() && !resumed->get_bool();
  return end;
}

}  // namespace

ChatEvent read_chat_event(std::string_view name, std::string_view data) {
  if (name == "gap") return ToldGap{};
  if (name == "lagged" || name == "shutdown") return ReaderCut{};
  json::monotonic_resource memory;
  const auto parsed = parse_json(data, kJournalJsonDepthMax, &memory);
  if (!parsed || !parsed->is_object()) return Unshown{};
  const json::object& object = parsed->get_object();
  if (name == "update") return read_update(object);
  if (name == "permission") return read_question(object);
  if (name == "permission_resolved") {
    return QuestionDecided{string_in(object, "id"), string_in(object, "decision"),
                           string_in(object, "option_id"), string_in(object, "by")};
  }
  if (name == "turn") {
    return AskedPrompt{count_in(object, "turn_index"),
                       text_in(object, "prompt").transform([](std::string_view text) {
                         return std::string(text);
                       })};
  }
  if (name == "done" || name == "failed") return read_end(object, name == "done");
  return Unshown{};
}

std::vector<AgentQuestion> read_open_questions(std::string_view body) {
  std::vector<AgentQuestion> questions;
  const auto parsed = parse_json(body, kJournalJsonDepthMax);
  if (!parsed || !parsed->is_object()) return questions;
  const json::array* list = array_in(parsed->get_object(), "permissions");
  if (list == nullptr) return questions;
  for (const json::value& entry : *list) {
    if (entry.is_object()) questions.push_back(read_question(entry.get_object()));
  }
  return questions;
}

}  // namespace clawdforge
