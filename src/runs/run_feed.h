// RunFeed is what the agent of a streamed run says, on its way to the one caller who reads it. The
// run adds to it and closes it; the reader takes from it, or leaves. While the reader is behind by
// more than kRunFeedBytesMax the agent is not read. Shared by both; io thread only.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "agent/core/one_shot_agent.h"
#include "agent/core/session_agent.h"
#include "base/async/async.h"
#include "base/async/signal.h"
#include "runs/streamed_run.h"

namespace clawdforge {

// What waits for a reader.
inline constexpr std::size_t kRunFeedBytesMax = 1024 * 1024;

class RunFeed final : public ShotListener {
 public:
  void add(AgentEvent event) override;
  Task<void> wait_for_space() override;
  void close();  // nothing is added any more

  // Empty: nothing came within that time, or nothing comes any more.
  Task<std::vector<ToldMessage>> next(std::chrono::milliseconds most);
  bool is_over() const { return is_closed_ && messages_.empty(); }
  void leave();  // nothing is taken any more

 private:
  std::vector<ToldMessage> messages_;
  std::size_t bytes_ = 0;
  bool is_closed_ = false;
  bool is_left_ = false;
  Signal came_;
  Signal taken_;
};

}  // namespace clawdforge
