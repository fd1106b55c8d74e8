#include "sessions/session_journal.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <iterator>
#include <utility>

#include "base/async_tokens.h"
#include "base/refusals.h"

namespace clawdforge {
namespace {

constexpr std::chrono::seconds kJournalRetryPause{1};
constexpr std::size_t kEventFrameBytes = 128;  // more than an event's line has around its JSON

// Moves those that came behind no later event than `last` over, the oldest first.
template <class T>
void move_until(std::int64_t last, std::vector<T>& from, std::vector<std::int64_t>& behind,
                std::vector<T>& to) {
  const auto count = std::ranges::upper_bound(behind, last) - behind.begin();
  to.assign(std::move_iterator(from.begin()), std::move_iterator(from.begin() + count));
  from.erase(from.begin(), from.begin() + count);
  behind.erase(behind.begin(), behind.begin() + count);
}

}  // namespace

bool SessionJournal::Waiting::is_empty() const {
  return write.starts.empty() && write.blocks.empty() && write.ends.empty() && write.audit.empty();
}

SessionJournal::SessionJournal(IoExecutor executor, TaskGroup& tasks, Ledger& ledger,
                               const Clock& clock, Log& log, std::shared_ptr<Feed> feed,
                               std::string session_id, std::string app)
    : executor_(executor),
      tasks_(tasks),
      ledger_(ledger),
      clock_(clock),
      log_(log),
      feed_(std::move(feed)),
      session_id_(std::move(session_id)),
      app_(std::move(app)),
      last_event_id_(feed_->last_event_id()),
      pause_(executor),
      changed_(executor) {
  changed_.expires_at(Timer::time_point::max());
}

void SessionJournal::begin_turn(std::int64_t index, bool is_urgent) {
  waiting_.write.starts.push_back({.index = index, .at = clock_.now()});
  wake_writer(is_urgent);
}

void SessionJournal::append(std::int64_t turn_index, EventKind kind, std::string json) {
  std::vector<JournalBlock>& blocks = waiting_.write.blocks;
  const bool fits = !blocks.empty() && blocks.back().turn_index == turn_index &&
                    blocks.back().lines.size() + json.size() <= kJournalBlockBytesMax;
  const Event event{
      .id = last_event_id_ + 1, .turn_index = turn_index, .kind = kind, .json = std::move(json)};
  if (!fits) {
    blocks.push_back({.first_event_id = event.id,
                      .last_event_id = event.id,
                      .turn_index = turn_index,
                      .at = clock_.now(),
                      .lines = {}});
  }
  JournalBlock& block = blocks.back();
  const std::size_t before = block.lines.size();
  try {
    block.lines.reserve(before + event.json.size() + kEventFrameBytes);
  } catch (const std::bad_alloc&) {
    if (!fits) blocks.pop_back();  // as if nothing had been said: no number is missing
    throw;
  }
  append_event_line(block.lines, event);
  block.last_event_id = last_event_id_ = event.id;
  waiting_.bytes += block.lines.size() - before;
  wake_writer(true);
}

void SessionJournal::note(AuditEvent event) {
  waiting_.write.audit.push_back(std::move(event));
  waiting_.audit_behind.push_back(last_event_id_);
  wake_writer(true);
}

void SessionJournal::settle_turn(TurnSettled settled) {
  waiting_.write.ends.push_back(std::move(settled));
  waiting_.ends_behind.push_back(last_event_id_);
  wake_writer(true);
}

void SessionJournal::wake_writer(bool is_urgent) {
  ++given_;
  if (is_lost_) {
    waiting_ = {};
    return;
  }
  if (is_urgent && !std::exchange(waiting_.is_urgent, true) && !failure_) pause_.cancel();
  if (std::exchange(is_writing_, true)) return;
  tasks_.spawn(write());
}

// The oldest first. What is left stays in order.
SessionWrite SessionJournal::take_batch() {
  if (waiting_.bytes <= kJournalCommitBytesMax) {
    SessionWrite all = std::exchange(waiting_, {}).write;
    all.session_id = session_id_;
    all.app = app_;
    return all;
  }
  SessionWrite some;
  some.session_id = session_id_;
  some.app = app_;
  some.starts = std::exchange(waiting_.write.starts, {});
  std::vector<JournalBlock>& blocks = waiting_.write.blocks;
  std::size_t bytes = 0;
  auto end = blocks.begin();
  do {
    bytes += end->lines.size();
    ++end;
  } while (end != blocks.end() && bytes + end->lines.size() <= kJournalCommitBytesMax);
  some.blocks.assign(std::move_iterator(blocks.begin()), std::move_iterator(end));
  blocks.erase(blocks.begin(), end);
  waiting_.bytes -= bytes;
  const std::int64_t last = some.blocks.back().last_event_id;
  move_until(last, waiting_.write.ends, waiting_.ends_behind, some.ends);
  move_until(last, waiting_.write.audit, waiting_.audit_behind, some.audit);
  return some;
}

Task<void> SessionJournal::write() {
  // What is handed in at one go belongs into one commit: a turn's end and its closing event,
  // a decision and its line in the audit.
  co_await boost::asio::post(executor_, kAwait);
  while (!waiting_.is_empty()) {
    if (!waiting_.is_urgent) {
      pause_.expires_after(kTurnStartDelayMax);
      co_await pause_.async_wait(kAwait);
    }
    const std::size_t held = waiting_.bytes;
    SessionWrite batch = take_batch();
    writing_bytes_ = held - waiting_.bytes;
    const std::uint64_t upto = given_;
    const bool is_all = waiting_.is_empty();
    for (bool is_written = false; !is_written;) {
      auto written = co_await ledger_.write_session(batch);
      is_written = written.has_value();
      ++attempts_;
      failure_ = written ? std::nullopt : std::optional(written.error());
      if (is_written && is_all) committed_ = upto;
      changed_.cancel();
      if (is_written) break;
      if (gives_up_) {
        log_.warn("a session's last events did not reach the ledger",
                  {{"session", std::string_view(session_id_)},
                   {"why", std::string_view(written.error().detail)}});
        waiting_ = {};
        is_lost_ = true;
        break;
      }
      pause_.expires_after(kJournalRetryPause);
      co_await pause_.async_wait(kAwait);
    }
    writing_bytes_ = 0;
    if (failure_) break;
    std::vector<SharedBlock> blocks;
    for (JournalBlock& block : batch.blocks) {
      blocks.push_back(std::make_shared<const JournalBlock>(std::move(block)));
    }
    if (!blocks.empty()) feed_->publish(std::move(blocks));
  }
  is_writing_ = false;
  changed_.cancel();
}

Async<void> SessionJournal::committed() {
  const std::uint64_t upto = given_;
  const std::uint64_t attempt = attempts_;
  if (failure_) pause_.cancel();  // it may be well again: somebody waits to know
  Timer commit_wait(executor_);
  commit_wait.expires_after(kCommitWaitMax);
  const auto is_late = std::make_shared<bool>(false);
  commit_wait.async_wait([this, weak = std::weak_ptr(is_late)](boost::system::error_code) {
    const auto late = weak.lock();
    if (!late) return;  // nobody waits any more
    *late = true;
    changed_.cancel();
  });
  while (committed_ < upto && is_writing_ && !*is_late && (!failure_ || attempts_ == attempt)) {
    co_await changed_.async_wait(kAwait);
  }
  if (committed_ >= upto) co_return Result<void>{};
  // Until the ledger has said what became of it, no more is begun here.
  if (*is_late && !failure_) {
    failure_ = ledger_stalled("the session's last events are on their way").error();
  }
  co_return std::unexpected(failure_.value_or(Failure{}));
}

Task<void> SessionJournal::wait_for_space() {
  while (waiting_.bytes > kJournalWaitingBytesMax && !gives_up_) {
    co_await changed_.async_wait(kAwait);
  }
}

Task<void> SessionJournal::idle() {
  while (is_writing_) co_await changed_.async_wait(kAwait);
}

void SessionJournal::give_up() {
  gives_up_ = true;
  pause_.cancel();
  changed_.cancel();
}

}  // namespace clawdforge
