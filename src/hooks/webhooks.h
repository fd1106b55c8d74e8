// Webhooks sends deliveries: what the ledger says is waiting, fairly between apps, until it is
// delivered or given up. The ledger's rows decide; memory only knows when each app's next one is
// due, and what is under way. What is cut off by a crash still waits, and is sent again.
//
// A receiver that does not answer holds a place for as long as it is waited for. So an app whose
// last attempt failed gets one place, and all such apps together leave some places free: they
// delay no other app for long.
//
// Owned by the daemon; io thread only. run() ends by stop().
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/async/async.h"
#include "base/async/signal.h"
#include "base/async/task_group.h"
#include "base/clock.h"
#include "base/telemetry/log.h"
#include "base/telemetry/metrics.h"
#include "hooks/delivery_call.h"
#include "hooks/retry_schedule.h"
#include "model/hooks/delivery.h"

namespace clawdforge {

class DeliveryRows;

inline constexpr std::size_t kDeliveriesAtOnceMax = 16;
inline constexpr std::size_t kDeliveriesAtOnceMaxPerApp = 4;
inline constexpr std::size_t kFailingAtOnceMax = 12;  // of apps whose last attempt failed

class Webhooks {
 public:
  // Each outlives it.
  struct Dependencies {
    IoExecutor executor;
    DeliveryRows& rows;
    const Clock& clock;
    Log& log;
    Metrics& metrics;
    std::function<Async<TlsTrust>()> load_trust;
    std::function<Async<int>(DeliveryRequest)> call = call_webhook;
  };
  struct Options {
    RetrySchedule retries;
    std::chrono::milliseconds time_max{};  // for one attempt
    std::chrono::seconds kept_for{};       // after the end
  };

  Webhooks(Dependencies deps, Options options);

  // Finds what an earlier life has left.
  Async<void> begin();
  Task<void> run();
  // What is under way has a moment to end; then it is cut off, and waits for the next life.
  Task<void> stop();

  // A delivery of this app was committed.
  void wake(const AppName& app);
  // As DeliveryRows::retry().
  Async<Delivery> retry(DeliveryId id);
  // Removes what ended long ago; counts what waits.
  Async<void> sweep();

  std::size_t under_way() const { return busy_; }

 private:
  struct Queue {
    std::optional<TimePoint> due;  // of the next one that is not under way; none: there is none
    std::set<DeliveryId> under_way;
    bool is_looking = false;  // the ledger is asked for the next one
    bool is_failing = false;  // its last attempt failed
    std::size_t places() const { return under_way.size() + (is_looking ? 1 : 0); }
  };
  using Queues = std::map<AppName, Queue>;

  bool may_begin(const Queue& queue, TimePoint now, std::size_t failing) const;
  std::size_t failing_places() const;
  bool begin_one();
  std::chrono::milliseconds until_next() const;
  Task<void> serve(AppName app);
  Async<std::optional<DueDelivery>> choose(AppName app);
  Task<DeliveryAttempt> attempt(const DueDelivery* delivery);
  Async<TlsTrust> trust();
  Task<void> settle(AppName app, DueDelivery delivery, DeliveryAttempt attempt);
  void note_outcome(const AppName& app, const DueDelivery& delivery, const DeliveryAttempt& attempt,
                    bool is_over);
  void look_again(const AppName& app, TimePoint at);

  const Dependencies deps_;
  const Options options_;
  NameLookups names_;
  TaskGroup tasks_;  // after what they use
  Signal changed_;
  Signal idle_;
  Queues queues_;
  AppName last_;  // whose turn it was
  TlsTrust trust_;
  TimePoint trusted_at_;
  std::size_t busy_ = 0;  // places that are taken
  bool is_stopped_ = false;
  Counter& delivered_;
  Counter& failed_;
  Counter& dead_;
  Gauge& waiting_;
};

}  // namespace clawdforge
