// AcpxAgent is a SessionAgent behind the acpx command line: one short acpx process for each
// thing that is asked, and behind it the queue owner that acpx leaves running, with the
// agent. All of them live in one tree, that of a program host (process/program_host.h), and
// end with it. Io thread only; it outlives no Spawner, and its owner calls finish() before
// it dies.
//
// A turn ends at the line with the agent's stop reason; the acpx process, which lingers for
// a second after that, is left to itself. Questions about permissions are answered by acpx.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/acp/acp_turn.h"
#include "agent/acpx/acpx_command.h"
#include "agent/acpx/acpx_line.h"
#include "agent/core/agent_pipe.h"
#include "agent/core/line_reader.h"
#include "agent/core/session_agent.h"
#include "process/host/host_wire.h"

namespace clawdforge {

// How long acpx may take to close its session before the tree is ended anyway.
inline constexpr std::chrono::milliseconds kAcpxCloseMax{5000};
// How often a turn is cancelled that acpx says it does not run yet.
inline constexpr int kAcpxCancelsMax = 10;

class AcpxAgent final : public SessionAgent {
 public:
  // `host` is a program host in the session's directory, `program` is acpx.
  AcpxAgent(std::unique_ptr<Child> host, AgentSetup setup, std::string program);

  ProcessMark mark() const override { return pipe_.mark(); }
  Task<Opening> open(Conversation conversation) override;
  void begin_turn(std::string prompt) override;
  Task<AgentNews> next() override;
  void cancel() override;
  void answer(std::string, std::optional<std::string>) override {}  // acpx has answered
  void stop() override { pipe_.stop(); }
  Task<void> finish(bool is_for_good) override;
  std::string error_tail() const override { return pipe_.error_tail(); }

 private:
  using Step = std::optional<Failure>;
  enum class Verb { control, prompt, cancel };
  // One acpx process.
  struct Operation {
    Verb verb = Verb::control;
    LineReader lines;
    AcpxTraffic traffic;               // of a prompt
    std::optional<AcpxFault> fault;    // likewise
    bool is_over = false;              // likewise: its turn has ended
    std::optional<AcpxAnswer> answer;  // of anything else
    std::optional<ExitStatus> status;
  };
  using Answered = std::expected<AcpxAnswer, Failure>;

  // acpx_open.cc
  Task<Step> open_in_steps();
  Task<Step> open_session();
  Task<Step> choose_effort();
  Task<Answered> ask(HostOrder order);
  Task<void> close_session();
  Task<void> limit_close();

  std::uint32_t start(Verb verb, HostOrder order);
  std::size_t held_bytes() const;
  Task<bool> read_more();
  void take_frames(AgentNews& news);
  void take_lines(std::uint32_t number, Operation& operation, AgentNews& news);
  // Goes on where take_frames() has come upon a large line. False: it has not.
  Task<bool> take_large_line(AgentNews* news);
  void take_traffic(std::uint32_t number, Operation& operation, AcpxTraffic::Heard heard,
                    AgentNews& news);
  void take_end(std::uint32_t number, Operation& operation, std::string_view end);
  void note_end(std::uint32_t number, Operation& operation);
  void note_event(AcpMessage message, bool is_late, AgentNews& news);
  void end_turn(Operation& operation, AcpMessage message, AgentNews& news);
  void begin_cancel();

  const AgentSetup setup_;
  const std::string program_;
  AgentPipe pipe_;
  AcpxCall call_;
  std::string config_;      // the file of the MCP servers; empty: none
  std::string record_id_;   // acpx's own
  bool is_loaded_ = false;  // by acpx's word; its traffic tells whether that is true
  bool owes_system_ = false;
  bool has_talked_ = false;  // the agent knows something that it could forget

  HostFrameReader frames_;
  // A large line, which the compute worker reads before anything else is taken.
  struct LargeLine {
    std::uint32_t number = 0;
    std::string line;
    std::optional<std::string> end;  // the process has ended after it
  };
  std::optional<LargeLine> large_;
  bool is_nonsense_ = false;  // the agent has broken the protocol: nothing of it counts any more
  std::map<std::uint32_t, Operation> operations_;
  std::uint32_t last_operation_ = 0;
  std::uint32_t turn_ = 0;  // the prompt whose turn is under way; zero: none
  bool is_asked_ = false;   // and it has reached the agent
  bool is_cancelled_ = false;
  int cancels_ = 0;
  std::string session_id_;  // the agent's own; changes with a new conversation
  TurnCost cost_;

  std::optional<Timer> close_limit_;  // while acpx closes its session
  bool is_finishing_ = false;
  std::optional<Failure> death_;
};

}  // namespace clawdforge
