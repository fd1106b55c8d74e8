// AcpAgent is a SessionAgent that speaks the Agent Client Protocol, version 1: JSON-RPC,
// one message a line, on the standard input and output of its process. Io thread only; it
// outlives no Spawner, and its owner calls finish() before it dies. Nothing is read from
// the agent except by a caller that waits in open() or next().
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "agent/acp/acp_message.h"
#include "agent/acp/acp_request.h"
#include "agent/acp/acp_turn.h"
#include "agent/core/agent_pipe.h"
#include "agent/core/line_reader.h"
#include "agent/core/session_agent.h"

namespace clawdforge {

// Tool calls whose kind is remembered; at one more all are forgotten.
inline constexpr std::size_t kAgentToolKindsMax = 4096;
// Longer ids of tool calls are not remembered.
inline constexpr std::size_t kAgentToolIdBytesMax = 256;
// Questions open at once; one more is answered as cancelled.
inline constexpr std::size_t kAgentQuestionsMax = 256;
// Of what is said between the answer that opens the conversation and the end of open().
inline constexpr std::size_t kAgentEarlyBytesMax = 1024 * 1024;

class AcpAgent final : public SessionAgent {
 public:
  AcpAgent(std::unique_ptr<Child> child, AgentSetup setup);

  ProcessMark mark() const override { return pipe_.mark(); }
  Task<std::optional<Failure>> warm_up() override;
  void adopt(AppName app) override;
  bool is_ending() const override { return pipe_.has_left(); }
  Task<Opening> open(Conversation conversation) override;
  void begin_turn(std::string prompt) override;
  Task<AgentNews> next() override;
  void cancel() override;
  void answer(std::string ask_id, std::optional<std::string> option_id) override;
  void stop() override { pipe_.stop(); }
  Task<void> finish(bool is_for_good) override;
  std::string error_tail() const override { return pipe_.error_tail(); }

 private:
  using Answer = std::expected<AcpMessage, Failure>;   // maybe a JSON-RPC error
  using Answered = std::expected<AcpResult, Failure>;  // a result
  using Chosen = std::expected<bool, Failure>;
  using Step = std::optional<Failure>;  // none: it went well

  // acp_open.cc: the steps of open(), each a request and its answer.
  Task<Step> open_in_steps();
  Task<Step> initialize();
  Task<Step> load_or_begin();
  Task<Step> begin_another();
  // False: the agent has no such option, or does not take the value.
  Task<Chosen> choose(std::string category, std::string id, std::string value);
  Task<Step> set_title();
  std::string agent_mode() const;
  Task<Step> choose_mode();
  Task<Step> choose_model();
  Task<Step> choose_effort();
  Task<Answer> ask(std::string method, std::string params);
  Task<Answered> ask_well(std::string method, std::string params);
  void take_early(AcpMessage message);
  // The agent takes no system prompt: it goes in front of the first prompt.
  bool has_system_to_say() const { return !conversation_.system.empty() && !dialect_.takes_system; }
  const AcpOption* option_of(std::string_view category, std::string_view id) const;
  void note_choices() const;
  Failure failure_of_error(const AcpError& error) const;

  // acp_agent.cc: reading, and what a message means.
  Task<bool> read_more();
  std::optional<AcpMessage> next_message();
  // Reads a large line that next_message() has come upon. False: there is none.
  Task<bool> read_large_line();
  std::optional<AcpMessage> checked(std::optional<AcpMessage> message, bool is_blank);
  void take(AcpMessage message, std::vector<AgentEvent>& events);
  void take_question(PermissionRequest& question, const std::string& tool_call_id);
  // False: the agent is ended, because we would have to keep and repeat too long an id.
  bool check_id(const AcpMessage& message);
  void note_update(const AcpMessage& message);
  TurnEnd end_turn(const AcpMessage& message);
  void cancel_questions();

  void send(std::string line);

  AgentSetup setup_;
  AgentPipe pipe_;
  LineReader reader_;
  bool is_nonsense_ = false;  // it has broken the protocol, and nothing of it counts any more
  std::string large_line_;    // given to the compute worker next
  std::optional<AcpMessage> large_message_;  // what the worker has read
  ByteHold large_memory_;                    // what counts it
  std::int64_t last_id_ = 0;

  Conversation conversation_;
  AcpDialect dialect_;
  AcpResult abilities_;   // what initialize answered
  bool is_warm_ = false;  // that was done ahead
  std::vector<AcpOption> options_;
  std::string mode_;
  bool is_loaded_ = false;
  bool owes_system_ = false;  // the system prompt goes in front of the first prompt

  std::optional<std::int64_t> prompt_id_;  // of the turn under way
  bool is_cancelled_ = false;              // that turn
  TurnCost cost_;
  std::map<std::string, std::string, std::less<>> tool_kinds_;  // by the id of the call
  std::set<std::string, std::less<>> questions_;                // open ones, by ask_id

  std::vector<AgentEvent> early_;  // said before open() returned
  std::size_t early_bytes_ = 0;
  GaugeShare early_shown_;
  std::size_t skipped_lines_ = 0;
  std::optional<Failure> death_;
};

}  // namespace clawdforge
