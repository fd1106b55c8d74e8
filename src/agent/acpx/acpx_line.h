// Reads what acpx prints with --format json: the answers of its control commands, its own
// errors, and the traffic of a turn, in which the messages of both sides stand without a
// mark. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "agent/acp/acp_message.h"

namespace clawdforge {

// Of questions that wait for acpx's answer; one more is not told.
inline constexpr std::size_t kAcpxQuestionBytesMax = 1024 * 1024;

// An error of acpx itself, and not of the agent.
struct AcpxFault {
  std::int64_t code = 0;
  std::string message;
  std::string acpx_code;    // RUNTIME, USAGE, TIMEOUT, NO_SESSION, ...
  std::string detail_code;  // AUTH_REQUIRED, AGENT_DISCONNECTED, QUEUE_...; often empty
};

// What a control command says, in one line.
struct AcpxAnswer {
  std::optional<AcpxFault> fault;
  std::string action;     // session_ensured, cancel_result, session_closed, ...
  std::string record_id;  // acpx's own, which stays the same for the life of its record
  bool is_created = false;
  bool is_cancelled = false;
  std::vector<AcpOption> options;  // of `sessions show` and `set`
};
// None: the line is not an answer.
std::optional<AcpxAnswer> acpx_answer(std::string_view line);

// Who was asked what, in the traffic of one prompt.
class AcpxTraffic {
 public:
  enum class Kind {
    nothing,    // acpx's own side, or an answer to it
    no_object,  // no message at all
    fault,      // acpx's own error
    opening,    // the agent has been started; `message` is its answer to initialize
    loading,    // and its conversation is being loaded
    beginning,  // or a new one is begun
    asked,      // the prompt has been given to the agent
    event,      // a message of the agent
    end,        // the agent's answer to the prompt
    bad_id,     // the agent asks with an id that is longer than kAgentIdBytesMax
  };
  struct Heard {
    Kind kind = Kind::nothing;
    AcpMessage message;
    std::optional<AcpxFault> fault;
    std::string session_id;  // of `asked`
  };

  Heard take(std::string_view line);
  // Questions of the agent that acpx has not answered so far; they are given once.
  std::vector<AcpMessage> take_questions();

 private:
  Heard take_call(AcpMessage message, std::string_view line);
  Heard take_response(AcpMessage message, std::string_view line);

  std::string initialize_id_;
  std::string prompt_id_;
  bool is_asked_ = false;
  bool is_over_ = false;
  std::map<std::string, AcpMessage, std::less<>> questions_;  // by id
  std::size_t question_bytes_ = 0;                            // of their messages
  std::set<std::string, std::less<>> others_;                 // ids of the agent's other requests
};

}  // namespace clawdforge
