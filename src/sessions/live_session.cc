#include "sessions/live_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/async_tokens.h"
#include "base/refusals.h"

namespace clawdforge {
using std::chrono::steady_clock;

LiveSession::LiveSession(const House& house, std::shared_ptr<Feed> feed, Session session)
    : house_(house),
      deps_(house.deps),
      session_(std::move(session)),
      journal_(deps_.executor, house_.tasks, deps_.ledger, deps_.clock, deps_.log, std::move(feed),
               session_.id, session_.app),
      questions_(deps_.executor, house_.options.permission_timeout,
                 [this](const OpenQuestion& question, const Decision& decision,
                        std::string_view by) { resolve(question, decision, by); }),
      last_active_(steady_clock::now()),
      quiet_(deps_.executor) {
  quiet_.expires_at(Timer::time_point::max());
}

LiveSession::~LiveSession() = default;

bool LiveSession::is_quiet() const {
  return !agent_ && !is_starting_ && !is_working_ && leaving_ == 0 && journal_.is_idle();
}

Result<std::shared_ptr<LiveTurn>> LiveSession::enqueue(TurnRequest request,
                                                       std::vector<Attachment> attachments,
                                                       std::int64_t turns_given) {
  if (is_ending() || is_refusing_) {
    return fail(Errc::gone, "session_closed", "The session is closed.");
  }
  // The first of an idle session waits too, until the loop's next turn.
  if (waiting_.size() >= kWaitingTurnsMax + (running_ ? 0 : 1)) {
    return fail_for_now(
        Errc::conflict, "turn_queue_full",
        "Too many turns of this session wait already; try again when one has ended.",
        std::chrono::seconds(1));
  }
  // What the agent would say could not be kept, and its answer not be given.
  if (const std::optional<Failure>& failure = journal_.failure()) return std::unexpected(*failure);
  session_.turn_count = std::max(session_.turn_count, turns_given) + 1;
  auto turn = std::make_shared<LiveTurn>(deps_.executor, session_.turn_count, std::move(request),
                                         std::move(attachments));
  journal_.begin_turn(turn->index, is_busy());
  turn->start_deadline([weak = weak_from_this(), waiting = std::weak_ptr(turn)] {
    const auto self = weak.lock();
    const auto late = waiting.lock();
    if (self && late) self->note_deadline(late);
  });
  waiting_.push_back(turn);
  if (!std::exchange(is_working_, true)) house_.tasks.spawn(work());
  return turn;
}

void LiveSession::on_caller_gone(const std::shared_ptr<LiveTurn>& turn) {
  if (std::ranges::find(waiting_, turn) != waiting_.end()) {
    drop_waiting(turn, TurnStop::caller_gone);
  } else {
    turn->stop_collecting();
  }
}

void LiveSession::note_deadline(const std::shared_ptr<LiveTurn>& turn) {
  if (turn == running_) {
    stop_turn(turn, TurnStop::timed_out);
  } else if (std::ranges::find(waiting_, turn) != waiting_.end()) {
    drop_waiting(turn, TurnStop::timed_out);
  }
}

void LiveSession::drop_waiting(std::shared_ptr<LiveTurn> turn, TurnStop reason) {
  waiting_.erase(std::ranges::find(waiting_, turn));
  conclude(*turn, std::nullopt, failure_of(reason, *turn));
  house_.tasks.spawn(settle(turn));
}

void LiveSession::stop_turn(const std::shared_ptr<LiveTurn>& turn, TurnStop reason) {
  const bool is_closing = reason == TurnStop::closed;  // nobody wants this agent again
  const bool is_stopping = turn->stop != TurnStop::none;
  if (turn->is_over() || (is_stopping && !is_closing)) return;
  if (!is_stopping) turn->stop = reason;
  if (!turn->is_begun) {
    interrupt();
    return;
  }
  questions_.cancel();
  if (agent_ && !is_closing) agent_->cancel();
  turn->give_up_at =
      steady_clock::now() + (is_closing ? steady_clock::duration{} : house_.options.cancel_grace);
  turn->changed.cancel();
}

bool LiveSession::cancel() {
  if (!running_ || running_->is_over() || is_ending()) return false;
  if (running_->stop == TurnStop::none) {
    journal_.note({.event = "cancel",
                   .at = deps_.clock.now(),
                   .meta = fmt::format(R"({{"turn_index":{}}})", running_->index)});
  }
  stop_turn(running_, TurnStop::cancelled);
  return true;
}

std::optional<steady_clock::time_point> LiveSession::idle_since() const {
  if (!agent_ || is_working_ || is_ending() || is_refusing_) return std::nullopt;
  return last_active_;
}

void LiveSession::sleep() { end_agent(); }

void LiveSession::begin_end(TurnStop reason) {
  if (reason == TurnStop::shutdown) journal_.give_up();
  if (is_ending()) return;
  ending_ = reason;
  while (!waiting_.empty()) drop_waiting(waiting_.front(), reason);
  if (running_) {
    stop_turn(running_, reason);
  } else {
    interrupt();
    end_agent();
  }
}

Task<void> LiveSession::ended() {
  const auto self = shared_from_this();
  while (!is_quiet()) {
    const bool is_writing = !agent_ && !is_starting_ && !is_working_ && leaving_ == 0;
    if (is_writing) {
      co_await journal_.idle();
    } else {
      co_await quiet_.async_wait(kAwait);
    }
  }
}

void LiveSession::note_quiet() {
  quiet_.cancel();
  if (is_quiet()) house_.on_quiet(*this);
}

}  // namespace clawdforge
