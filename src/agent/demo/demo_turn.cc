#include "agent/demo/demo_turn.h"

#include <fmt/format.h>

#include <utility>

#include "base/json_text.h"

namespace clawdforge {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kSlowStep{200};
constexpr std::int64_t kPiecesBetweenLooks = 256;
constexpr std::string_view kAllowPrefix = "allow";

std::string quoted(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

}  // namespace

DemoTurn::DemoTurn(DemoWire& wire, DemoTalk& talk, std::string prompt, std::int64_t question_id,
                   Attend attend)
    : wire_(wire),
      talk_(talk),
      prompt_(std::move(prompt)),
      question_id_(question_id),
      attend_(std::move(attend)) {}

DemoTurn::End DemoTurn::run() {
  const DemoWish wish = demo_wish(prompt_);
  if (wish.is_fail) return End::failed;
  if (wish.is_think) show_think();
  if (wish.is_plan) show_plan();
  if (wish.is_tool) show_tool();
  if (wish.is_crash) {
    tell("This answer ends in the mid");
    wire_.flush();
    return End::crashed;
  }
  give_answer(wish);
  return is_cancelled_ ? End::cancelled : End::answered;
}

void DemoTurn::give_answer(const DemoWish& wish) {
  if (wish.permission) ask_permission(*wish.permission);
  if (wish.slow_count > 0 && !is_cancelled_) tell_slowly(wish.slow_count);
  if (wish.long_count > 0 && !is_cancelled_) tell_at_length(wish.long_count);
  if (wish.to_remember && !is_cancelled_) {
    tell(wish.to_remember->empty() ? "I will remember."
                                   : fmt::format("I will remember: {}", *wish.to_remember));
  }
  if (wish.is_recall && !is_cancelled_) tell_memory();
  if (wish.is_model && !is_cancelled_) {
    tell(fmt::format("The model is {}, the effort is {}.", talk_.model, talk_.effort));
  }
  if (wish.is_system && !is_cancelled_) {
    tell(talk_.system.empty() ? "I was given no system prompt."
                              : fmt::format("My system prompt is: {}", talk_.system));
  }
  if (answer_.empty() && !is_cancelled_) tell("You said: " + prompt_);
}

void DemoTurn::update(std::string_view fields) {
  wire_.say(fmt::format(
      R"({{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"{}","update":{{{}}}}}}})",
      talk_.id, fields));
}

void DemoTurn::tell(std::string_view text) {
  answer_ += text;
  update(
      fmt::format(R"("sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":{}}})",
                  quoted(text)));
}

void DemoTurn::show_think() {
  update(R"("sessionUpdate":"agent_thought_chunk",)"
         R"("content":{"type":"text","text":"I think about what was said."})");
}

void DemoTurn::show_plan() {
  update(R"("sessionUpdate":"plan","entries":[)"
         R"({"content":"Read the prompt","priority":"high","status":"completed"},)"
         R"({"content":"Think of an answer","priority":"medium","status":"in_progress"},)"
         R"({"content":"Say it","priority":"low","status":"pending"}])");
}

void DemoTurn::show_tool() {
  const std::string id = fmt::format("tool-{}", question_id_);
  update(fmt::format(
      R"("sessionUpdate":"tool_call","toolCallId":"{}","title":"Count the letters",)"
      R"("name":"count_letters","kind":"read","status":"in_progress","rawInput":{{"text":{}}})",
      id, quoted(prompt_)));
  update(fmt::format(R"("sessionUpdate":"tool_call_update","toolCallId":"{}","status":"completed",)"
                     R"("rawOutput":{{"bytes":{}}})",
                     id, prompt_.size()));
}

void DemoTurn::ask_permission(const std::string& kind) {
  const std::string id = fmt::format("asked-{}", question_id_);
  const std::string call =
      fmt::format(R"("toolCallId":"{}","title":"Pretend to {}","name":"pretend","kind":"{}",)"
                  R"("status":"pending","rawInput":{{"kind":"{}"}})",
                  id, kind, kind, kind);
  update(R"("sessionUpdate":"tool_call",)" + call);
  wire_.say(
      fmt::format(R"({{"jsonrpc":"2.0","id":{},"method":"session/request_permission","params":{{)"
                  R"("sessionId":"{}","toolCall":{{{}}},"options":[)"
                  R"({{"optionId":"allow-once","name":"Allow","kind":"allow_once"}},)"
                  R"({{"optionId":"allow-always","name":"Always allow","kind":"allow_always"}},)"
                  R"({{"optionId":"reject-once","name":"Reject","kind":"reject_once"}}]}}}})",
                  question_id_, talk_.id, call));
  is_asking_ = true;
  while (is_asking_ && !is_cancelled_) attend_(std::nullopt);
  is_asking_ = false;
  const bool is_allowed = !is_cancelled_ && option_ && option_->starts_with(kAllowPrefix);
  update(fmt::format(R"("sessionUpdate":"tool_call_update","toolCallId":"{}","status":"{}")", id,
                     is_allowed ? "completed" : "failed"));
  if (is_cancelled_) return;
  tell(is_allowed ? fmt::format("I was allowed to {}.", kind)
       : option_  ? fmt::format("I was not allowed to {}.", kind)
                  : fmt::format("I was not told whether I may {}.", kind));
}

void DemoTurn::take_permission(std::int64_t question_id, std::optional<std::string> option) {
  if (!is_asking_ || question_id != question_id_) return;
  option_ = std::move(option);
  is_asking_ = false;
}

void DemoTurn::tell_slowly(std::int64_t count) {
  for (std::int64_t i = 1; i <= count && !is_cancelled_; ++i) {
    tell(fmt::format("Slowly {} of {}. ", i, count));
    const auto until = std::chrono::steady_clock::now() + kSlowStep;
    while (i < count && !is_cancelled_) {
      const auto left = std::chrono::ceil<milliseconds>(until - std::chrono::steady_clock::now());
      if (left <= milliseconds(0)) break;
      attend_(left);
    }
  }
}

void DemoTurn::tell_at_length(std::int64_t count) {
  for (std::int64_t i = 1; i <= count && !is_cancelled_; ++i) {
    tell(fmt::format("Line {} of {}.\n", i, count));
    if (i % kPiecesBetweenLooks == 0) attend_(milliseconds(0));
  }
}

void DemoTurn::tell_memory() {
  if (talk_.exchanges.empty()) return tell("I remember nothing: nothing was said yet.");
  std::string memory = "I remember:";
  for (std::size_t i = 0; i < talk_.exchanges.size(); ++i) {
    memory += fmt::format("\n{}. {}", i + 1, talk_.exchanges[i].prompt);
  }
  tell(memory);
}

}  // namespace clawdforge
