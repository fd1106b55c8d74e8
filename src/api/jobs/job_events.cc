#include "api/jobs/job_events.h"

#include <charconv>
#include <utility>

#include "api/core/problem.h"
#include "api/jobs/job_state.h"
#include "api/native/event_routes.h"
#include "http/message/sse.h"

namespace clawdforge {
namespace {

struct JobWatcher {
  JobRoutes routes;
  std::shared_ptr<const App> app;
  JobId id;
  std::int64_t after = 0;  // of the turn's events; what a reader that comes back has
  StreamShare share;
};

// Until the turn's closing event, or until its reader is told to come back.
Async<void> send_turn(JobWatcher* watcher, const Job* job, BodyWriter* writer) {
  const TurnCall& call = watcher->routes.calls.turn;
  const std::int64_t after = std::max(job->after_event, watcher->after);
  auto reader = co_await call.sessions->read_events(watcher->app->name, job->session_id, after);
  if (!reader) co_return Result<void>{};  // its session is gone
  StreamShare share{.stream = {}, .memory = call.memory->open(watcher->app->name.str())};
  Response turn =
      event_stream(std::move(*reader), job->turn_index, std::move(share), watcher->app, *call.apps);
  co_return co_await turn.stream(writer);
}

Async<void> send_states(JobWatcher watcher, BodyWriter* writer) {
  std::string out(kSseComment);  // so that the caller sees at once that it is heard
  std::optional<std::pair<JobState, std::int64_t>> told;
  std::int64_t attempts_streamed = 0;
  while (true) {
    auto record = co_await watcher.routes.jobs->find(watcher.app->name, watcher.id);
    if (!record) co_return std::unexpected(std::move(record.error()));
    const Job& job = record->job;
    const bool is_turn = job.turn_index && job.attempts > attempts_streamed;
    const std::pair now(job.state, job.attempts);
    // A turn that has ended already is told from its beginning.
    if (told != now && !(is_turn && has_ended(job.state))) {
      append_sse(out, std::nullopt, "state", job_state_json(job));
      told = now;
    }
    if (!out.empty()) {
      auto written = co_await writer->write(std::exchange(out, {}));
      if (!written) co_return written;
    }
    if (is_turn) {
      attempts_streamed = job.attempts;
      auto sent = co_await send_turn(&watcher, &job, writer);
      if (!sent) co_return sent;
      continue;
    }
    if (has_ended(job.state)) co_return Result<void>{};
    if (!watcher.routes.calls.turn.apps->is_current(*watcher.app)) co_return Result<void>{};
    if (watcher.routes.jobs->is_draining()) {
      append_sse(out, std::nullopt, "shutdown", "{}");
      co_return co_await writer->write(std::move(out));
    }
    const auto begun = std::chrono::steady_clock::now();
    co_await watcher.routes.jobs->changed(watcher.id, kHeartbeat);
    if (std::chrono::steady_clock::now() - begun >= kHeartbeat) out = kSseComment;
  }
}

Result<std::int64_t> last_event_in(const Request& request) {
  const auto last = request.header("Last-Event-ID");
  std::int64_t after = 0;
  if (!last) return after;
  const char* const end = last->data() + last->size();
  const auto [rest, error] = std::from_chars(last->data(), end, after);
  if (error == std::errc() && rest == end && after >= 0) return after;
  auto refused =
      fail(Errc::invalid, "validation_failed", "Last-Event-ID must be the id of an event.");
  refused.error().fields = {{"Last-Event-ID", "must be the id of an event"}};
  return refused;
}

}  // namespace

Task<Response> job_events(JobRoutes routes, Caller caller, Request* request) {
  const auto after = last_event_in(*request);
  if (!after) co_return problem(after.error(), request->id);
  const TurnCall& call = routes.calls.turn;
  auto share = admit_stream(*call.quota, *call.memory, *caller.app);
  if (!share) co_return problem(share.error(), request->id);
  JobId id(request->params.front());
  const auto found = co_await routes.jobs->find(caller.app->name, id);
  if (!found) co_return problem(found.error(), request->id);
  Response response;
  response.content_type = "text/event-stream";
  response.headers.emplace_back("X-Accel-Buffering", "no");
  response.stream = [watcher = JobWatcher{std::move(routes), caller.app, std::move(id), *after,
                                          std::move(*share)}](BodyWriter* writer) mutable {
    return send_states(std::move(watcher), writer);
  };
  co_return response;
}

}  // namespace clawdforge
