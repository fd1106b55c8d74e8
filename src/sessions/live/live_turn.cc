#include "sessions/live/live_turn.h"

#include <fmt/format.h>

#include <utility>

#include "base/text.h"
#include "json/schema/json_schema.h"

namespace clawdforge {
using std::chrono::steady_clock;

namespace {

std::string stop_reason_of(const Failure& failure) {
  return failure.kind == Errc::timed_out ? "timeout" : "error";
}

// An agent may also say by itself that a turn was cancelled.
TurnState state_of(const std::optional<Failure>& failure, std::string_view stop_reason) {
  if (!failure) return stop_reason == kStopCancelled ? TurnState::cancelled : TurnState::done;
  return failure->cause == Cause::interrupted ? TurnState::interrupted : TurnState::failed;
}

}  // namespace

LiveTurn::LiveTurn(IoExecutor executor, std::int64_t turn_index, TurnRequest asked,
                   std::vector<Attachment> files)
    : index(turn_index),
      request(std::move(asked)),
      attachments(std::move(files)),
      begun(steady_clock::now()),
      give_up_at(steady_clock::time_point::max()),
      deadline_(executor) {}

void LiveTurn::start_deadline(std::move_only_function<void()> on_deadline) {
  deadline_.expires_at(request.received + request.timeout);
  deadline_.async_wait(
      [on_deadline = std::move(on_deadline)](boost::system::error_code error) mutable {
        if (!error) on_deadline();
      });
}

void LiveTurn::collect(const AgentEvent& event) {
  if (!event.text.empty() && !is_text_truncated_) {
    const std::string_view fits = cut_to(event.text, kAnswerTextBytesMax - text_.size());
    text_.append(fits);
    is_text_truncated_ = fits.size() < event.text.size();
  }
  if (!request.events || is_events_truncated_) return;
  if (event.json.size() > request.events->message_bytes_max()) {
    has_left_out_ = true;
    return;
  }
  const std::size_t bytes = events_bytes_ + event.json.size();
  const bool fits = bytes <= kAnswerEventsBytesMax && (bytes <= kUncountedAnswerBytesMax ||
                                                       request.memory.resize(bytes) == Fit::fits);
  if (!fits) {
    is_events_truncated_ = true;
    return;
  }
  events_bytes_ = bytes;
  request.events->add(event.json);
}

void LiveTurn::forget_events() {
  if (request.events) request.events->clear();
  request.memory.release();
  is_events_truncated_ = true;
}

std::size_t LiveTurn::held_bytes() const {
  const std::size_t text = is_over() ? outcome_.text.size() : text_.size();
  return text + (request.events ? request.events->bytes() : 0);
}

// What the end says about the agent's login and account. One that was never asked, or was
// cancelled, says nothing.
void LiveTurn::settle_ticket(std::optional<Failure>& failure, bool was_asked) {
  if (!ticket) return;
  std::optional<Failure> nothing = Failure{.cause = Cause::cancelled};
  const bool has_answered = was_asked && stop == TurnStop::none;
  ticket->settle(failure || has_answered ? failure : nothing);
}

Result<std::string> LiveTurn::checked_answer(const std::string& structured) const {
  const std::string& answer = structured.empty() ? text_ : structured;
  if (answer.size() <= kCheckedAnswerBytesMax) return value_by_schema(answer, *request.schema);
  return fail(
      Errc::agent_failed, "schema_not_met",
      fmt::format("The agent's answer has more than {} KiB, and is too large to be checked.",
                  kCheckedAnswerBytesMax / 1024));
}

const TurnOutcome& LiveTurn::conclude(std::optional<TurnEnd> end, std::optional<Failure> failure) {
  const bool was_asked = is_asked();
  stage = TurnStage::over;
  TurnOutcome& outcome = outcome_;
  outcome.turn_index = index;
  if (end) {
    outcome.usage = end->usage;
    outcome.cost_usd = end->cost_usd;
    outcome.stop_reason = std::move(end->stop_reason);
    if (!failure) failure = std::move(end->failure);
  }
  if (stop == TurnStop::cancelled) {
    failure.reset();  // whatever the agent made of it
    outcome.stop_reason = kStopCancelled;
  }
  settle_ticket(failure, was_asked);
  const bool is_whole = end && !failure && outcome.stop_reason != kStopCancelled;
  if (is_whole && request.schema) {
    auto answer = checked_answer(end->structured);
    if (answer) {
      outcome.result = std::move(*answer);
    } else {
      failure = std::move(answer.error());
      outcome.failed_text = cut_to(text_, kFailedTextBytesMax);
    }
  }
  if (failure) {
    outcome.stop_reason = stop_reason_of(*failure);
  } else if (!outcome.stop_reason) {
    outcome.stop_reason = kStopCancelled;
  }
  outcome.state = state_of(failure, *outcome.stop_reason);
  outcome.failure = std::move(failure);
  outcome.is_events_truncated = is_events_truncated_ || has_left_out_;
  outcome.text = std::move(text_);
  outcome.is_text_truncated = is_text_truncated_;
  outcome.is_resumed = is_resumed;
  outcome.error_tail = std::move(error_tail);
  outcome.duration = std::chrono::floor<std::chrono::milliseconds>(steady_clock::now() - begun);
  deadline_.cancel();
  changed.notify_all();
  return outcome;
}

}  // namespace clawdforge
