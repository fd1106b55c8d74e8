#include "ledger/jobs/job_row.h"

#include "ledger/core/row_values.h"

namespace clawdforge {
namespace {

enum JobColumn : std::size_t {
  kJobAtId,
  kJobAtApp,
  kJobAtKind,
  kJobAtState,
  kJobAtSession,
  kJobAtMeta,
  kJobAtWebhook,
  kJobAtRequestId,
  kJobAtCreatedAt,
  kJobAtReadyAt,
  kJobAtStartedAt,
  kJobAtEndedAt,
  kJobAtAttempts,
  kJobAtAttemptsMax,
  kJobAtTurnIndex,
  kJobAtAfterEvent,
  kJobAtStatus,
};
static_assert(kJobAtId == kJobColumnId && kJobAtCreatedAt == kJobColumnCreatedAt &&
              kJobAtStatus + 1 == kJobColumnCount);

}  // namespace

Job job_from(const SqlRow& row) {
  Job job;
  job.id = id_in<JobId>(row.at(kJobAtId));
  job.app = id_in<AppName>(row.at(kJobAtApp));
  job.kind = job_kind_from(text_in(row.at(kJobAtKind)).value_or("")).value_or(JobKind::run);
  job.state =
      job_state_from(text_in(row.at(kJobAtState)).value_or("")).value_or(JobState::interrupted);
  job.session_id = id_in<SessionId>(row.at(kJobAtSession));
  job.meta = json_object_in(row.at(kJobAtMeta)).value_or("{}");
  job.webhook = text_in(row.at(kJobAtWebhook)).value_or("");
  job.request_id = text_in(row.at(kJobAtRequestId)).value_or("");
  job.created_at = time_in(row.at(kJobAtCreatedAt)).value_or(TimePoint());
  job.ready_at = time_in(row.at(kJobAtReadyAt)).value_or(TimePoint());
  job.started_at = time_in(row.at(kJobAtStartedAt));
  job.ended_at = time_in(row.at(kJobAtEndedAt));
  job.attempts = whole_in(row.at(kJobAtAttempts)).value_or(0);
  job.attempts_max = whole_in(row.at(kJobAtAttemptsMax)).value_or(1);
  job.turn_index = whole_in(row.at(kJobAtTurnIndex));
  job.after_event = whole_in(row.at(kJobAtAfterEvent)).value_or(0);
  job.status = whole_in(row.at(kJobAtStatus));
  return job;
}

}  // namespace clawdforge
