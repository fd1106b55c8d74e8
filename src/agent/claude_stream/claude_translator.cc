#include "agent/claude_stream/claude_translator.h"

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <boost/json/monotonic_resource.hpp>

#include "agent/claude_stream/tool_words.h"
#include "agent/failure/masking.h"
#include "base/text.h"
#include "json/json_fields.h"
#include "json/json_members.h"
#include "json/json_parse.h"
#include "json/json_repair.h"
#include "model/agent.h"

namespace clawdforge {
namespace json = boost::json;

namespace {

// What is made of a line is nested deeper than the line, and must be read again.
constexpr std::size_t kClaudeJsonDepthMax = kAgentJsonDepthMax - 16;
constexpr std::string_view kAlways = "allow-with-updates";
// Questions of this many bytes in their title are cut.
constexpr std::size_t kQuestionTitleBytesMax = 1024;

// Told in another way, or of use only to the command line itself.
constexpr std::array<std::string_view, 6> kSkippedKinds = {
    "user",         "control_response", "keep_alive", "command_lifecycle", "prompt_suggestion",
    "tool_progress"};
constexpr std::array<std::string_view, 6> kSkippedSubtypes = {
    "init",         "status",       "thinking_tokens", "background_tasks_changed",
    "hook_started", "hook_response"};

std::string_view word(const json::object& object, std::string_view key) {
  return text_in(object, key).value_or("");
}

// Also of a line with bytes that are not UTF-8, or with half characters.
std::optional<json::value> parsed_line(std::string_view line, json::storage_ptr memory) {
  auto value = parse_json(line, kClaudeJsonDepthMax, memory);
  if (value) return value;
  std::string repaired = valid_utf8(line);
  if (repaired.contains("\\u")) repaired = without_half_characters(repaired);
  if (repaired == line) return std::nullopt;
  return parse_json(repaired, kClaudeJsonDepthMax, memory);
}

std::int64_t context_of(const json::object& usage) {
  return count_in(usage, "input_tokens") + count_in(usage, "cache_read_input_tokens") +
         count_in(usage, "cache_creation_input_tokens");
}

// The sum over the models.
std::optional<double> cost_in(const json::object& message, std::string_view key) {
  const json::object* models = object_in(message, key);
  if (models == nullptr) return std::nullopt;
  double sum = 0;
  for (const auto& [name, entry] : *models) {
    if (const json::object* model = entry.if_object()) {
      sum += number_in(*model, "costUSD").value_or(0);
    }
  }
  return sum;
}

std::int64_t context_size_in(const json::object& message) {
  std::int64_t size = 0;
  const json::object* models = object_in(message, "modelUsage");
  if (models == nullptr) return size;
  for (const auto& [name, entry] : *models) {
    if (const json::object* model = entry.if_object()) {
      size = std::max(size, count_in(*model, "contextWindow"));
    }
  }
  return size;
}

// The rules that the command line proposes, for this process only: a file of the session's
// directory or of the owner is not ours to change.
std::string session_updates_in(const json::object& request) {
  const json::array* proposed = array_in(request, "permission_suggestions");
  if (proposed == nullptr) return {};
  json::array updates;
  for (const json::value& entry : *proposed) {
    const json::object* update = entry.if_object();
    if (update == nullptr) continue;
    json::object changed = *update;
    changed["destination"] = "session";
    updates.push_back(std::move(changed));
  }
  return updates.empty() ? std::string() : json::serialize(updates);
}

void append_raw(std::string& out, std::string_view name, std::string_view json_text) {
  append_name(out, name);
  out += json_text;
}

// {"claudeCode":{"toolName":…}}, with what else is known.
std::string tool_meta(std::string_view name, std::string_view parent, const json::object* report) {
  std::string meta = R"({"claudeCode":{)";
  append_member(meta, "toolName", name);
  if (!parent.empty()) append_member(meta, "parentToolUseId", parent);
  if (report != nullptr) append_raw(meta, "toolResponse", json::serialize(*report));
  return meta + "}}";
}

// The members that a tool call and a question about it have in common.
void append_words(std::string& out, const ToolWords& words, const json::object& input) {
  append_raw(out, "rawInput", json::serialize(input));
  append_member(out, "title", words.title);
  append_member(out, "kind", words.kind);
  append_raw(out, "content", words.content);
  if (!words.locations.empty()) append_raw(out, "locations", words.locations);
}

void append_options(std::string& out, const std::vector<PermissionOption>& options) {
  append_name(out, "options");
  out += '[';
  for (const PermissionOption& option : options) {
    out += out.back() == '[' ? "{" : ",{";
    append_member(out, "optionId", option.option_id);
    append_member(out, "name", option.name);
    append_member(out, "kind", option.kind);
    out += '}';
  }
  out += ']';
}

// availableCommands.
std::string commands_in(const json::object& answer) {
  const json::array* commands = array_in(answer, "commands");
  if (commands == nullptr || commands->empty()) return {};
  std::string out = "[";
  std::size_t count = 0;
  for (const json::value& entry : *commands) {
    const json::object* command = entry.if_object();
    if (command == nullptr || ++count > kClaudeCommandsMax) continue;
    out += out.back() == '[' ? "{" : ",{";
    append_member(out, "name", cut_to(word(*command, "name"), kClaudeCommandBytesMax));
    append_member(out, "description",
                  cut_to(word(*command, "description"), kClaudeCommandBytesMax));
    const std::string_view hint = cut_to(word(*command, "argumentHint"), kClaudeCommandBytesMax);
    if (!hint.empty()) {
      append_name(out, "input");
      out += '{';
      append_member(out, "hint", hint);
      out += '}';
    }
    out += '}';
  }
  return out + "]";
}

std::vector<std::string> models_in(const json::object& answer) {
  std::vector<std::string> models;
  const json::array* const told = array_in(answer, "models");
  if (told == nullptr) return models;
  for (const json::value& entry : *told) {
    const json::object* const model = entry.if_object();
    const std::string_view name = model == nullptr ? "" : word(*model, "value");
    if (is_model_name(name)) models.emplace_back(name);
  }
  return models;
}

ClaudeAnswer answer_in(const json::object& response) {
  ClaudeAnswer answer;
  answer.request_id = word(response, "request_id");
  if (word(response, "subtype") == "error") answer.error = word(response, "error");
  if (const json::object* said = object_in(response, "response")) {
    answer.version = word(*said, "claude_code_version");
    answer.mode = word(*said, "current_permission_mode");
    answer.commands = commands_in(*said);
    answer.models = models_in(*said);
  }
  return answer;
}

}  // namespace

ClaudeTranslator::ClaudeTranslator(std::string session_id, std::string working_dir)
    : session_id_(std::move(session_id)), working_dir_(std::move(working_dir)) {}

std::optional<ClaudeReading> ClaudeTranslator::read(std::string_view line) {
  constexpr std::size_t kScratchBytes = 8 * 1024;
  std::array<unsigned char, kScratchBytes> scratch;
  json::monotonic_resource memory(scratch.data(), scratch.size());
  const auto value = parsed_line(line, &memory);
  const json::object* const message = value ? value->if_object() : nullptr;
  if (message == nullptr) return std::nullopt;
  ClaudeReading reading;
  take(*message, reading);
  return reading;
}

void ClaudeTranslator::take(const json::object& message, ClaudeReading& reading) {
  const std::string_view type = word(message, "type");
  if (type == "stream_event") {
    take_stream(message, reading);
  } else if (type == "assistant") {
    take_assistant(message, reading);
  } else if (type == "user") {
    take_results(message, reading);
  } else if (type == "control_request") {
    take_request(message, reading);
  } else if (type == "control_cancel_request") {
    reading.withdrawn = word(message, "request_id");
  } else if (type == "result") {
    take_result(message, reading);
  } else if (const json::object* response = object_in(message, "response");
             type == "control_response" && response != nullptr) {
    reading.answer = answer_in(*response);
  } else if (std::ranges::find(kSkippedKinds, type) == kSkippedKinds.end()) {
    say_other(reading, message);
  }
}

std::string ClaudeTranslator::update(std::string_view body) const {
  std::string out = R"({"jsonrpc":"2.0","method":"session/update","params":{)";
  append_member(out, "sessionId", session_id_);
  append_raw(out, "update", body);
  return out + "}}";
}

void ClaudeTranslator::say_piece(ClaudeReading& reading, std::string_view kind,
                                 std::string_view text) const {
  if (text.empty()) return;
  std::string body = "{";
  append_member(body, "sessionUpdate", kind);
  append_raw(body, "content", R"({"type":"text")");
  append_member(body, "text", text);
  body += '}';
  if (!message_id_.empty()) append_member(body, "messageId", message_id_);
  const bool is_answer = kind == "agent_message_chunk";
  reading.said.push_back(
      {.json = update(body + "}"), .text = is_answer ? std::string(text) : std::string()});
}

// What has no word in the protocol: as it is, in the extension that every update may have.
void ClaudeTranslator::say_other(ClaudeReading& reading, const json::object& message) const {
  const std::string_view subtype = word(message, "subtype");
  if (std::ranges::find(kSkippedSubtypes, subtype) != kSkippedSubtypes.end()) return;
  std::string body = R"({"sessionUpdate":"session_info_update","_meta":{"claudeCode":{)";
  append_raw(body, "message", json::serialize(message));
  reading.said.push_back({.json = update(body + "}}}"), .text = {}});
}

void ClaudeTranslator::remember(std::string_view call_id, std::string_view name) {
  if (tools_.size() >= kClaudeToolCallsMax) tools_.clear();
  tools_.insert_or_assign(std::string(call_id), std::string(name));
}

// Pieces of a message as the model writes it. What an agent below this one writes is not told.
void ClaudeTranslator::take_stream(const json::object& message, ClaudeReading& reading) {
  const json::object* event = object_in(message, "event");
  const std::string_view parent = word(message, "parent_tool_use_id");
  if (event == nullptr || !parent.empty()) return;
  const std::string_view type = word(*event, "type");
  if (const json::object* begun = object_in(*event, "message"); type == "message_start" && begun) {
    message_id_ = cut_to(word(*begun, "id"), kClaudeCommandBytesMax);
    has_pieces_ = false;
    if (const json::object* usage = object_in(*begun, "usage")) context_used_ = context_of(*usage);
  } else if (const json::object* block = object_in(*event, "content_block");
             type == "content_block_start" && block && word(*block, "type") == "tool_use") {
    say_tool_call(reading, *block, parent);
  } else if (const json::object* delta = object_in(*event, "delta");
             type == "content_block_delta" && delta) {
    const std::string_view kind = word(*delta, "type");
    if (kind == "text_delta") say_piece(reading, "agent_message_chunk", word(*delta, "text"));
    if (kind == "thinking_delta") {
      say_piece(reading, "agent_thought_chunk", word(*delta, "thinking"));
    }
    has_pieces_ = has_pieces_ || !reading.said.empty();
  } else if (const json::object* usage = object_in(*event, "usage");
             type == "message_delta" && usage) {
    context_used_ += count_in(*usage, "output_tokens");
  }
}

void ClaudeTranslator::say_tool_call(ClaudeReading& reading, const json::object& block,
                                     std::string_view parent) {
  static const json::object kNothing;
  const std::string_view call_id = word(block, "id");
  const std::string_view name = word(block, "name");
  const json::object* given = object_in(block, "input");
  const json::object& input = given == nullptr ? kNothing : *given;
  std::string body = "{";
  if (name == kTodoTool) {
    remember(call_id, name);
    if (input.empty()) return;
    append_member(body, "sessionUpdate", "plan");
    append_raw(body, "entries", plan_entries(input));
    reading.said.push_back({.json = update(body + "}"), .text = {}, .is_of_tool = true});
    return;
  }
  const bool is_known = tools_.contains(call_id);
  const ToolWords words = tool_words(name, input, working_dir_);
  append_member(body, "sessionUpdate", is_known ? "tool_call_update" : "tool_call");
  append_member(body, "toolCallId", call_id);
  if (!is_known) {
    append_member(body, "name", name);
    append_member(body, "status", "pending");
    remember(call_id, name);
  }
  append_words(body, words, input);
  append_raw(body, "_meta", tool_meta(name, parent, nullptr));
  reading.said.push_back({.json = update(body + "}"), .text = {}, .is_of_tool = true});
}

// A whole block of a message. Its text was told in pieces, unless the command line wrote it itself.
void ClaudeTranslator::take_assistant(const json::object& message, ClaudeReading& reading) {
  const json::object* body = object_in(message, "message");
  const json::array* blocks = body == nullptr ? nullptr : array_in(*body, "content");
  if (blocks == nullptr) return;
  const std::string_view parent = word(message, "parent_tool_use_id");
  const bool is_told = !parent.empty() || is_true_in(message, "is_api_error_message") ||
                       (has_pieces_ && word(*body, "id") == message_id_);
  if (!is_told) message_id_ = cut_to(word(*body, "id"), kClaudeCommandBytesMax);
  for (const json::value& entry : *blocks) {
    const json::object* block = entry.if_object();
    if (block == nullptr) continue;
    const std::string_view type = word(*block, "type");
    if (type == "tool_use") say_tool_call(reading, *block, parent);
    if (is_told) continue;
    if (type == "text") say_piece(reading, "agent_message_chunk", word(*block, "text"));
    if (type == "thinking") say_piece(reading, "agent_thought_chunk", word(*block, "thinking"));
  }
}

// What tools gave. Other words of "user" are the prompt itself, or what the command line tells the
// model.
void ClaudeTranslator::take_results(const json::object& message, ClaudeReading& reading) {
  const json::object* said = object_in(message, "message");
  const json::array* blocks = said == nullptr ? nullptr : array_in(*said, "content");
  if (blocks == nullptr) return;
  const json::object* report = object_in(message, "tool_use_result");
  for (const json::value& entry : *blocks) {
    const json::object* block = entry.if_object();
    if (block == nullptr || word(*block, "type") != "tool_result") continue;
    const std::string_view call_id = word(*block, "tool_use_id");
    const auto known = tools_.find(call_id);
    const std::string name = known == tools_.end() ? std::string() : known->second;
    if (name == kTodoTool) continue;
    const ResultWords words = result_words(name, *block, report);
    std::string body = R"({"sessionUpdate":"tool_call_update")";
    append_member(body, "toolCallId", call_id);
    append_member(body, "status", is_true_in(*block, "is_error") ? "failed" : "completed");
    if (const json::value* content = block->if_contains("content")) {
      append_raw(body, "rawOutput", json::serialize(*content));
    }
    if (!words.content.empty()) append_raw(body, "content", words.content);
    if (!words.locations.empty()) append_raw(body, "locations", words.locations);
    append_raw(body, "_meta", tool_meta(name, word(message, "parent_tool_use_id"), report));
    reading.said.push_back({.json = update(body + "}"), .text = {}, .is_of_tool = true});
  }
}

void ClaudeTranslator::take_request(const json::object& message, ClaudeReading& reading) {
  const std::string_view request_id = word(message, "request_id");
  const json::object* request = object_in(message, "request");
  const json::object* input = request == nullptr ? nullptr : object_in(*request, "input");
  if (input == nullptr || word(*request, "subtype") != "can_use_tool") {
    reading.unknown_request = request_id;
    return;
  }
  const std::string_view name = word(*request, "tool_name");
  const std::string_view call_id = word(*request, "tool_use_id");
  const ToolWords words = tool_words(name, *input, working_dir_);
  ClaudeQuestion question;
  question.request_id = request_id;
  append_json_string(question.asked.ask_id, request_id);
  question.asked.title = cut_to(words.title, kQuestionTitleBytesMax);
  question.asked.kind = words.kind;
  question.input = json::serialize(*input);
  question.updates = session_updates_in(*request);
  question.asked.options.push_back({std::string(kAllowOnce), "Yes", "allow_once"});
  if (!question.updates.empty()) {
    question.asked.options.push_back(
        {std::string(kAlways), "Yes, and don't ask again in this session", "allow_always"});
  }
  question.asked.options.push_back({"reject", "No", "reject_once"});

  std::string& out = question.json;
  out = R"({"jsonrpc":"2.0","method":"session/request_permission")";
  append_raw(out, "id", question.asked.ask_id);
  append_raw(out, "params", "{");
  append_member(out, "sessionId", session_id_);
  append_raw(out, "toolCall", "{");
  append_member(out, "toolCallId", call_id);
  append_member(out, "name", name);
  append_member(out, "status", "pending");
  append_words(out, words, *input);
  out += '}';
  append_options(out, question.asked.options);
  out += "}}";
  reading.question = std::move(question);
}

void ClaudeTranslator::take_result(const json::object& message, ClaudeReading& reading) const {
  auto result = cli_result_in(message);
  if (!result) return;
  ClaudeEnd end;
  end.result = std::move(*result);
  const json::object* origin = object_in(message, "origin");
  end.is_of_prompt = origin == nullptr || word(*origin, "kind") == "human";
  end.cost_since_last = cost_in(message, "model_usage_since_last_result");
  end.context_used = context_used_;
  end.context_size = context_size_in(message);
  end.meta = R"({"claudeCode":{)";
  for (const std::string_view key : {"subtype", "terminal_reason", "num_turns", "duration_api_ms",
                                     "permission_denials", "model_usage_since_last_result"}) {
    const json::value* value = message.if_contains(key);
    if (value != nullptr) append_raw(end.meta, key, json::serialize(*value));
  }
  end.meta += "}}";
  reading.end = std::move(end);
}

std::string ClaudeTranslator::commands_json(std::string_view commands) const {
  std::string body = R"({"sessionUpdate":"available_commands_update")";
  append_raw(body, "availableCommands", commands);
  return update(body + "}");
}

std::string ClaudeTranslator::usage_json(const ClaudeEnd& end, double cost_usd) const {
  std::string body = R"({"sessionUpdate":"usage_update")";
  append_member(body, "used", end.context_used);
  append_member(body, "size", std::max(end.context_size, end.context_used));
  append_raw(body, "cost", "{");
  append_member(body, "amount", cost_usd);
  append_member(body, "currency", "USD");
  return update(body + "}}");
}

}  // namespace clawdforge
