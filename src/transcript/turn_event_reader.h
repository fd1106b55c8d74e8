// Reads what an agent says, and what a journal keeps of it, into typed events. A field of an
// unexpected type counts as absent, and an unknown kind of message is an UnknownMessage.
#pragma once

#include <boost/json/fwd.hpp>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "model/session.h"
#include "transcript/turn_event.h"

namespace clawdforge {

// A stop reason is a word, and goes into the ledger. A longer one counts as none.
inline constexpr std::size_t kAgentStopReasonBytesMax = 64;
// The kind of a tool or of an option is a word as well, and is kept in memory and in the audit. A
// longer one, or one with control characters, counts as none.
inline constexpr std::size_t kAgentKindBytesMax = 64;
// What is kept of a question beside the agent's own message: its title and the names of its
// options are cut to this. An option whose id is longer is left out.
inline constexpr std::size_t kAgentLabelBytesMax = 1024;
// Options of a question; the others are left out.
inline constexpr std::size_t kQuestionOptionsMax = 64;

// One message of the Agent Client Protocol, with either nesting of an update. Pure.
TurnEvent turn_event_in(const boost::json::object& message);

// The texts in a ToolReport's content, one after another.
std::string shown_text(const boost::json::array& content);

// Reads one event after another. An event is valid until the next one is read.
class TurnEventReader {
 public:
  TurnEventReader();
  ~TurnEventReader();
  TurnEventReader(const TurnEventReader&) = delete;
  TurnEventReader& operator=(const TurnEventReader&) = delete;

  // What the agent sent, as `update` events keep it.
  TurnEvent read_message(std::string_view message);
  // A line of a session's journal.
  TurnEvent read_line(const EventView& line);

 private:
  struct Document;

  const boost::json::object* parse(std::string_view text, std::size_t depth_max);

  std::unique_ptr<Document> document_;
};

}  // namespace clawdforge
