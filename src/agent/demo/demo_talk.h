// What the demo agent knows of one conversation: what was said, which survives its process
// in a file, and what it was told to use, which the client tells again when it loads the
// conversation. Blocking.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace clawdforge {

inline constexpr std::size_t kDemoKeptTextBytesMax = 16 * 1024;     // of a prompt or answer
inline constexpr std::size_t kDemoTalkBytesMax = 16 * 1024 * 1024;  // of the file

struct DemoExchange {
  std::string prompt;
  std::string answer;
};

struct DemoTalk {
  std::string id;
  std::string file;
  std::string cwd;
  std::string system;  // empty: none
  std::string model;
  std::string effort;
  std::vector<DemoExchange> exchanges;  // the oldest first
  std::int64_t token_count = 0;         // of all turns of this process
};

// A conversation with a new id, and its file. None: the file cannot be made.
std::optional<DemoTalk> begin_talk(const std::string& temp_dir);

// None: there is no conversation of this id.
std::optional<DemoTalk> find_talk(const std::string& temp_dir, std::string_view id);

// Adds one turn. A text over its limit is kept up to that; a file over its limit
// gets no more. False: it could not be written.
bool keep_exchange(DemoTalk& talk, DemoExchange exchange);

}  // namespace clawdforge
