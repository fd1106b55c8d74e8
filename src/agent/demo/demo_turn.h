// One turn of the demo agent: shows what the prompt's words ask for, and answers. It works
// in small steps and attends to what is said to it meanwhile. Blocking; one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "agent/demo/demo_talk.h"
#include "agent/demo/demo_wire.h"
#include "agent/demo/demo_words.h"

namespace clawdforge {

class DemoTurn {
 public:
  enum class End { answered, cancelled, failed, crashed };

  // Waits for one message, that long or for ever, and acts on it: calls cancel() or
  // take_permission() of this turn if it is about that.
  using Attend = std::function<void(std::optional<std::chrono::milliseconds>)>;

  // The wire and the talk outlive it. `question_id` is that of the request for permission.
  DemoTurn(DemoWire& wire, DemoTalk& talk, std::string prompt, std::int64_t question_id,
           Attend attend);

  End run();

  void cancel() { is_cancelled_ = true; }
  // What the one who drives us has decided: the option, or none if the question was put off.
  void take_permission(std::int64_t question_id, std::optional<std::string> option);

  const std::string& prompt() const { return prompt_; }
  const std::string& answer() const { return answer_; }

 private:
  void update(std::string_view fields);
  void show_think();
  void show_plan();
  void show_tool();
  void ask_permission(const std::string& kind);
  void tell_slowly(std::int64_t count);
  void tell_at_length(std::int64_t count);
  void tell_memory();
  void tell(std::string_view text);
  void give_answer(const DemoWish& wish);

  DemoWire& wire_;
  DemoTalk& talk_;
  const std::string prompt_;
  const std::int64_t question_id_;
  const Attend attend_;
  std::string answer_;
  bool is_cancelled_ = false;
  bool is_asking_ = false;
  std::optional<std::string> option_;
};

}  // namespace clawdforge
