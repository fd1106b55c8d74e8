#include "sessions/live/live_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sessions/live/session_refusals.h"

namespace clawdforge {
using std::chrono::steady_clock;

LiveSession::LiveSession(const LiveSessionDependencies& shared, std::shared_ptr<Feed> feed,
                         Session session)
    : shared_(shared),
      deps_(shared.services),
      session_(std::move(session)),
      journal_(
          deps_.executor, shared.tasks, deps_.journal_rows, deps_.clock, deps_.log, std::move(feed),
          session_.id, session_.app,
          {.bytes_max =
               std::min(shared.options.journal_bytes_max, shared.options.journal_bytes_max_per_app),
           .memory = deps_.memory,
           .on_kept =
               [this](std::int64_t bytes) { shared_.journal_space.add_kept(session_.app, bytes); },
           .on_news =
               [this] {
                 if (deps_.on_news) deps_.on_news(session_.app);
               }}),
      turns_(shared, session_, journal_),
      seat_(*this, shared, session_),
      questions_(deps_.executor, shared.options.permission_timeout,
                 [this](const OpenQuestion& question, const Decision& decision,
                        std::string_view by) { resolve(question, decision, by); }) {}

LiveSession::~LiveSession() = default;

bool LiveSession::is_quiet() const {
  return seat_.state() == SeatState::empty && !is_working_ && journal_.is_idle();
}

std::optional<steady_clock::time_point> LiveSession::idle_since() const {
  if (!is_live() || is_working_ || is_ending() || refusals_ > 0) return std::nullopt;
  return std::max(turns_.last_active(), last_heard_);
}

Task<std::optional<Failure>> LiveSession::start(SessionCreated created) {
  const auto alive = shared_from_this();
  is_working_ = true;  // a turn that comes meanwhile waits: the row can be seen already
  auto failure = co_await start_agent(std::move(created));
  if (!failure && turns_.waiting() > 0 && !is_ending()) {
    shared_.tasks.spawn(work());
  } else {
    end_work();
  }
  co_return failure;
}

Result<std::shared_ptr<LiveTurn>> LiveSession::enqueue(TurnRequest request,
                                                       std::vector<Attachment> attachments,
                                                       std::int64_t turns_given,
                                                       std::shared_ptr<AskGate> gate) {
  if (is_ending() || refusals_ > 0) return session_closed();
  auto accepted = turns_.accept(std::move(request), std::move(attachments), turns_given);
  if (!accepted) return accepted;
  (*accepted)->gate = std::move(gate);
  if (!(*accepted)->gate) start_deadline(*accepted);
  if (!std::exchange(is_working_, true)) shared_.tasks.spawn(work());
  return accepted;
}

void LiveSession::start_deadline(const std::shared_ptr<LiveTurn>& turn) {
  turn->start_deadline([weak = weak_from_this(), of = std::weak_ptr(turn)] {
    const auto self = std::static_pointer_cast<LiveSession>(weak.lock());
    const auto late = of.lock();
    if (self && late) self->on_deadline(late);
  });
}

void LiveSession::on_caller_gone(const std::shared_ptr<LiveTurn>& turn) {
  if (drop(turn, TurnStop::caller_gone)) return;
  // Who has to let a turn through may also end it.
  if (turn->gate) {
    if (turn == turns_.running()) cancel();
  } else if (!turn->request.key) {  // what is kept for a key is the whole answer
    turn->stop_collecting();
  }
}

bool LiveSession::cancel() {
  const std::shared_ptr<LiveTurn> turn = turns_.running();
  if (!turn || turn->is_over() || is_ending()) return false;
  if (!turn->is_stopped()) {
    journal_.note({.event = "cancel",
                   .at = deps_.clock.now(),
                   .meta = fmt::format(R"({{"turn_index":{}}})", turn->index)});
  }
  stop_turn(*turn, TurnStop::cancelled);
  return true;
}

void LiveSession::begin_end(TurnStop reason) {
  if (reason == TurnStop::shutdown) journal_.give_up();
  if (is_ending()) return;
  ending_ = reason;
  while (const auto turn = turns_.oldest_waiting()) drop(turn, reason);
  if (const std::shared_ptr<LiveTurn> turn = turns_.running()) {
    stop_turn(*turn, reason);
  } else {
    seat_.interrupt();
    end_agent();
  }
}

Task<void> LiveSession::ended() {
  const auto alive = shared_from_this();
  while (!is_quiet()) {
    const bool is_only_writing = seat_.state() == SeatState::empty && !is_working_;
    if (is_only_writing) {
      co_await journal_.idle();
    } else {
      co_await rested_.wait();
    }
  }
}

// The agent is told what becomes of its questions while it can still be told.
void LiveSession::end_agent() {
  if (is_live()) questions_.cancel();
  seat_.end();
}

void LiveSession::note_quiet() {
  rested_.notify_all();
  if (is_quiet()) shared_.on_quiet(*this);
}

}  // namespace clawdforge
