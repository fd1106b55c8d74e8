#include "sessions/live/turn_queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <utility>

#include "base/refusals.h"
#include "base/text.h"
#include "json/json_members.h"
#include "transcript/journal_json.h"

namespace clawdforge {
using std::chrono::steady_clock;

namespace {

constexpr std::chrono::seconds kTurnRestartWait{5};
constexpr std::chrono::seconds kQueueWait{2};

std::string_view sentence_of(const Failure& failure) {
  return first_characters(failure.message, kSentenceCharactersMax);
}

AuditEvent audit_of(const TurnOutcome& outcome, TimePoint at) {
  const bool is_interrupted = outcome.state == TurnState::interrupted;
  AuditEvent event{.event = is_interrupted ? "interrupted" : "turn", .at = at, .meta = "{"};
  append_member(event.meta, "turn_index", outcome.turn_index);
  append_member(event.meta, "state", name_of(outcome.state));
  append_member(event.meta, "duration_ms", outcome.duration.count());
  append_member(event.meta, "stop_reason", outcome.stop_reason.value_or(""));
  if (outcome.failure) {
    append_member(event.meta, "code", outcome.failure->code);
    append_member(event.meta, "error", sentence_of(*outcome.failure));
  }
  event.meta += '}';
  return event;
}

// As it is kept for the turn's key. Without memory for it, that the turn was answered is kept.
KeptAnswer answer_of(const LiveTurn& turn, const TurnOutcome& outcome) {
  try {
    return turn.request.answer_of(outcome);
  } catch (const std::bad_alloc&) {
    return {.kind = KeptKind::too_large};
  }
}

}  // namespace

TurnQueue::TurnQueue(const LiveSessionDependencies& shared, Session& session,
                     SessionJournal& journal)
    : shared_(shared),
      deps_(shared.services),
      session_(session),
      journal_(journal),
      last_active_(steady_clock::now()) {}

Result<std::shared_ptr<LiveTurn>> TurnQueue::accept(TurnRequest request,
                                                    std::vector<Attachment> attachments,
                                                    std::int64_t turns_given) {
  // The first of an idle session waits too, until the loop's next turn.
  if (waiting_.size() >= kWaitingTurnsMax + (running_ ? 0 : 1)) {
    return fail_for_now(
        Errc::conflict, "turn_queue_full",
        "Too many turns of this session wait already; try again when one has ended.",
        std::chrono::seconds(1));
  }
  // What the agent would say could not be kept, and its answer not be given.
  if (const std::optional<Failure>& failure = journal_.failure()) return std::unexpected(*failure);
  const bool is_urgent = is_busy() || request.is_reserved;
  session_.turn_count = std::max(session_.turn_count, turns_given) + 1;
  auto turn = std::make_shared<LiveTurn>(deps_.executor, session_.turn_count, std::move(request),
                                         std::move(attachments));
  std::optional<AskKey> key;
  if (const auto& hold = turn->request.key) key = hold->begin();
  turn->accepted_at = deps_.clock.now();
  TurnBeginning beginning = beginning_of(*turn);
  beginning.is_urgent = is_urgent;
  beginning.key = std::move(key);
  turn->first_event_id = journal_.begin_turn(std::move(beginning));
  turn->start_mark = journal_.mark();
  waiting_.push_back(turn);
  return turn;
}

// What the turn's first event tells, and what it makes of its session's title.
TurnBeginning TurnQueue::beginning_of(const LiveTurn& turn) {
  TurnOpening opening{.turn_index = turn.index,
                      .at = unix_seconds(turn.accepted_at),
                      .prompt = std::nullopt,
                      .files = {}};
  TurnBeginning beginning{.index = turn.index};
  if (shared_.options.keeps_prompts) {
    opening.prompt = turn.request.prompt;
    opening.files = SessionDirs::attachment_names(turn.index, turn.attachments);
    if (session_.title.empty()) {
      session_.title = title_of(turn.request.prompt);
      beginning.title = session_.title;
    }
  }
  beginning.json = opening_json(opening);
  return beginning;
}

std::shared_ptr<LiveTurn> TurnQueue::run_next() {
  if (waiting_.empty()) return nullptr;
  running_ = std::move(waiting_.front());
  waiting_.pop_front();
  running_->stage = TurnStage::preparing;
  return running_;
}

void TurnQueue::end_run() {
  running_.reset();
  last_active_ = steady_clock::now();
}

LiveTurn* TurnQueue::asked() const {
  return running_ && running_->is_asked() ? running_.get() : nullptr;
}

std::shared_ptr<LiveTurn> TurnQueue::oldest_waiting() const {
  return waiting_.empty() ? nullptr : waiting_.front();
}

void TurnQueue::note_new_agent() {
  last_turn_ = 0;
  last_active_ = steady_clock::now();
}

void TurnQueue::note_asked(LiveTurn& turn) {
  turn.stage = TurnStage::asked;
  turn.asked_at = steady_clock::now();
  last_turn_ = turn.index;
}

std::int64_t TurnQueue::index_of(const AgentEvent& event, bool is_early) const {
  if (event.is_late) return ended_turn_;
  if (is_early) return 0;
  if (const LiveTurn* const turn = asked()) return turn->index;
  const bool is_late = steady_clock::now() - last_active_ < kLateMax;
  return is_late ? last_turn_ : 0;
}

bool TurnQueue::drop(const std::shared_ptr<LiveTurn>& turn, TurnStop reason) {
  const auto found = std::ranges::find(waiting_, turn);
  if (found == waiting_.end()) return false;
  const std::shared_ptr<LiveTurn> dropped = std::move(*found);
  waiting_.erase(found);
  conclude(*dropped, std::nullopt, failure_of(reason, *dropped, false));
  return true;
}

void TurnQueue::conclude(LiveTurn& turn, std::optional<TurnEnd> end,
                         std::optional<Failure> failure) {
  const bool is_ask = turn.is_asked();
  if (is_ask) {
    ended_turn_ = turn.index;
    last_active_ = steady_clock::now();
  }
  const TurnOutcome& outcome = turn.conclude(std::move(end), std::move(failure));
  const TimePoint now = deps_.clock.now();
  journal_.append(turn.index, outcome.failure ? EventKind::failed : EventKind::done,
                  closing_json(session_.id, outcome));
  const std::int64_t last_event_id = journal_.last_event_id();
  journal_.note(audit_of(outcome, now));
  TurnSettled settled{.index = turn.index,
                      .state = outcome.state,
                      .at = now,
                      .stop_reason = outcome.stop_reason,
                      .code = {},
                      .usage = outcome.usage,
                      .cost_usd = outcome.cost_usd,
                      .agent = session_.agent,
                      .model = session_.model,
                      .last_event_id = last_event_id,
                      .duration_ms = outcome.duration.count()};
  if (turn.ticket) settled.reservation = turn.ticket->hand_over_reservation();
  if (is_ask) {
    settled.agent_ms =
        std::chrono::floor<std::chrono::milliseconds>(last_active_ - turn.asked_at).count();
  }
  if (outcome.failure) {
    settled.code = outcome.failure->code;
    settled.error = sentence_of(*outcome.failure);
  }
  if (outcome.cost_usd) session_.cost_usd = session_.cost_usd.value_or(0) + *outcome.cost_usd;
  if (is_ask && turn.ticket) {
    turn.ticket->note({.app = session_.app,
                       .agent = session_.agent,
                       .model = session_.model,
                       .kind = AskKind::turn,
                       .tokens = outcome.usage.value_or(Usage()),
                       .nano_usd = nano_usd_of(outcome.cost_usd),
                       .agent_ms = settled.agent_ms.value_or(0)});
  }
  if (const auto& key = turn.request.key) {
    settled.key = is_ask ? key->keep(answer_of(turn, outcome), now) : key->release(now);
  }
  journal_.settle_turn(std::move(settled));
  turn.journal_mark = journal_.mark();
  deps_.metrics
      .counter("clawdforge_turns_total", "Turns, by how they ended.",
               {{"state", std::string(name_of(outcome.state))}})
      .increment();
}

// Done means committed.
Async<TurnOutcome> TurnQueue::answer(std::shared_ptr<LiveTurn> turn) {
  while (!turn->is_over()) co_await turn->changed.wait();
  const auto committed = co_await journal_.committed(turn->journal_mark);
  if (!committed) co_return std::unexpected(committed.error());
  if (const auto& key = turn->request.key) key->is_settled = true;
  co_return turn->take_outcome();
}

Task<void> TurnQueue::settle(std::shared_ptr<LiveTurn> turn) {
  const auto committed = co_await journal_.committed(turn->journal_mark);
  static_cast<void>(committed);  // the caller is told
}

std::optional<Failure> TurnQueue::failure_of(TurnStop reason, const LiveTurn& turn,
                                             bool has_slot) const {
  switch (reason) {
    case TurnStop::none:
    case TurnStop::cancelled:
    case TurnStop::caller_gone:
      break;
    case TurnStop::timed_out:
      if (!has_slot && deps_.quota.are_starts_held()) return memory_full().error();
      if (!has_slot) {
        return fail_for_now(Errc::unavailable, "queue_timeout",
                            "The turn's time ended while it waited; it is safe to try again.",
                            kQueueWait)
            .error();
      }
      return fail(Errc::timed_out, "timeout",
                  fmt::format("{} did not finish within {} seconds", session_.agent,
                              turn.request.timeout.count()))
          .error();
    case TurnStop::silent:
      return fail(Errc::timed_out, "agent_stalled",
                  fmt::format("{} said nothing within {} seconds", session_.agent,
                              shared_.options.first_sign_max.count()))
          .error();
    case TurnStop::closed:
      return fail(Errc::gone, "session_closed", "The session was closed.").error();
    case TurnStop::shutdown:
      return Failure{.kind = Errc::unavailable,
                     .code = "interrupted",
                     .message = "The gateway is shutting down.",
                     .retry_after = kTurnRestartWait,
                     .cause = Cause::interrupted};
  }
  return std::nullopt;
}

}  // namespace clawdforge
