// DirectTurns lets one turn or run at a time work in each directory of mode `direct`, in the order
// in which they came. Io thread only; outlives its holds.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>

#include "base/async/async.h"
#include "base/async/signal.h"

namespace clawdforge {

// Errc::conflict "workspace_busy".
std::unexpected<Failure> workspace_busy();

class DirectTurns {
 public:
  // A place in the line of a directory; leaves it when it dies. An empty one holds nothing.
  class Hold {
   public:
    Hold() = default;
    Hold(DirectTurns& all, std::string path);
    ~Hold() { leave(); }
    Hold(Hold&& other) noexcept;
    Hold& operator=(Hold&& other) noexcept;
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

    void leave();
    // Waits until it is first in the line, or `is_over` says so; that is asked whenever nudge() was
    // called. True: it is first.
    Task<bool> first(std::function<bool()> is_over);

   private:
    DirectTurns* all_ = nullptr;
    std::string path_;
    std::uint64_t number_ = 0;
  };

  bool is_busy(const std::string& path) const { return lines_.contains(path); }
  Hold join(std::string path) { return Hold(*this, std::move(path)); }
  // Those who wait ask again whether it is over.
  void nudge() { changed_.notify_all(); }

 private:
  std::map<std::string, std::deque<std::uint64_t>> lines_;  // by directory; none is empty
  std::uint64_t last_ = 0;
  Signal changed_;
};

}  // namespace clawdforge
