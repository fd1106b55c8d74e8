// For tests: an agent without a process, which does what a script says, and the starter that
// hands such agents out. A test sees and steers an agent through its AgentControl, which stays
// when the agent is gone. Io thread only.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agent/core/agent_starter.h"
#include "agent/core/session_agent.h"
#include "base/async/signal.h"

namespace clawdforge {

// One thing that an agent does in a turn.
struct Step {
  enum class Kind { say, question, end, lose_conversation, await_cancel, hang, die };
  Kind kind;
  std::string text = {};
};

inline Step say(std::string text) { return {Step::Kind::say, std::move(text)}; }
inline Step end_turn() { return {Step::Kind::end, "end_turn"}; }

struct AgentScript {
  enum class Opening { works, fails, hangs };
  Opening opening = Opening::works;
  bool can_load = true;
  bool holds_exit = false;  // its tree stays until AgentControl::let_exit()
  // What it does when it is asked this.
  std::function<std::vector<Step>(const std::string& prompt)> turn = [](const std::string& prompt) {
    return std::vector<Step>{say("echo: " + prompt), end_turn()};
  };
};

// What the test and one agent share.
struct AgentControl {
  explicit AgentControl(AgentScript what) : script(std::move(what)) {}
  void let_exit() {
    script.holds_exit = false;
    changed.notify_all();
  }
  void let_open() {
    script.opening = AgentScript::Opening::works;
    changed.notify_all();
  }
  // The agent does this next, also between turns.
  void act(Step step) {
    steps.push_back(std::move(step));
    changed.notify_all();
  }

  AgentScript script;
  Conversation conversation;  // as it was opened
  std::vector<std::string> prompts;
  std::vector<std::optional<std::string>> answers;  // to its questions
  std::deque<Step> steps;
  bool is_opening = false;
  bool is_cancelled = false;
  bool is_stopped = false;  // told to end, or dead
  bool has_left = false;    // dead, although next() has not said so
  bool is_gone = false;     // nothing of its tree is left
  bool is_for_good = false;
  Signal changed;
};

class ScriptedAgent final : public SessionAgent {
 public:
  explicit ScriptedAgent(std::shared_ptr<AgentControl> control) : control_(std::move(control)) {}

  bool is_ending() const override { return control_->has_left; }
  ProcessMark mark() const override { return {.pid = 4711, .start_time = 1, .boot_id = "boot"}; }

  Task<Opening> open(Conversation conversation) override {
    const auto control = control_;
    control->conversation = std::move(conversation);
    control->is_opening = true;
    while (control->script.opening == AgentScript::Opening::hangs && !control->is_stopped) {
      co_await control->changed.wait();
    }
    control->is_opening = false;
    if (control->script.opening != AgentScript::Opening::works || control->is_stopped) {
      co_return fail(Errc::agent_failed, "agent_exited", "The agent did not open.");
    }
    const std::string known = control->conversation.agent_session_id;
    co_return Opened{.agent_session_id = known.empty() ? "conversation" : known,
                     .is_loaded = !known.empty() && control->script.can_load,
                     .can_load = control->script.can_load,
                     .version = "1"};
  }

  void begin_turn(std::string prompt) override {
    control_->is_cancelled = false;
    for (Step& step : control_->script.turn(prompt)) control_->steps.push_back(std::move(step));
    control_->prompts.push_back(std::move(prompt));
    control_->changed.notify_all();
  }

  Task<AgentNews> next() override {
    const auto control = control_;
    AgentNews news;
    while (news.events.empty() && !news.death) {
      if (control->is_stopped) {
        news.death = fail(Errc::agent_failed, "agent_exited", "The agent ended.").error();
      } else if (!can_act(*control)) {
        co_await control->changed.wait();
      } else {
        act(*control, news);
      }
    }
    co_return news;
  }

  void cancel() override {
    control_->is_cancelled = true;
    control_->changed.notify_all();
  }
  void answer(std::string /*ask_id*/, std::optional<std::string> option_id) override {
    control_->answers.push_back(std::move(option_id));
    control_->changed.notify_all();
  }
  void stop() override {
    control_->is_stopped = true;
    control_->changed.notify_all();
  }
  Task<void> finish(bool is_for_good) override {
    const auto control = control_;
    stop();
    control->is_for_good = is_for_good;
    while (control->script.holds_exit) co_await control->changed.wait();
    control->is_gone = true;
  }
  std::string error_tail() const override { return "tail"; }

 private:
  static bool can_act(const AgentControl& control) {
    if (control.steps.empty()) return false;
    const Step::Kind kind = control.steps.front().kind;
    if (kind == Step::Kind::await_cancel) return control.is_cancelled;
    return kind != Step::Kind::hang;
  }

  static void act(AgentControl& control, AgentNews& news) {
    const Step step = std::move(control.steps.front());
    control.steps.pop_front();
    AgentEvent event;
    event.json = R"({"step":")" + step.text + R"("})";
    switch (step.kind) {
      case Step::Kind::await_cancel:
        event.end.emplace();
        event.end->stop_reason = "cancelled";
        break;
      case Step::Kind::hang:
        return;
      case Step::Kind::die:
        control.is_stopped = true;
        return;
      case Step::Kind::say:
        event.text = step.text;
        break;
      case Step::Kind::question:
        event.question.emplace();
        event.question->ask_id = "q";
        event.question->title = step.text;
        event.question->kind = "edit";
        event.question->options = {{"yes", "Yes", "allow_once"}};
        break;
      case Step::Kind::end:
      case Step::Kind::lose_conversation:
        event.end.emplace();
        event.end->stop_reason = "end_turn";
        event.end->has_lost_conversation = step.kind == Step::Kind::lose_conversation;
        break;
    }
    news.events.push_back(std::move(event));
  }

  const std::shared_ptr<AgentControl> control_;
};

class ScriptedStarter final : public AgentStarter {
 public:
  // For the agents that are started from now on.
  AgentScript script;
  bool is_program_there = true;
  std::vector<std::shared_ptr<AgentControl>> started;  // the newest last

  Result<std::unique_ptr<SessionAgent>> start_session(StartOrder /*order*/) override {
    if (!is_program_there) return fail(Errc::unavailable, "agent_not_found", "It is not there.");
    started.push_back(std::make_shared<AgentControl>(script));
    return std::make_unique<ScriptedAgent>(started.back());
  }
  Result<std::unique_ptr<OneShotAgent>> start_one_shot(StartOrder /*order*/,
                                                       OneShotRequest /*request*/) override {
    return fail(Errc::internal, "not_scripted", "Sessions start no one-shots.");
  }
};

}  // namespace clawdforge
