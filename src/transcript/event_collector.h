// EventCollector gathers what an agent says in a turn for the caller who waits for the turn's
// answer, in the shape that this caller wants. Each dialect has its own. The caller's handler and
// the turn share it; io thread only.
#pragma once

#include <cstddef>
#include <string_view>

namespace clawdforge {

class EventCollector {
 public:
  virtual ~EventCollector() = default;

  // The next message of the agent: JSON of an object, one line.
  virtual void add(std::string_view message) = 0;
  // The largest message that it takes. One that has to read messages takes no large ones, because
  // that would hold up the io thread.
  virtual std::size_t message_bytes_max() const { return static_cast<std::size_t>(-1); }
  // Gives up what was gathered: the answer has to do without.
  virtual void clear() = 0;
  // How much memory it holds.
  virtual std::size_t bytes() const = 0;
};

}  // namespace clawdforge
