// SingleTurn makes an agent of a single prompt out of an agent of sessions, whatever that speaks:
// it opens a conversation, has one turn in it, gathers what is said, and ends it. Questions of the
// agent are answered by the permission mode; there is no caller to ask. Owned by one run; io thread
// only.
//
// The agent comes from AgentStarter::start_session(), as those of sessions do, so whatever stands
// behind that seam serves runs, too.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "agent/core/agent_starter.h"
#include "agent/core/one_shot_agent.h"
#include "agent/core/session_agent.h"
#include "base/async/async.h"
#include "base/async/signal.h"
#include "base/async/task_group.h"
#include "base/limits/byte_budget.h"

namespace clawdforge {

// Of the agent's answer; one that says more has failed.
inline constexpr std::size_t kSingleTextBytesMax = 32 * 1024 * 1024;
// What an answer may have without being counted against the memory budget.
inline constexpr std::size_t kUncountedTextBytesMax = 1024 * 1024;

class SingleTurn final : public OneShotAgent {
 public:
  // `held` counts the answer while it grows.
  SingleTurn(IoExecutor executor, std::unique_ptr<SessionAgent> agent, Conversation conversation,
             std::string prompt, std::shared_ptr<ShotListener> listener, ByteHold held);

  ProcessMark mark() const override { return agent_->mark(); }
  std::string agent_session_id() const override { return agent_session_id_; }
  Task<OneShotAnswer> answer() override;
  // While the conversation is being opened the tree is ended at once; later finish() does that, so
  // that the agent can put away what it keeps of the conversation.
  void stop() override;
  Task<void> finish() override;

 private:
  Task<void> listen();
  void take(AgentNews news);
  void take(AgentEvent event);
  void take_question(const PermissionRequest& question, const std::string& message);
  void add_text(std::string_view text);
  void end(TurnEnd turn);
  void fail_with(Failure failure);

  const std::unique_ptr<SessionAgent> agent_;
  Conversation conversation_;
  std::string prompt_;
  const std::shared_ptr<ShotListener> listener_;  // may be null
  std::string agent_session_id_;
  ByteHold held_;
  OneShotAnswer answer_;
  bool is_opening_ = false;
  bool is_stopped_ = false;
  bool is_over_ = false;        // there is an answer
  bool has_used_tool_ = false;  // since the last piece of the answer
  Signal changed_;              // one of the two before
  TaskGroup tasks_;
};

// Whether a run of this agent is a turn of an agent of sessions: those alone can be listened to.
inline bool takes_single_turn(const AgentSpec& spec, bool is_streamed) {
  return is_streamed || spec.one_shot_protocol == OneShotProtocol::none;
}

// Where the agent of a single turn is started from. `memory` may be null: without a limit.
struct SingleTurnPlace {
  IoExecutor executor;
  AgentStarter& starter;
  ByteBudget* memory = nullptr;
  std::string name;             // of the conversation: the run's id
  std::string conversation_id;  // a UUID, for agents that take one
};

// Errors as AgentStarter::start_session(). That the program is not there shows in the answer.
Result<std::unique_ptr<OneShotAgent>> start_single_turn(SingleTurnPlace place, StartOrder order,
                                                        OneShotRequest request);

}  // namespace clawdforge
