#include "api/jobs/job_work.h"

#include <charconv>

#include "base/text.h"

namespace clawdforge {
namespace {

std::unexpected<Failure> not_a_stream() {
  auto refused = fail(Errc::invalid, "validation_failed",
                      "A job is not a stream: leave stream out, and read the events of the job.");
  refused.error().fields = {{"stream", "must be false: ask for the events of the job"}};
  return refused;
}

Async<void> check_run(RunCall call, std::shared_ptr<const App> app, std::string body,
                      std::string* ignored) {
  auto parsed = co_await call.compute->run(Lane(app->name), std::move(body),
                                           [defaults = call.defaults, ignored](std::string& text) {
                                             return parse_run(text, false, *defaults, ignored);
                                           });
  if (!parsed) co_return std::unexpected(std::move(parsed.error()));
  if (parsed->is_streamed) co_return not_a_stream();
  co_return co_await call.runs->check(std::move(app), std::move(parsed->run));
}

Async<void> check_turn(TurnCall call, std::shared_ptr<const App> app, SessionId id,
                       std::string body, std::string* ignored) {
  auto parsed = co_await call.compute->run(Lane(app->name), std::move(body),
                                           [defaults = call.defaults, ignored](std::string& text) {
                                             return parse_turn(text, false, defaults, ignored);
                                           });
  if (!parsed) co_return std::unexpected(std::move(parsed.error()));
  if (parsed->is_streamed) co_return not_a_stream();
  if (!is_session_id(id.str())) {
    co_return fail(Errc::not_found, "session_not_found", "There is no such session.");
  }
  auto checked =
      co_await call.sessions->check(std::move(app), std::move(id), std::move(parsed->turn));
  if (!checked && checked.error().code == "session_not_found") {
    checked.error().message = "There is no such session.";
  }
  co_return checked;
}

std::chrono::seconds retry_after_in(const Response& response) {
  for (const auto& [name, value] : response.headers) {
    std::int64_t seconds = 0;
    if (name != "Retry-After") continue;
    std::from_chars(value.data(), value.data() + value.size(), seconds);
    return std::chrono::seconds(seconds);
  }
  return std::chrono::seconds(0);
}

}  // namespace

Async<void> check_job(JobCalls calls, std::shared_ptr<const App> app, const JobRequest* request,
                      std::string* ignored) {
  if (request->kind == JobKind::run) {
    co_return co_await check_run(calls.run, std::move(app), request->body, ignored);
  }
  co_return co_await check_turn(calls.turn, std::move(app), request->session_id, request->body,
                                ignored);
}

Task<JobAnswer> perform_job(JobCalls calls, JobCall call) {
  const bool is_run = call.job.kind == JobKind::run;
  Request request(IpAddress::from_v4({127, 0, 0, 1}));
  request.method = "POST";
  request.path = is_run ? "/run" : "/sessions/turn";
  request.id = call.job.request_id;
  request.body = std::move(call.body);
  request.received = std::chrono::steady_clock::now();
  request.hang_up = call.hang_up;
  if (!is_run) request.params.push_back(call.job.session_id.str());
  Caller caller{.kind = CallerKind::app, .app = std::move(call.app)};
  Response response =
      is_run ? co_await answer_run(calls.run, std::move(caller), &request, std::move(call.gate))
             : co_await answer_turn(calls.turn, std::move(caller), &request, std::move(call.gate));
  co_return JobAnswer{.status = response.status,
                      .body = std::move(response.body),
                      .code = std::string(response.code),
                      .retry_after = retry_after_in(response)};
}

}  // namespace clawdforge
