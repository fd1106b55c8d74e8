// How the Gateway shows what waits in it, and how busy its io thread is.
#include "base/async/async_tokens.h"
#include "daemon/gateway.h"

namespace clawdforge {
namespace {

constexpr std::chrono::seconds kLagInterval{1};

}  // namespace

// Called when metrics are asked for, so that the queues need not keep a gauge up to date.
void Gateway::show_depths() {
  const auto show = [this](const char* name, const char* help, std::size_t depth) {
    deps_.metrics.gauge(name, help).set(static_cast<std::int64_t>(depth));
  };
  const SessionLoad load = sessions_.load();
  custody_.show();
  show("clawdforge_disk_queue_jobs", "Jobs of the disk that wait or are being done.",
       deps_.disk.waiting());
  show("clawdforge_runs_unsettled", "Ended runs whose rows do not say so yet.", runs_.unsettled());
  show("clawdforge_turns_waiting", "Turns that wait for another one.", load.turns_waiting);
  show("clawdforge_permissions_open", "Questions that wait for an answer.", load.questions_open);
  show("clawdforge_answer_bytes", "Gathered for the answers of turns.", load.answer_bytes);
  show("clawdforge_journal_waiting_bytes", "Events on their way to the ledger.",
       load.journal_bytes);
  show("clawdforge_event_readers", "Streams of events.", load.readers);
  show("clawdforge_feed_bytes", "Events kept in memory for readers.", load.feed_bytes);
  show("clawdforge_journal_kept_bytes", "Kept of sessions in the ledger.", load.kept_bytes);
  show("clawdforge_sessions_undropped", "Sessions that were not made and still have a row.",
       load.undropped);
  show("clawdforge_log_waiting_bytes", "Log lines that wait to be written.",
       deps_.log.waiting_bytes());
  show("clawdforge_upload_bytes", "Uploads that are stored or under way.",
       static_cast<std::size_t>(uploads_.bytes()));
  show("clawdforge_removals_waiting", "Directories and files that could not be removed yet.",
       run_dirs_.unremoved() + session_dirs_.unremoved() + upload_files_.unremoved() +
           trash_.unremoved());
  show("clawdforge_deliveries_under_way", "Deliveries that are being sent.", webhooks_.under_way());
  show("clawdforge_jobs_in_hand", "Jobs that run, or wait for a place.", jobs_.in_hand());
  agent_memory_.show();
  show("clawdforge_browsers", "Browsers that are signed in to the dashboard.", browsers_.size());
  show("clawdforge_compute_waiting", "Large texts that wait to be read.", compute_.waiting());
  show("clawdforge_http_requests_busy", "Requests that are being read, handled or answered.",
       server_.busy());
}

Task<void> Gateway::measure_loop_lag() {
  Histogram& lag = deps_.metrics.durations("clawdforge_io_loop_lag_seconds",
                                           "How late a timer of the io thread fires.");
  Gauge& dropped =
      deps_.metrics.gauge("clawdforge_log_lines_dropped", "Log lines given up: stderr was slow.");
  Gauge& open = deps_.metrics.gauge("clawdforge_open_sessions", "Sessions open in the ledger.");
  while (!is_ending_) {
    lag_timer_.expires_after(kLagInterval);
    const auto due = lag_timer_.expiry();
    co_await lag_timer_.async_wait(kAwait);
    if (is_ending_) co_return;
    const std::chrono::duration<double> late = std::chrono::steady_clock::now() - due;
    lag.observe(late.count());
    deps_.ledger.answer_stalled_calls();
    deps_.disk.answer_stalled_calls();
    dropped.set(deps_.log.lines_dropped());
    open.set(watch_.open_sessions());
  }
}

}  // namespace clawdforge
