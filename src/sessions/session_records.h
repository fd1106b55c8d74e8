// What callers of Sessions hand in and get back. Plain records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "model/session.h"
#include "sessions/journal/event_reader.h"

namespace clawdforge {

struct SessionRequest {
  std::string agent;
  std::string meta = "{}";  // JSON text of an object
  std::string model;        // this and all below: empty: the agent's default
  std::string system;
  SystemMode system_mode = SystemMode::append;
  std::string effort;
  std::string mcp_servers;  // JSON text of an array
  std::optional<PermissionMode> permission_mode;
  std::string workspace;           // by name; empty: an empty directory of its own
  std::string from;                // the id of a session whose state it begins with; empty: none
  std::string webhook;             // where the app is told of questions
  std::shared_ptr<KeyHold> key{};  // null: it was asked for without one
  // With a key: what its caller is told, to be kept.
  std::function<KeptAnswer(const Session&)> answer_of{};
};

struct TurnStream {
  std::string rate_limit_policy{};  // as in TurnOutcome
  std::string rate_limit{};
  std::int64_t turn_index = 0;
  std::unique_ptr<EventReader> reader;  // also tells events of other turns
};

// What waits in memory, over all sessions.
struct SessionLoad {
  std::size_t turns_waiting = 0;
  std::size_t questions_open = 0;
  std::size_t answer_bytes = 0;   // gathered for answers
  std::size_t journal_bytes = 0;  // on their way to the ledger
  std::size_t readers = 0;
  std::size_t feed_bytes = 0;  // kept for them
  std::size_t kept_bytes = 0;  // in the ledger, of all apps
  std::size_t undropped = 0;   // sessions that were not made, and whose row is still there
};

}  // namespace clawdforge
