// ClaudeStreamAgent is a SessionAgent behind Claude's own command line in its stream-json mode: one
// process for a conversation, JSON lines both ways, no adapter between us. Callers see the Agent
// Client Protocol: ClaudeTranslator makes it. Io thread only; it outlives no Spawner, and its owner
// calls finish() before it dies. Nothing is read from the agent except by a caller that waits in
// open() or next().
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/claude_stream/claude_translator.h"
#include "agent/core/agent_pipe.h"
#include "agent/core/line_reader.h"
#include "agent/core/session_agent.h"

namespace clawdforge {

// Questions open at once; one more is denied.
inline constexpr std::size_t kClaudeQuestionsMax = 256;
// Of the id of a question, which we have to give back. An agent with a longer one is ended.
inline constexpr std::size_t kClaudeIdBytesMax = 1024;

class ClaudeStreamAgent final : public SessionAgent {
 public:
  ClaudeStreamAgent(std::unique_ptr<Child> child, AgentSetup setup);

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
  using Answered = std::expected<ClaudeAnswer, Failure>;
  using Step = std::optional<Failure>;  // none: it went well

  // claude_stream_open.cc: the steps of open(), each a request and its answer.
  Task<Step> open_in_steps();
  Task<Step> initialize();
  Task<Step> configure();
  Task<Answered> ask(std::string body);
  Task<Failure> cause_of_early_end();

  // Reading.
  std::optional<ClaudeReading> next_reading();
  Task<bool> read_more();
  Task<void> read_large_line();
  void note_skipped(std::string_view line);

  // What a line means.
  void take(ClaudeReading reading, std::vector<AgentEvent>& events);
  void take_question(ClaudeQuestion question, std::vector<AgentEvent>& events);
  void take_end(const ClaudeEnd& end, std::vector<AgentEvent>& events);
  TurnEnd turn_end_of(const ClaudeEnd& end);
  std::string closing_json(const ClaudeEnd& end, const TurnEnd& turn) const;
  void count_cost(const ClaudeEnd& end);

  void send(std::string line) { pipe_.send(line.append("\n")); }

  struct OpenAsk {
    std::string request_id;
    std::string input;
    std::string updates;
    std::string always;  // the option that stands for `updates`
  };

  AgentSetup setup_;
  AgentPipe pipe_;
  LineReader reader_;
  ClaudeTranslator translator_;
  std::string large_line_;                      // given to the compute worker next
  std::optional<ClaudeReading> large_reading_;  // what the worker has read
  ByteHold large_memory_;                       // what counts it
  bool has_ended_ = false;                      // its output

  Conversation conversation_;
  bool is_warm_ = false;  // initialize() was done ahead
  std::string version_;
  std::int64_t last_id_ = 0;
  std::int64_t turn_id_ = 0;                               // of the turn under way; 0: none
  bool is_cancelled_ = false;                              // that turn
  std::map<std::string, OpenAsk, std::less<>> questions_;  // open ones, by ask_id

  double told_usd_ = 0;       // by this process, where it tells only a sum
  double cost_usd_ = 0;       // of the conversation
  double uncounted_usd_ = 0;  // since the last turn's end

  std::vector<AgentEvent> early_;  // said before open() returned
  std::string early_error_;        // a result that came then
  std::size_t skipped_lines_ = 0;
  std::optional<Failure> death_;
};

}  // namespace clawdforge
