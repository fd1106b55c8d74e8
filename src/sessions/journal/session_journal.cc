#include "sessions/journal/session_journal.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <iterator>
#include <utility>

#include "base/async/async_tokens.h"
#include "base/refusals.h"

namespace clawdforge {
namespace {

constexpr std::chrono::seconds kJournalRetryPause{1};
constexpr std::size_t kEventFrameBytes = 192;  // more than an event's line has around its JSON

// Moves those over that came after no later event than `last`, the oldest first.
template <class T>
void move_until(std::int64_t last, std::vector<T>& from, std::vector<std::int64_t>& after,
                std::vector<T>& to) {
  const auto count = std::ranges::upper_bound(after, last) - after.begin();
  to.assign(std::move_iterator(from.begin()), std::move_iterator(from.begin() + count));
  from.erase(from.begin(), from.begin() + count);
  after.erase(after.begin(), after.begin() + count);
}

}  // namespace

bool SessionJournal::Waiting::is_empty() const {
  return write.starts.empty() && write.blocks.empty() && write.ends.empty() &&
         write.audit.empty() && write.news.empty();
}

SessionJournal::SessionJournal(IoExecutor executor, TaskGroup& tasks, JournalRows& rows,
                               const Clock& clock, Log& log, std::shared_ptr<Feed> feed,
                               SessionId session_id, AppName app, JournalLimits limits)
    : executor_(executor),
      tasks_(tasks),
      rows_(rows),
      clock_(clock),
      log_(log),
      feed_(std::move(feed)),
      session_id_(std::move(session_id)),
      app_(std::move(app)),
      limits_(std::move(limits)),
      last_event_id_(feed_->last_event_id()),
      memory_(limits_.memory == nullptr ? ByteHold() : limits_.memory->open(app_.str())) {}

// The start and its event are written in one commit: a turn that the ledger knows has both.
std::int64_t SessionJournal::begin_turn(TurnBeginning beginning) {
  const TimePoint now = clock_.now();
  begun_at_[beginning.index] = now;
  if (begun_at_.size() > kTurnTimesMax) begun_at_.erase(begun_at_.begin());
  add_line(beginning.index, EventKind::turn, std::move(beginning.json));
  waiting_.write.starts.push_back({.index = beginning.index,
                                   .at = now,
                                   .key = std::move(beginning.key),
                                   .first_event_id = last_event_id_,
                                   .title = std::move(beginning.title)});
  waiting_.starts_after.push_back(last_event_id_);
  count_held();
  const std::int64_t first_event_id = last_event_id_;
  wake_writer(beginning.is_urgent);
  return first_event_id;
}

void SessionJournal::append(std::int64_t turn_index, EventKind kind, std::string json,
                            ByteHold memory) {
  add_line(turn_index, kind, std::move(json));
  memory_.take_over(memory);
  count_held();
  wake_writer(true);
}

std::optional<std::int64_t> SessionJournal::offset_of(std::int64_t turn_index,
                                                      TimePoint now) const {
  const auto begun = begun_at_.find(turn_index);
  if (begun == begun_at_.end()) return std::nullopt;
  return std::max<std::int64_t>((now - begun->second).count(), 0);
}

void SessionJournal::add_line(std::int64_t turn_index, EventKind kind, std::string json) {
  const TimePoint now = clock_.now();
  std::vector<JournalBlock>& blocks = waiting_.write.blocks;
  const bool fits = !blocks.empty() && blocks.back().turn_index == turn_index &&
                    blocks.back().lines.size() + json.size() <= kJournalBlockBytesMax;
  const Event event{.id = last_event_id_ + 1,
                    .turn_index = turn_index,
                    .kind = kind,
                    .json = std::move(json),
                    .at = now,
                    .offset_ms = offset_of(turn_index, now)};
  if (!fits) {
    blocks.push_back({.first_event_id = event.id,
                      .last_event_id = event.id,
                      .turn_index = turn_index,
                      .at = now,
                      .lines = {}});
    waiting_.given_before.push_back(given_);
  }
  JournalBlock& block = blocks.back();
  const std::size_t before = block.lines.size();
  try {
    block.lines.reserve(before + event.json.size() + kEventFrameBytes);
  } catch (const std::bad_alloc&) {
    if (!fits) {  // as if nothing had been said: no number is missing
      blocks.pop_back();
      waiting_.given_before.pop_back();
    }
    throw;
  }
  append_event_line(block.lines, event);
  block.last_event_id = last_event_id_ = event.id;
  waiting_.bytes += block.lines.size() - before;
}

// In steps of a block, so that small events cost nothing.
void SessionJournal::count_held() {
  const std::size_t bytes = waiting_bytes();
  const std::size_t steps = (bytes + kJournalBlockBytesMax - 1) / kJournalBlockBytesMax;
  const bool is_counted = bytes > kUncountedJournalBytesMax;
  lacks_memory_ = memory_.resize(is_counted ? steps * kJournalBlockBytesMax : 0) != Fit::fits;
}

void SessionJournal::note(AuditEvent event) {
  waiting_.write.audit.push_back(std::move(event));
  waiting_.audit_after.push_back(last_event_id_);
  wake_writer(true);
}

void SessionJournal::tell(SessionNews news) {
  waiting_.write.news.push_back(std::move(news));
  waiting_.news_after.push_back(last_event_id_);
  wake_writer(true);
}

void SessionJournal::settle_turn(TurnSettled settled) {
  waiting_.write.ends.push_back(std::move(settled));
  waiting_.ends_after.push_back(last_event_id_);
  wake_writer(true);
}

void SessionJournal::wake_writer(bool is_urgent) {
  ++given_;
  if (is_lost_) {
    waiting_ = {};
    count_held();
    return;
  }
  if (is_urgent && !std::exchange(waiting_.is_urgent, true) && !failure_) hurry_.notify_all();
  if (std::exchange(is_writing_, true)) return;
  tasks_.spawn(write());
}

// The oldest first. What is left stays in order.
SessionJournal::Batch SessionJournal::take_batch() {
  Batch batch;
  if (waiting_.bytes <= kJournalCommitBytesMax) {
    Waiting all = std::exchange(waiting_, {});
    *batch.write = std::move(all.write);
    batch.mark = given_;
    batch.bytes = all.bytes;
  } else {
    std::vector<JournalBlock>& blocks = waiting_.write.blocks;
    auto end = blocks.begin();
    do {
      batch.bytes += end->lines.size();
      ++end;
    } while (end != blocks.end() && batch.bytes + end->lines.size() <= kJournalCommitBytesMax);
    const auto count = end - blocks.begin();
    batch.write->blocks.assign(std::move_iterator(blocks.begin()), std::move_iterator(end));
    blocks.erase(blocks.begin(), end);
    waiting_.given_before.erase(waiting_.given_before.begin(),
                                waiting_.given_before.begin() + count);
    waiting_.bytes -= batch.bytes;
    const std::int64_t last = batch.write->blocks.back().last_event_id;
    move_until(last, waiting_.write.starts, waiting_.starts_after, batch.write->starts);
    move_until(last, waiting_.write.ends, waiting_.ends_after, batch.write->ends);
    move_until(last, waiting_.write.audit, waiting_.audit_after, batch.write->audit);
    move_until(last, waiting_.write.news, waiting_.news_after, batch.write->news);
    // What is left came with the first block that is left, or after it.
    batch.mark = blocks.empty() ? given_ : waiting_.given_before.front();
  }
  unchecked_bytes_ += static_cast<std::int64_t>(batch.bytes);
  if (unchecked_bytes_ > std::min(kUncheckedJournalBytesMax, limits_.bytes_max / 4)) {
    batch.write->journal_bytes_max = limits_.bytes_max;
    unchecked_bytes_ = 0;
  }
  batch.write->session_id = session_id_;
  batch.write->app = app_;
  return batch;
}

Task<void> SessionJournal::write() {
  // What is handed in at one go belongs into one commit: a turn's end and its closing event,
  // a decision and its line in the audit.
  co_await boost::asio::post(executor_, kAwait);
  while (!waiting_.is_empty()) {
    if (!waiting_.is_urgent) co_await hurry_.wait_for(kTurnStartDelayMax);
    Batch batch = take_batch();
    writing_bytes_ = batch.bytes;
    writing_mark_ = batch.mark;
    const bool is_written = co_await write_batch(batch.write);
    writing_bytes_ = 0;
    if (is_written && !batch.write->news.empty() && limits_.on_news) limits_.on_news();
    if (is_written && !batch.write->blocks.empty()) {
      if (limits_.on_kept) limits_.on_kept(static_cast<std::int64_t>(batch.bytes));
      feed_->publish(std::move(batch.write->blocks), memory_);
      if (feed_->is_overfull()) {
        co_await boost::asio::post(executor_, kAwait);  // those who wait for it take it first
        feed_->let_large_go();
      }
    }
    batch = {};
    count_held();
    changed_.notify_all();
    if (!is_written && is_lost_) break;
  }
  is_writing_ = false;
  changed_.notify_all();
}

Task<bool> SessionJournal::write_batch(std::shared_ptr<const SessionWrite> write) {
  while (true) {
    const auto written = co_await rows_.write(write);
    ++attempts_;
    const bool is_dropped = !written && written.error().kind != Errc::unavailable;
    failure_ = written || is_dropped ? std::nullopt : std::optional(written.error());
    if (is_dropped) {
      // With what waits after it: the next event goes on where the ledger ends.
      refused_ = Refused{committed_, given_, written.error()};
      waiting_ = {};
      last_event_id_ = feed_->last_event_id();
    }
    if (written) committed_ = writing_mark_;
    changed_.notify_all();
    if (written) co_return true;
    if (is_dropped) {
      log_.error("the ledger refuses some of a session's events, which are lost",
                 {{"session", std::string_view(session_id_)},
                  {"why", std::string_view(written.error().detail)}});
      co_return false;
    }
    if (gives_up_) {
      log_.warn("a session's last events did not reach the ledger",
                {{"session", std::string_view(session_id_)},
                 {"why", std::string_view(written.error().detail)}});
      waiting_ = {};
      is_lost_ = true;
      co_return false;
    }
    co_await hurry_.wait_for(kJournalRetryPause);
  }
}

bool SessionJournal::is_refused(std::uint64_t mark) const {
  return refused_ && mark > refused_->after && mark <= refused_->upto;
}

Async<void> SessionJournal::committed(std::uint64_t mark) {
  const std::uint64_t attempt = attempts_;
  const auto give_up_at = std::chrono::steady_clock::now() + kCommitWaitMax;
  if (failure_) hurry_.notify_all();  // it may be well again: a caller waits to know
  bool is_late = false;
  while (committed_ < mark && !is_refused(mark) && is_writing_ && !is_late &&
         (!failure_ || attempts_ == attempt)) {
    is_late = !co_await changed_.wait_until(give_up_at);
  }
  if (refused_ && is_refused(mark)) co_return std::unexpected(refused_->failure);
  if (committed_ >= mark) co_return Result<void>{};
  // Until the ledger has said what became of it, no more is begun here.
  if (is_late && !failure_) {
    failure_ = ledger_stalled("the session's last events are on their way").error();
  }
  co_return std::unexpected(failure_.value_or(Failure{}));
}

Task<void> SessionJournal::wait_for_space() {
  while ((waiting_.bytes > kJournalWaitingBytesMax || lacks_memory_) && !gives_up_) {
    co_await changed_.wait();
  }
}

Task<void> SessionJournal::idle() {
  while (is_writing_) co_await changed_.wait();
}

void SessionJournal::give_up() {
  gives_up_ = true;
  hurry_.notify_all();
  changed_.notify_all();
}

}  // namespace clawdforge
