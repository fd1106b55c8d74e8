// SessionAgent is an agent with which a conversation is held: turns go in, events come
// out, whatever the wire between us looks like. One process tree, owned by one session;
// io thread only.
//
// It is pulled: nothing is read from the agent unless a task waits in open() or next().
// So one task of its owner calls next() for as long as the agent lives, also between turns;
// an owner that is slow makes the agent wait.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "base/async/async.h"
#include "base/limits/byte_budget.h"
#include "base/result.h"
#include "base/strong_id.h"
#include "model/agent.h"
#include "model/run.h"
#include "model/session.h"
#include "transcript/permission_request.h"

namespace clawdforge {

// What an agent is started with, at the first time and at every later one.
struct Conversation {
  std::string name;              // what we call it: the session's id
  std::string working_dir;       // absolute, there
  std::string temp_dir;          // likewise
  std::string agent_session_id;  // the agent's own; empty: a new conversation
  bool is_unasked = false;       // nothing has been said in it yet, whatever its id
  std::string model;             // this and all below: empty: the agent's default
  std::string system;
  SystemMode system_mode = SystemMode::append;
  std::string effort;
  std::string mcp_servers;  // JSON text of an array
  std::string schema;       // of the answers, for agents that take one: see takes_schema()
  PermissionMode permission_mode = PermissionMode::approve_reads;
  double cost_usd_so_far = 0;  // agents tell the sum over the conversation
};

struct Opened {
  std::string agent_session_id;
  bool is_loaded = false;  // it knows what was said before
  bool can_load = false;   // the conversation can be loaded again by a later process
  std::string version;     // what the agent calls its version
};
using Opening = std::expected<Opened, Failure>;

// The stop reason of a turn that was cancelled, in the words of the protocol.
inline constexpr std::string_view kStopCancelled = "cancelled";

struct TurnEnd {
  std::optional<Failure> failure;  // none: it ended with `stop_reason`
  std::string stop_reason;
  std::optional<Usage> usage;
  std::optional<double> cost_usd;      // of this turn
  std::optional<std::string> result;   // its answer, of an agent that tells it as a whole
  std::string structured;              // likewise, by Conversation::schema; empty: none
  std::vector<Denial> denials;         // of an agent that tells them; else its questions do
  bool has_lost_conversation = false;  // the process lives, but has to be started again
};

// One message of the agent.
struct AgentEvent {
  std::string json;  // as it was sent: valid, one line without line breaks
  std::string text;  // what it adds to the agent's message; empty for anything else
  std::optional<PermissionRequest> question;
  std::optional<TurnEnd> end;  // the turn is over; what follows was said late
  bool is_late = false;        // it belongs to the turn before, whatever has begun since
  bool is_of_tool = false;     // it tells of a tool that the agent uses
  ByteHold memory;             // what counts a large one, for as long as it is kept
  std::optional<ContextUse> context{};
};

struct AgentNews {
  std::vector<AgentEvent> events;  // in order, at least one unless something below is set
  std::optional<Failure> death;    // nothing comes any more; a turn under way ends here
  std::size_t skipped_lines = 0;   // since the last news: what was no message
  // What drives the agent for us had to start it again for the turn under way: whether it
  // still knows what was said before.
  std::optional<bool> is_resumed;
  bool is_early = false;  // it was said before any turn that has begun since open()
};

class SessionAgent {
 public:
  virtual ~SessionAgent() = default;

  virtual ProcessMark mark() const = 0;

  // For a spare: does what open() would do first, whatever the conversation is, so that open() has
  // less to do. At most once, before open(), which the conversation then needs no system prompt
  // for. After a failure finish() it.
  virtual Task<std::optional<Failure>> warm_up() { co_return std::nullopt; }
  // The spare belongs to this app from now on.
  virtual void adopt(AppName /*app*/) {}
  // It has ended, or is about to.
  virtual bool is_ending() const { return false; }

  // Opens the conversation, each step within its deadline. Once. After a failure the
  // agent is of no use: finish() it. If a conversation cannot be loaded, a new one is begun;
  // or it fails with Cause::conversation_gone, and its owner starts another agent for a new one.
  virtual Task<Opening> open(Conversation conversation) = 0;

  // One turn at a time; its end comes out of next(). Returns at once.
  virtual void begin_turn(std::string prompt) = 0;

  // What the agent says next, also between turns. One caller at a time.
  virtual Task<AgentNews> next() = 0;

  // Asks the agent to end its turn, at most once a turn; that comes as its end. Questions
  // still open are answered as cancelled.
  virtual void cancel() = 0;

  // Answers a question, the first time that it is called for it. None: cancelled.
  virtual void answer(std::string ask_id, std::optional<std::string> option_id) = 0;

  // Ends the tree now; open() and next() return soon, next() with a death.
  virtual void stop() = 0;

  // Ends politely, then firmly, and waits until nothing of the tree is left. After it
  // only the destructor may follow. open() must have returned; next() may still be waiting.
  // `is_for_good`: the conversation will never be loaded again.
  virtual Task<void> finish(bool is_for_good) = 0;

  // The last of its standard error: valid UTF-8, masked.
  virtual std::string error_tail() const = 0;
};

}  // namespace clawdforge
