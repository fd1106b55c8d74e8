// ClaudeTranslator tells what Claude's command line prints in stream-json in the words of the Agent
// Client Protocol, version 1, and picks out what is for us: answers, questions, results. It
// remembers which tool calls were told. A value; it is used by one thread at a time, whichever that
// is.
#pragma once

#include <boost/json/fwd.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/claude/cli_result.h"
#include "transcript/permission_request.h"

namespace clawdforge {

// Tool calls that are remembered; at one more all are forgotten.
inline constexpr std::size_t kClaudeToolCallsMax = 4096;
// Commands that are told, and the length of the description of each.
inline constexpr std::size_t kClaudeCommandsMax = 256;
inline constexpr std::size_t kClaudeCommandBytesMax = 200;

// The option of a question that allows this one call.
inline constexpr std::string_view kAllowOnce = "allow-once";

// A message of the protocol.
struct ClaudeSaid {
  std::string json;
  std::string text;  // what it adds to the agent's message
  bool is_of_tool = false;
};

// can_use_tool: answered by allow_answer() or deny_answer().
struct ClaudeQuestion {
  std::string request_id;
  PermissionRequest asked;
  std::string json;     // the same as a request of the protocol
  std::string input;    // JSON
  std::string updates;  // JSON: what "always" would change; empty: nothing
};

// To one of our own requests.
struct ClaudeAnswer {
  std::string request_id;
  std::optional<std::string> error;  // none: it went well
  // Of initialize.
  std::string version;
  std::string mode;      // its permission mode
  std::string commands;  // JSON of availableCommands; empty: there are none
  std::vector<std::string> models;
};

struct ClaudeEnd {
  CliResult result;
  bool is_of_prompt = true;  // else of something that the agent began by itself
  std::optional<double> cost_since_last;
  std::int64_t context_used = 0;
  std::int64_t context_size = 0;
  std::string meta;  // JSON: what has no word in the protocol
};

// What one line says.
struct ClaudeReading {
  std::vector<ClaudeSaid> said;
  std::optional<ClaudeQuestion> question;
  std::optional<ClaudeAnswer> answer;
  std::optional<ClaudeEnd> end;
  std::string withdrawn;        // id of a question that needs no answer any more
  std::string unknown_request;  // id of a request that we do not know
};

class ClaudeTranslator {
 public:
  // `session_id` stands in every message.
  ClaudeTranslator(std::string session_id, std::string working_dir);

  // None: the line is not a JSON object. Bytes that are not UTF-8 and half characters become
  // U+FFFD.
  std::optional<ClaudeReading> read(std::string_view line);

  // availableCommands, as a message of the protocol.
  std::string commands_json(std::string_view commands) const;
  // The usage so far.
  std::string usage_json(const ClaudeEnd& end, double cost_usd) const;

 private:
  void take(const boost::json::object& message, ClaudeReading& reading);
  void take_stream(const boost::json::object& message, ClaudeReading& reading);
  void take_assistant(const boost::json::object& message, ClaudeReading& reading);
  void take_results(const boost::json::object& message, ClaudeReading& reading);
  void take_request(const boost::json::object& message, ClaudeReading& reading);
  void take_result(const boost::json::object& message, ClaudeReading& reading) const;
  void say_piece(ClaudeReading& reading, std::string_view kind, std::string_view text) const;
  void say_tool_call(ClaudeReading& reading, const boost::json::object& block,
                     std::string_view parent);
  void say_other(ClaudeReading& reading, const boost::json::object& message) const;
  void remember(std::string_view call_id, std::string_view name);
  std::string update(std::string_view body) const;

  std::string session_id_;
  std::string working_dir_;
  std::string message_id_;   // of the message that is being told in pieces
  bool has_pieces_ = false;  // text or thought of it were told
  std::int64_t context_used_ = 0;
  std::map<std::string, std::string, std::less<>> tools_;  // names by the id of the call
};

}  // namespace clawdforge
