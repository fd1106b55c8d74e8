#include "agent/demo/demo_acp.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <map>
#include <span>
#include <utility>
#include <variant>

#include "agent/demo/demo_turn.h"
#include "base/version.h"

namespace clawdforge {
namespace json = boost::json;

namespace {

constexpr std::size_t kDemoTalksMax = 1'000;
constexpr int kCrashed = 3;
constexpr std::int64_t kContextTokens = 200'000;

constexpr int kParseError = -32700;
constexpr int kInvalidRequest = -32600;
constexpr int kMethodNotFound = -32601;
constexpr int kInvalidParams = -32602;
constexpr int kInternalError = -32603;
constexpr int kNotFound = -32002;

constexpr std::array<std::string_view, 2> kModels = {"demo-small", "demo-large"};
constexpr std::array<std::string_view, 5> kEfforts = {"low", "medium", "high", "xhigh", "max"};
constexpr std::string_view kModelOption = "model";
constexpr std::string_view kEffortOption = "effort";

struct Mistake {
  int code;
  std::string_view message;
};
using Answer = std::variant<json::object, Mistake>;

// Empty: there is no such text.
std::string text_at(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  const json::string* text = value ? value->if_string() : nullptr;
  return text ? std::string(*text) : std::string();
}

const json::object* object_at(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  return value ? value->if_object() : nullptr;
}

json::object select(std::string_view id, std::string_view name, std::string_view category,
                    std::span<const std::string_view> values, std::string_view current) {
  json::array options;
  for (const std::string_view value : values) {
    options.push_back(json::object{{"value", value}, {"name", value}});
  }
  return {{"id", id},
          {"name", name},
          {"category", category},
          {"type", "select"},
          {"currentValue", current},
          {"options", std::move(options)}};
}

json::array config_options(const DemoTalk& talk) {
  return {select(kModelOption, "Model", "model", kModels, talk.model),
          select(kEffortOption, "Effort", "thought_level", kEfforts, talk.effort)};
}

// `_meta.systemPrompt` is a text, or an object whose `append` is one.
std::string system_prompt(const json::object& params) {
  const json::object* meta = object_at(params, "_meta");
  if (!meta) return {};
  const json::object* appended = object_at(*meta, "systemPrompt");
  return appended ? text_at(*appended, "append") : text_at(*meta, "systemPrompt");
}

std::string prompt_text(const json::array& blocks) {
  std::string prompt;
  for (const json::value& block : blocks) {
    const json::object* object = block.if_object();
    if (!object) continue;
    const json::object* resource = object_at(*object, "resource");
    const std::string kind = text_at(*object, "type");
    if (kind == "text") prompt += text_at(*object, "text");
    if (kind == "resource_link") prompt += text_at(*object, "uri") + "\n";
    if (kind == "resource" && resource) prompt += text_at(*resource, "text");
  }
  return prompt;
}

json::object initialized() {
  return {{"protocolVersion", 1},
          {"agentInfo", {{"name", "clawdforge-demo"}, {"version", kVersion}}},
          {"agentCapabilities",
           {{"loadSession", true},
            {"promptCapabilities", {{"image", false}, {"audio", false}, {"embeddedContext", true}}},
            {"mcpCapabilities", {{"http", true}, {"sse", true}}},
            {"sessionCapabilities", {{"resume", json::object()}}}}},
          {"authMethods", json::array()}};
}

class Demo {
 public:
  Demo(int input, int output, std::string temp_dir)
      : wire_(input, output), temp_dir_(std::move(temp_dir)) {}

  int run() {
    while (!exit_code_) attend(std::nullopt);
    wire_.flush();
    return *exit_code_;
  }

 private:
  // Waits for one message and acts on it.
  void attend(std::optional<std::chrono::milliseconds> wait) {
    std::string line;
    switch (wire_.hear(line, wait)) {
      case DemoWire::Heard::line:
        return act_on(line);
      case DemoWire::Heard::too_long:
        return refuse(nullptr, {kInvalidRequest, "The line is too long."});
      case DemoWire::Heard::nothing:
        return;
      case DemoWire::Heard::end:
        exit_code_ = 0;
        if (turn_) turn_->cancel();
    }
  }

  void act_on(const std::string& line) {
    boost::system::error_code fault;
    const json::value message = json::parse(line, fault);
    if (fault) return refuse(nullptr, {kParseError, "This is not JSON."});
    const json::object* object = message.if_object();
    if (!object) return refuse(nullptr, {kInvalidRequest, "A message is an object."});
    const json::value* id = object->if_contains("id");
    const std::string method = text_at(*object, "method");
    if (method.empty()) return take_response(*object);
    const json::object* found = object_at(*object, "params");
    const json::object params = found ? *found : json::object();
    if (!id) return take_notification(method, params);
    if (method == "session/prompt") return prompt(*id, params);
    const Answer answer = answer_to(method, params);
    if (const auto* mistake = std::get_if<Mistake>(&answer)) return refuse(*id, *mistake);
    reply(*id, std::get<json::object>(answer));
  }

  void reply(const json::value& id, const json::object& result) {
    wire_.say(fmt::format(R"({{"jsonrpc":"2.0","id":{},"result":{}}})", json::serialize(id),
                          json::serialize(result)));
  }

  void refuse(const json::value& id, Mistake mistake) {
    const json::object error{{"code", mistake.code}, {"message", mistake.message}};
    wire_.say(fmt::format(R"({{"jsonrpc":"2.0","id":{},"error":{}}})", json::serialize(id),
                          json::serialize(error)));
  }

  void take_notification(const std::string& method, const json::object& params) {
    if (method == "session/cancel" && turn_ && text_at(params, "sessionId") == turn_talk_) {
      turn_->cancel();
    }
  }

  // The only thing that we ever ask is a permission. An error in reply does not permit anything.
  void take_response(const json::object& message) {
    const json::value* id = message.if_contains("id");
    if (!turn_ || !id || !id->is_int64()) return;
    const json::object* result = object_at(message, "result");
    const json::object* outcome = result ? object_at(*result, "outcome") : nullptr;
    const bool is_selected = outcome && text_at(*outcome, "outcome") == "selected";
    turn_->take_permission(
        id->get_int64(), is_selected ? std::optional(text_at(*outcome, "optionId")) : std::nullopt);
  }

  Answer answer_to(const std::string& method, const json::object& params) {
    if (method == "initialize") return initialized();
    if (method == "authenticate") return json::object();
    if (method == "session/new" || method == "session/load" || method == "session/resume") {
      return open(method, params);
    }
    const auto talk = talks_.find(text_at(params, "sessionId"));
    const bool is_option = method == "session/set_config_option";
    if (!is_option && method != "session/set_mode") {
      return Mistake{kMethodNotFound, "There is no such method."};
    }
    if (talk == talks_.end()) return Mistake{kNotFound, "There is no such session."};
    return is_option ? set_option(talk->second, params) : json::object();
  }

  Answer open(std::string_view method, const json::object& params) {
    if (!text_at(params, "cwd").starts_with('/')) {
      return Mistake{kInvalidParams, "cwd is an absolute path."};
    }
    const json::value* servers = params.if_contains("mcpServers");
    if (!servers || !servers->is_array()) return Mistake{kInvalidParams, "mcpServers is a list."};
    const bool is_new = method == "session/new";
    const std::string wanted = is_new ? std::string() : text_at(params, "sessionId");
    if (turn_ && wanted == turn_talk_) return Mistake{kInvalidRequest, "A turn is under way."};
    if (talks_.size() >= kDemoTalksMax) return Mistake{kInternalError, "There are too many."};
    auto talk = is_new ? begin_talk(temp_dir_) : find_talk(temp_dir_, wanted);
    if (!talk && is_new) return Mistake{kInternalError, "The conversation cannot be kept."};
    if (!talk) return Mistake{kNotFound, "There is no such session."};
    talk->system = system_prompt(params);
    talk->model = kModels[0];
    talk->effort = kEfforts[1];
    const std::string id = talk->id;
    const DemoTalk& kept = talks_.insert_or_assign(id, std::move(*talk)).first->second;
    if (method == "session/load") replay(kept);
    json::object result{{"configOptions", config_options(kept)}};
    if (is_new) result["sessionId"] = id;
    return result;
  }

  void replay(const DemoTalk& talk) {
    const auto chunk = [&](std::string_view kind, const std::string& text) {
      const json::object update{{"sessionUpdate", kind},
                                {"content", {{"type", "text"}, {"text", text}}}};
      const json::object params{{"sessionId", talk.id}, {"update", update}};
      wire_.say(fmt::format(R"({{"jsonrpc":"2.0","method":"session/update","params":{}}})",
                            json::serialize(params)));
    };
    for (const DemoExchange& exchange : talk.exchanges) {
      chunk("user_message_chunk", exchange.prompt);
      chunk("agent_message_chunk", exchange.answer);
    }
  }

  static Answer set_option(DemoTalk& talk, const json::object& params) {
    const std::string option = text_at(params, "configId");
    const std::string value = text_at(params, "value");
    const auto is_one_of = [&](std::span<const std::string_view> values) {
      return std::ranges::find(values, value) != values.end();
    };
    if (option == kModelOption && is_one_of(kModels)) {
      talk.model = value;
    } else if (option == kEffortOption && is_one_of(kEfforts)) {
      talk.effort = value;
    } else {
      return Mistake{kInvalidParams, "There is no such option, or it has no such value."};
    }
    return json::object{{"configOptions", config_options(talk)}};
  }

  void prompt(const json::value& id, const json::object& params) {
    const auto talk = talks_.find(text_at(params, "sessionId"));
    const json::value* blocks = params.if_contains("prompt");
    if (turn_) return refuse(id, {kInvalidRequest, "A turn is under way."});
    if (talk == talks_.end()) return refuse(id, {kNotFound, "There is no such session."});
    if (!blocks || !blocks->is_array()) return refuse(id, {kInvalidParams, "prompt is a list."});
    DemoTurn turn(wire_, talk->second, prompt_text(blocks->get_array()), next_question_++,
                  [this](auto wait) { attend(wait); });
    turn_ = &turn;
    turn_talk_ = talk->first;
    const DemoTurn::End end = turn.run();
    turn_ = nullptr;
    if (end == DemoTurn::End::crashed) {
      exit_code_ = kCrashed;
    } else if (end == DemoTurn::End::failed) {
      refuse(id, {kInternalError, "It failed, as it was told to."});
    } else {
      settle(id, talk->second, turn, end == DemoTurn::End::cancelled);
    }
  }

  // The conversation is written before the turn is said to be over, so that it is not lost
  // if the caller ends us right then.
  void settle(const json::value& id, DemoTalk& talk, const DemoTurn& turn, bool is_cancelled) {
    const auto in = static_cast<std::int64_t>(turn.prompt().size());
    const auto out = static_cast<std::int64_t>(turn.answer().size());
    talk.token_count += in + out;
    wire_.say(fmt::format(
        R"({{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"{}","update":{{)"
        R"("sessionUpdate":"usage_update","used":{},"size":{},)"
        R"("cost":{{"amount":0,"currency":"USD"}}}}}}}})",
        talk.id, talk.token_count, kContextTokens));
    if (!keep_exchange(talk, {turn.prompt(), turn.answer()})) {
      return refuse(id, {kInternalError, "The conversation cannot be kept."});
    }
    reply(id, {{"stopReason", is_cancelled ? "cancelled" : "end_turn"},
               {"usage",
                {{"inputTokens", in},
                 {"outputTokens", out},
                 {"cachedReadTokens", 0},
                 {"cachedWriteTokens", 0},
                 {"totalTokens", in + out}}}});
  }

  DemoWire wire_;
  const std::string temp_dir_;
  std::map<std::string, DemoTalk, std::less<>> talks_;
  DemoTurn* turn_ = nullptr;  // under way
  std::string turn_talk_;     // the id of its conversation
  std::int64_t next_question_ = 0;
  std::optional<int> exit_code_;
};

}  // namespace

int demo_acp(int input, int output, const std::string& temp_dir) {
  return Demo(input, output, temp_dir).run();
}

}  // namespace clawdforge
