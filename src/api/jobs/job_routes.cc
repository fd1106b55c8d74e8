#include "api/jobs/job_routes.h"

#include <algorithm>
#include <utility>

#include "api/core/json_body.h"
#include "api/core/problem.h"
#include "api/jobs/job_events.h"
#include "api/jobs/job_requests.h"
#include "api/jobs/job_state.h"
#include "api/jobs/prefer.h"
#include "api/keys/keyed.h"
#include "json/json_members.h"
#include "model/jobs/job_json.h"

namespace clawdforge {
namespace {

constexpr std::size_t kAnswerPieceBytes = 256 * 1024;  // of a file, read and sent at a time

enum class Asked { as_job, as_plain_call };

Response acceptance(const Job& job, Asked how) {
  Response response = accepted_job(job);
  if (how == Asked::as_plain_call) {
    response.headers.emplace_back("Preference-Applied", "respond-async");
  }
  return response;
}

// The job is in the ledger, with the answer that is kept for its idempotency key.
Task<Response> submit_job(JobRoutes routes, Caller caller, Request* request, JobRequest asked,
                          Asked how) {
  asked.request_id = request->id;
  if (caller.key) {
    asked.key = caller.key;
    asked.answer_of = [how, id = request->id](const Job& job) {
      return kept_answer(acceptance(job, how), id);
    };
  }
  auto job = co_await routes.jobs->submit(caller.app->name, std::move(asked));
  if (!job) co_return problem(job.error(), request->id);
  co_return acceptance(*job, how);
}

Task<Response> post_job(JobRoutes routes, Caller caller, Request* request) {
  const auto ignored = std::make_shared<std::string>();
  auto parsed = co_await routes.calls.run.compute->run(
      Lane(caller.app->name), std::move(request->body),
      [ignored](std::string& body) { return parse_job(body, ignored.get()); });
  name_ignored_fields(*request, std::move(*ignored));
  if (!parsed) co_return problem(parsed.error(), request->id);
  if (!parsed->webhook.empty()) {
    const auto allowed = check_webhook(routes.policies->of(*caller.app), parsed->webhook);
    if (!allowed) co_return problem(allowed.error(), request->id);
  }
  auto checked = co_await check_job(routes.calls, caller.app, &*parsed, nullptr);
  if (!checked) {
    co_return problem(within(name_of(parsed->kind), std::move(checked.error())), request->id);
  }
  co_return co_await submit_job(std::move(routes), std::move(caller), request, std::move(*parsed),
                                Asked::as_job);
}

// A caller of POST /run or of a turn who prefers not to wait.
Task<Response> respond_async(JobRoutes routes, JobKind kind, Caller caller, Request* request) {
  JobRequest asked{.kind = kind, .body = std::exchange(request->body, {}), .request_id = {}};
  if (kind == JobKind::turn) asked.session_id = SessionId(request->params.front());
  std::string ignored;
  auto checked = co_await check_job(routes.calls, caller.app, &asked, &ignored);
  name_ignored_fields(*request, std::move(ignored));
  if (!checked) co_return problem(checked.error(), request->id);
  co_return co_await submit_job(std::move(routes), std::move(caller), request, std::move(asked),
                                Asked::as_plain_call);
}

Task<Response> list_jobs(JobRoutes routes, Caller caller, Request* request) {
  auto filter = parse_job_list(request->query, caller.app->name);
  if (!filter) co_return problem(filter.error(), request->id);
  const auto page = co_await routes.rows->page(std::move(*filter), Lane(caller.app->name));
  if (!page) co_return problem(page.error(), request->id);
  co_return job_list(*page, JobReader::app);
}

Task<Response> list_all_jobs(const JobRows* rows, Request* request) {
  auto filter = parse_admin_job_list(request->query);
  if (!filter) co_return problem(filter.error(), request->id);
  const auto page = co_await rows->page(std::move(*filter));
  if (!page) co_return problem(page.error(), request->id);
  co_return job_list(*page, JobReader::admin);
}

Async<void> send_answer(const AnswerFiles* files, std::string name, std::string head, Lane lane,
                        std::int64_t bytes, BodyWriter* writer) {
  auto written = co_await writer->write(std::move(head));
  for (std::int64_t offset = 0; written && offset < bytes;) {
    auto piece = co_await files->read(name, offset, kAnswerPieceBytes, lane);
    if (!piece) co_return std::unexpected(std::move(piece.error()));
    if (piece->empty()) {
      co_return fail(Errc::unavailable, "file_changed",
                     "The answer's file is shorter than it was.");
    }
    offset += static_cast<std::int64_t>(piece->size());
    written = co_await writer->write(std::move(*piece));
  }
  if (!written) co_return written;
  co_return co_await writer->write("}");
}

Response shown_job(const JobRoutes& routes, JobRecord record) {
  if (record.is_in_file) {
    std::string body;
    append_job_open(body, record.job);
    append_name(body, "answer");
    Response response;
    response.stream = [files = routes.files, name = record.job.id.str(), head = std::move(body),
                       lane = Lane(record.job.app),
                       bytes = record.answer_bytes](BodyWriter* writer) mutable {
      return send_answer(files, std::move(name), std::move(head), std::move(lane), bytes, writer);
    };
    return response;
  }
  return json_response(job_json(record.job, record.answer));
}

Task<Response> show_job(JobRoutes routes, Caller caller, Request* request) {
  const auto wait = preferred_wait(*request);
  auto record =
      co_await routes.jobs->find_ended(caller.app->name, JobId(request->params.front()),
                                       wait.value_or(std::chrono::seconds(0)), request->hang_up);
  if (!record) co_return problem(record.error(), request->id);
  Response response = shown_job(routes, std::move(*record));
  if (wait) {
    response.headers.emplace_back("Preference-Applied", "wait=" + std::to_string(wait->count()));
  }
  co_return response;
}

Task<Response> cancel_job(JobRoutes routes, Caller caller, Request* request) {
  const auto is_cancelled =
      co_await routes.jobs->cancel(caller.app->name, JobId(request->params.front()));
  if (!is_cancelled) co_return problem(is_cancelled.error(), request->id);
  co_return json_response(*is_cancelled ? R"({"ok":true,"state":"cancelled"})"
                                        : R"({"ok":true,"already_ended":true})");
}

// Whether the turn that this body asks for is to be a stream is for the plain call to decide.
bool asks_for_stream(const Request& request) {
  return accepts_event_stream(request) || request.body.contains("\"stream\"");
}

void offer_async(Endpoints& endpoints, std::string_view pattern, JobKind kind,
                 const JobRoutes& routes) {
  const auto plain = std::ranges::find_if(endpoints, [&](const Endpoint& endpoint) {
    return endpoint.method == "POST" && endpoint.pattern == pattern;
  });
  if (plain == endpoints.end()) return;
  Answer as_job = keyed(*routes.keys, *routes.calls.run.compute,
                        [kind, routes](Caller caller, Request* request) {
                          return respond_async(routes, kind, std::move(caller), request);
                        });
  plain->answer = [answer = std::move(plain->answer), as_job = std::move(as_job), kind](
                      Caller caller, Request* request) {
    const bool is_plain =
        !prefers_async(*request) || (kind == JobKind::turn && asks_for_stream(*request));
    return (is_plain ? answer : as_job)(std::move(caller), request);
  };
}

}  // namespace

void add_job_routes(Endpoints& endpoints, JobRoutes routes) {
  offer_async(endpoints, "/run", JobKind::run, routes);
  offer_async(endpoints, "/sessions/{id}/turn", JobKind::turn, routes);
  const auto add = [&](std::string_view method, std::string_view pattern, Body body,
                       Task<Response> (*answer)(JobRoutes, Caller, Request*), bool watches) {
    endpoints.push_back({method, pattern, Permit::app, body,
                         [routes, answer](Caller caller, Request* request) {
                           return answer(routes, std::move(caller), request);
                         },
                         watches});
  };
  endpoints.push_back(
      {"POST", "/jobs", Permit::app, Body::json,
       keyed(*routes.keys, *routes.calls.run.compute, [routes](Caller caller, Request* request) {
         return post_job(routes, std::move(caller), request);
       })});
  add("GET", "/jobs", Body::none, list_jobs, false);
  add("GET", "/jobs/{id}", Body::none, show_job, true);
  add("DELETE", "/jobs/{id}", Body::none, cancel_job, false);
  add("GET", "/jobs/{id}/events", Body::none, job_events, false);
  endpoints.push_back(
      {"GET", "/admin/jobs", Permit::admin, Body::none,
       [rows = routes.rows](Caller, Request* request) { return list_all_jobs(rows, request); }});
}

}  // namespace clawdforge
