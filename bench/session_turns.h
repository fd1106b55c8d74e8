// The ways to get one answer of an agent in a conversation, to be measured in turns, as
// turns.h has them for one-shot runs. Each opens its own conversation when it is made, so
// that once() is a warm turn.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "piped_program.h"
#include "raw_http.h"
#include "server.h"
#include "turns.h"

namespace clawdforge {

inline constexpr std::string_view kPrompt = "Say one word.";

// The agent itself, over two pipes, with nothing in between.
class DirectAgent {
 public:
  // Starts it and opens a conversation.
  explicit DirectAgent(const std::string& program);

  // One turn, until the line that ends it. How many lines there were.
  std::size_t prompt(std::string_view text);
  pid_t pid() const { return child_.pid(); }

 private:
  PipedProgram child_;
  std::string session_;
  int last_id_ = 1;
};

std::unique_ptr<Turn> direct_turn(const std::string& program);

// What the gateway's environment has to have so that sessions with `program` can be made: as
// the agent `instant`, and as `through-acpx` where the gateway finds that program. Writes a
// file into `directory`.
std::vector<std::string> session_settings(const std::string& directory, const std::string& program,
                                          const std::vector<std::string>& more = {});

// Its id. Gives up unless it is made.
std::string make_session(Connection& connection, const std::string& token,
                         std::string_view agent = "instant");
void close_session(Connection& connection, const std::string& token, const std::string& id);
std::string turn_request(const std::string& id, const std::string& token, std::string_view prompt,
                         bool is_streamed);

// POST /sessions/{id}/turn over a connection of its own: with a session of its own, or with
// the one that is named.
std::unique_ptr<Turn> session_turn(const Gateway& gateway);
std::unique_ptr<Turn> session_turn(const Gateway& gateway, const std::string& id);

// What the gateway says of its commits: their number, and the seconds that they took.
struct Commits {
  double count = 0;
  double seconds = 0;
};
Commits commits_of(const Gateway& gateway);

}  // namespace clawdforge
