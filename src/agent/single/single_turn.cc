#include "agent/single/single_turn.h"

#include <fmt/format.h>

#include <new>
#include <utility>

#include "agent/core/answer_schema.h"
#include "agent/failure/agent_failure.h"
#include "agent/single/denied_tool.h"
#include "base/refusals.h"
#include "transcript/permission_rule.h"

namespace clawdforge {
namespace {

// In the words of the Agent Client Protocol.
constexpr std::string_view kStopMaxTurns = "max_turn_requests";

// An agent whose program is not there: a run of it is told so in its answer.
class AbsentAgent final : public OneShotAgent {
 public:
  explicit AbsentAgent(Failure why) { answer_.failure = std::move(why); }

  ProcessMark mark() const override { return {}; }
  Task<OneShotAnswer> answer() override { co_return std::move(answer_); }
  void stop() override {}
  Task<void> finish() override { co_return; }

 private:
  OneShotAnswer answer_;
};

}  // namespace

SingleTurn::SingleTurn(IoExecutor executor, std::unique_ptr<SessionAgent> agent,
                       Conversation conversation, std::string prompt,
                       std::shared_ptr<ShotListener> listener, ByteHold held)
    : agent_(std::move(agent)),
      conversation_(std::move(conversation)),
      prompt_(std::move(prompt)),
      listener_(std::move(listener)),
      held_(std::move(held)),
      tasks_(executor) {}

Task<OneShotAnswer> SingleTurn::answer() {
  is_opening_ = true;
  auto opened = co_await agent_->open(conversation_);
  is_opening_ = false;
  if (!opened) {
    fail_with(std::move(opened.error()));
  } else {
    agent_session_id_ = std::move(opened->agent_session_id);
    if (!is_stopped_) {
      agent_->begin_turn(std::exchange(prompt_, {}));
      tasks_.spawn(listen());
    }
  }
  while (!is_over_ && !is_stopped_) co_await changed_.wait();
  if (!is_over_) fail_with(agent_failed("agent_exited", "The agent was ended."));
  answer_.error_tail = agent_->error_tail();
  co_return std::move(answer_);
}

void SingleTurn::stop() {
  if (std::exchange(is_stopped_, true)) return;
  if (is_opening_) {
    agent_->stop();
  } else {
    agent_->cancel();
  }
  changed_.notify_all();
}

// Until the agent has ended: what it says after its answer is read and forgotten.
Task<void> SingleTurn::listen() {
  bool is_dead = false;
  while (!is_dead) {
    try {
      AgentNews news = co_await agent_->next();
      is_dead = news.death.has_value();
      take(std::move(news));
      if (listener_ && !is_dead) co_await listener_->wait_for_space();
    } catch (const std::bad_alloc&) {
      fail_with(out_of_memory().error());
      agent_->stop();
    }
  }
}

void SingleTurn::take(AgentNews news) {
  // What is said before the turn is not an answer to it.
  if (!news.is_early) {
    for (AgentEvent& event : news.events) {
      if (is_over_ || is_stopped_) return;
      take(std::move(event));
    }
  }
  if (news.death) fail_with(std::move(*news.death));
}

void SingleTurn::take(AgentEvent event) {
  if (event.is_late) return;
  if (event.question) take_question(*event.question, event.json);
  // What an agent says before it uses a tool is not its answer.
  has_used_tool_ = has_used_tool_ || event.is_of_tool;
  if (!event.text.empty()) add_text(event.text);
  auto ended = std::move(event.end);
  if (listener_) listener_->add(std::move(event));
  if (ended && !is_over_) end(std::move(*ended));
}

void SingleTurn::take_question(const PermissionRequest& question, const std::string& message) {
  const Decision decision =
      question.is_answered
          ? decided(question)
          : rule_for(conversation_.permission_mode, question).value_or(choice_of(false, question));
  if (!decision.is_allowed && answer_.denials.size() < kDenialsMax) {
    answer_.denials.push_back(denied_tool(question, message));
  }
  if (!question.is_answered) agent_->answer(question.ask_id, decision.option_id);
}

void SingleTurn::add_text(std::string_view text) {
  if (std::exchange(has_used_tool_, false)) answer_.text.clear();
  const std::size_t bytes = answer_.text.size() + text.size();
  if (bytes > kSingleTextBytesMax) {
    fail_with(agent_failed("agent_output_too_large",
                           fmt::format("The agent answered with more than {} MiB",
                                       kSingleTextBytesMax / (1024 * 1024))));
    return;
  }
  const auto counted = refused_by(held_.resize(bytes > kUncountedTextBytesMax ? bytes : 0));
  if (!counted) {
    fail_with(counted.error());
    return;
  }
  answer_.text += text;
}

void SingleTurn::end(TurnEnd turn) {
  if (!turn.failure && turn.stop_reason == kStopMaxTurns) {
    turn.failure = agent_failed("max_turns", "The agent has used all of its turns.");
  }
  if (turn.failure) {
    fail_with(std::move(*turn.failure));
  } else {
    answer_.structured = std::move(turn.structured);
    if (turn.result) answer_.text = std::move(*turn.result);
    answer_.stop_reason = std::move(turn.stop_reason);
  }
  answer_.usage = turn.usage;
  answer_.cost_usd = turn.cost_usd;
  if (!turn.denials.empty()) answer_.denials = std::move(turn.denials);
  is_over_ = true;
  changed_.notify_all();
}

void SingleTurn::fail_with(Failure failure) {
  if (is_over_) return;
  answer_.text.clear();
  answer_.failure = std::move(failure);
  is_over_ = true;
  changed_.notify_all();
}

Task<void> SingleTurn::finish() {
  co_await agent_->finish(true);
  co_await tasks_.join();
}

Result<std::unique_ptr<OneShotAgent>> start_single_turn(SingleTurnPlace place, StartOrder order,
                                                        OneShotRequest request) {
  Conversation conversation{.name = std::move(place.name),
                            .working_dir = order.working_dir,
                            .temp_dir = order.temp_dir,
                            .agent_session_id = {},
                            .is_unasked = true,
                            .model = std::move(request.model),
                            .system = std::move(request.system),
                            .system_mode = request.system_mode,
                            .effort = std::move(request.effort),
                            .mcp_servers = {},
                            .schema = {},
                            .permission_mode = order.permission_mode,
                            .cost_usd_so_far = 0};
  order.conversation_id = std::move(place.conversation_id);
  order.single = SingleUse{
      .budget_usd = request.budget_usd, .tools = request.tools, .max_turns = request.max_turns};
  std::string prompt = with_attachments(std::move(request.prompt), request.attachments);
  if (takes_schema(order.spec)) {
    conversation.schema = std::move(request.schema);
  } else if (!request.schema.empty()) {
    prompt = with_schema(prompt, request.schema);
  }
  ByteHold held = place.memory == nullptr ? ByteHold() : place.memory->open(order.app.str());
  auto started = place.starter.start_session(std::move(order));
  if (!started && started.error().cause == Cause::agent_missing) {
    return std::make_unique<AbsentAgent>(for_run(std::move(started.error())));
  }
  if (!started) return std::unexpected(std::move(started.error()));
  return std::make_unique<SingleTurn>(place.executor, std::move(*started), std::move(conversation),
                                      std::move(prompt), std::move(request.listener),
                                      std::move(held));
}

}  // namespace clawdforge
