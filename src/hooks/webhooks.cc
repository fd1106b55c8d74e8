#include "hooks/webhooks.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "hooks/signature.h"
#include "ledger/hooks/delivery_rows.h"

namespace clawdforge {
namespace {

constexpr std::chrono::seconds kLookMax{30};     // without a look; the clock may be set
constexpr std::chrono::seconds kLedgerPause{1};  // after the ledger has failed
constexpr std::chrono::seconds kStopGrace{2};
constexpr std::chrono::hours kTrustAge{1};         // then the certificates are read again
constexpr std::int64_t kSweepDeliveriesMax = 500;  // removed in one transaction
constexpr int kSweepDeliveriesPagesMax = 200;      // of one sweep: the next goes on

Counter& outcomes(Metrics& metrics, const char* outcome) {
  return metrics.counter("clawdforge_deliveries_total",
                         "Attempts at deliveries to webhooks, by what they came to.",
                         {{"outcome", outcome}});
}

}  // namespace

Webhooks::Webhooks(Dependencies deps, Options options)
    : deps_(std::move(deps)),
      options_(std::move(options)),
      names_(deps_.executor),
      tasks_(deps_.executor),
      delivered_(outcomes(deps_.metrics, "delivered")),
      failed_(outcomes(deps_.metrics, "failed")),
      dead_(outcomes(deps_.metrics, "dead")),
      waiting_(deps_.metrics.gauge("clawdforge_deliveries_waiting",
                                   "Deliveries that wait, counted at each sweep.")) {}

Async<void> Webhooks::begin() {
  auto due = co_await deps_.rows.due_by_app();
  if (!due) co_return std::unexpected(std::move(due.error()));
  for (const auto& [app, at] : *due) queues_[app].due = at;
  const auto count = co_await deps_.rows.waiting();
  if (!count) co_return std::unexpected(count.error());
  waiting_.set(*count);
  co_return Result<void>{};
}

void Webhooks::wake(const AppName& app) { look_again(app, deps_.clock.now()); }

void Webhooks::look_again(const AppName& app, TimePoint at) {
  Queue& queue = queues_[app];
  queue.due = std::min(queue.due.value_or(at), at);
  changed_.notify_all();
}

Task<void> Webhooks::run() {
  while (!is_stopped_) {
    while (begin_one()) {
    }
    co_await changed_.wait_for(until_next());
  }
}

Task<void> Webhooks::stop() {
  is_stopped_ = true;
  changed_.notify_all();
  const auto end = std::chrono::steady_clock::now() + kStopGrace;
  while (busy_ > 0 && std::chrono::steady_clock::now() < end) {
    co_await idle_.wait_until(end);
  }
  tasks_.cancel();
  co_await tasks_.join();
}

bool Webhooks::may_begin(const Queue& queue, TimePoint now, std::size_t failing) const {
  if (queue.is_looking || !queue.due || *queue.due > now) return false;
  if (!queue.is_failing) return queue.places() < kDeliveriesAtOnceMaxPerApp;
  return queue.places() == 0 && failing < kFailingAtOnceMax;
}

std::size_t Webhooks::failing_places() const {
  std::size_t places = 0;
  for (const auto& [app, queue] : queues_) {
    if (queue.is_failing) places += queue.places();
  }
  return places;
}

// Of the app whose turn it is; false: there is none, or no place.
bool Webhooks::begin_one() {
  if (is_stopped_ || busy_ >= kDeliveriesAtOnceMax) return false;
  const TimePoint now = deps_.clock.now();
  const std::size_t failing = failing_places();
  auto at = queues_.upper_bound(last_);
  for (std::size_t looked = 0; looked < queues_.size(); ++looked, ++at) {
    if (at == queues_.end()) at = queues_.begin();
    if (!may_begin(at->second, now, failing)) continue;
    at->second.is_looking = true;
    ++busy_;
    last_ = at->first;
    tasks_.spawn(serve(at->first));
    return true;
  }
  return false;
}

// An app whose turn has come, and that has to wait for a place, is looked at when one is free.
std::chrono::milliseconds Webhooks::until_next() const {
  const TimePoint now = deps_.clock.now();
  std::chrono::milliseconds wait = kLookMax;
  for (const auto& [app, queue] : queues_) {
    if (queue.due && *queue.due > now) wait = std::min(wait, *queue.due - now);
  }
  return std::max(wait, std::chrono::milliseconds(1));
}

// One delivery of this app, from the look for it to the note of what it came to.
Task<void> Webhooks::serve(AppName app) {
  std::optional<DueDelivery> delivery;
  if (auto chosen = co_await choose(app)) {
    delivery = std::move(*chosen);
  } else {
    deps_.log.warn("deliveries cannot be read", {{"why", std::string_view(chosen.error().detail)}});
    look_again(app, deps_.clock.now() + kLedgerPause);
  }
  Queue& queue = queues_[app];
  queue.is_looking = false;
  changed_.notify_all();
  if (delivery) {
    const DeliveryId id = delivery->id;
    const DeliveryAttempt attempted = co_await attempt(&*delivery);
    co_await settle(app, std::move(*delivery), attempted);
    queues_[app].under_way.erase(id);
  }
  if (const auto left = queues_.find(app);
      left != queues_.end() && left->second.places() == 0 && !left->second.due) {
    queues_.erase(left);
  }
  --busy_;
  changed_.notify_all();
  idle_.notify_all();
}

// The app's next one that is due and not under way; it is noted as under way.
Async<std::optional<DueDelivery>> Webhooks::choose(AppName app) {
  queues_[app].due.reset();  // who wakes it from here on is looked at again
  const auto limit = static_cast<std::int64_t>(queues_[app].under_way.size()) + 2;
  auto waiting = co_await deps_.rows.next(app, limit);
  if (!waiting) co_return std::unexpected(std::move(waiting.error()));
  Queue& queue = queues_[app];
  std::erase_if(*waiting,
                [&](const NextDelivery& next) { return queue.under_way.contains(next.id); });
  if (waiting->empty()) co_return std::nullopt;
  if (waiting->front().due_at > deps_.clock.now()) {
    look_again(app, waiting->front().due_at);
    co_return std::nullopt;
  }
  const DeliveryId id = waiting->front().id;
  auto due = co_await deps_.rows.due(id);
  if (!due) co_return due;
  // Without one it has just gone, or its app has.
  if (!*due) look_again(app, deps_.clock.now() + kLedgerPause);
  if (!*due) co_return due;
  queues_[app].under_way.insert(id);
  if (waiting->size() > 1) look_again(app, waiting->at(1).due_at);
  co_return due;
}

// Certificates change rarely, and to read them takes a while.
Async<TlsTrust> Webhooks::trust() {
  const TimePoint now = deps_.clock.now();
  if (trust_ && now - trusted_at_ < kTrustAge) co_return trust_;
  auto loaded = co_await deps_.load_trust();
  if (!loaded) co_return loaded;
  trust_ = *loaded;
  trusted_at_ = now;
  co_return loaded;
}

Task<DeliveryAttempt> Webhooks::attempt(const DueDelivery* delivery) {
  DeliveryAttempt attempted{.status = std::nullopt, .error = {}, .at = deps_.clock.now()};
  const auto to = WebAddress::parse(delivery->url);
  if (!delivery->is_allowed || !to) {
    attempted.error = "webhook_urls of the token do not allow this address any more";
    co_return attempted;
  }
  const std::int64_t at = unix_seconds(attempted.at);
  auto signature = webhook_signature(delivery->secret, delivery->id.str(), at, delivery->body);
  if (!signature) {
    attempted.error = "the token has no webhook secret";
    co_return attempted;
  }
  DeliveryRequest request{.to = *to,
                          .id = delivery->id.str(),
                          .at = at,
                          .signature = std::move(*signature),
                          .body = delivery->body,
                          .time_max = options_.time_max,
                          .trust = nullptr,
                          .names = &names_};
  if (to->scheme == "https") {
    auto trusted = co_await trust();
    if (!trusted) attempted.error = trusted.error().message;
    if (!trusted) co_return attempted;
    request.trust = *trusted;
  }
  const auto status = co_await deps_.call(std::move(request));
  attempted.at = deps_.clock.now();
  if (!status) attempted.error = status.error().message;
  if (status) attempted.status = *status;
  if (status && (*status < 200 || *status > 299)) {
    attempted.error = fmt::format("the receiver answered {}", *status);
  }
  co_return attempted;
}

// Written before its place is given back: else a ledger that can be read and not written would
// have the same delivery sent again and again.
Task<void> Webhooks::settle(AppName app, DueDelivery delivery, DeliveryAttempt attempt) {
  std::optional<TimePoint> again_at;
  const bool is_for_good = !delivery.is_allowed;  // no pause helps
  if (!attempt.error.empty() && !is_for_good) {
    again_at = options_.retries.next(delivery.attempts + 1, delivery.begun_at, attempt.at);
  }
  for (;;) {
    const auto noted = co_await deps_.rows.note(delivery.id, attempt, again_at);
    if (noted || is_stopped_) break;
    co_await changed_.wait_for(kLedgerPause);
  }
  note_outcome(app, delivery, attempt, !again_at);
  if (again_at) look_again(app, *again_at);
}

void Webhooks::note_outcome(const AppName& app, const DueDelivery& delivery,
                            const DeliveryAttempt& attempt, bool is_over) {
  Queue& queue = queues_[app];
  const bool is_delivered = attempt.error.empty();
  (is_delivered ? delivered_ : is_over ? dead_ : failed_).increment();
  if (!is_delivered && (is_over || !queue.is_failing)) {
    deps_.log.warn(is_over ? "a delivery to a webhook was given up"
                           : "a webhook cannot be reached; it is tried again",
                   {{"app", std::string_view(app)},
                    {"delivery", std::string_view(delivery.id)},
                    {"type", std::string_view(delivery.type)},
                    {"why", std::string_view(attempt.error)}});
  }
  queue.is_failing = !is_delivered;
}

Async<Delivery> Webhooks::retry(DeliveryId id) {
  auto retried = co_await deps_.rows.retry(std::move(id), deps_.clock.now());
  if (retried) wake(retried->app);
  co_return retried;
}

Async<void> Webhooks::sweep() {
  for (int page = 0; page < kSweepDeliveriesPagesMax && !is_stopped_; ++page) {
    const auto trimmed =
        co_await deps_.rows.trim(deps_.clock.now() - options_.kept_for, kSweepDeliveriesMax);
    if (!trimmed) co_return std::unexpected(trimmed.error());
    if (*trimmed < kSweepDeliveriesMax) break;
  }
  const auto count = co_await deps_.rows.waiting();
  if (!count) co_return std::unexpected(count.error());
  waiting_.set(*count);
  co_return Result<void>{};
}

}  // namespace clawdforge
