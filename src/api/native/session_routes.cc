#include "api/native/session_routes.h"

#include <boost/json.hpp>
#include <limits>

#include "api/core/failure_answer.h"
#include "api/core/json_body.h"
#include "api/core/problem.h"
#include "api/core/query.h"
#include "api/keys/keyed.h"
#include "api/native/event_routes.h"
#include "api/shapes/native_events.h"
#include "api/shapes/session_answers.h"
#include "api/shapes/session_state.h"
#include "storage/work/work_files.h"

namespace clawdforge {
namespace {

constexpr std::size_t kUncountedPromptBytesMax = 4 * 1024;  // a longer one is counted as memory
constexpr std::size_t kFilePieceBytes = 256 * 1024;         // of a file, read and sent at a time

Task<Response> create(Sessions* sessions, const Apps* apps, ComputeWorker* compute, Caller caller,
                      Request* request) {
  const auto ignored = std::make_shared<std::string>();
  auto parsed = co_await compute->run(
      Lane(caller.app->name), std::move(request->body),
      [ignored](std::string& body) { return parse_session(body, ignored.get()); });
  name_ignored_fields(*request, std::move(*ignored));
  if (!parsed) co_return problem(parsed.error(), request->id);
  if (caller.key) {
    parsed->key = caller.key;
    parsed->answer_of = [id = request->id](const Session& made) {
      return kept_answer(created_session(made), id);
    };
  }
  const auto session = co_await sessions->create(caller.app, std::move(*parsed), request->hang_up);
  if (!session) co_return uncreated_session(session.error(), request->id);
  if (!apps->is_current(*caller.app)) {
    // The token was taken away meanwhile, and with it all sessions but this one.
    const auto closed = co_await sessions->close(caller.app->name, session->id);
    co_return problem(closed ? token_revoked().error() : closed.error(), request->id);
  }
  co_return created_session(*session);
}

// Its prompt outlives the request: it waits for other turns and for the agent.
Async<Response> stream_turn(TurnCall deps, std::shared_ptr<const App> app, SessionId id,
                            TurnRequest asked, bool is_simple) {
  auto share = admit_stream(*deps.quota, *deps.memory, *app);
  if (!share) co_return std::unexpected(std::move(share.error()));
  asked.memory = deps.memory->open(app->name.str());
  if (asked.prompt.size() > kUncountedPromptBytesMax) {
    auto counted = refused_by(asked.memory.resize(asked.prompt.size()));
    if (!counted) co_return std::unexpected(std::move(counted.error()));
  }
  auto stream = co_await deps.sessions->stream_turn(app, std::move(id), std::move(asked));
  if (!stream) co_return std::unexpected(std::move(stream.error()));
  StreamShape shape;
  if (is_simple) shape = {std::make_shared<SimpleStream>(), deps.compute, 0};
  Response response = event_stream(std::move(stream->reader), stream->turn_index, std::move(*share),
                                   app, *deps.apps, std::move(shape));
  add_limit_headers(response, stream->rate_limit_policy, stream->rate_limit);
  co_return response;
}

Task<Response> show(Sessions* sessions, Caller caller, Request* request) {
  const auto id = session_id_of(*request);
  if (!id) co_return problem(id.error(), request->id);
  const auto view = co_await sessions->find(caller.app->name, *id);
  if (!view) co_return problem(view.error(), request->id);
  co_return session_state(*view);
}

Task<Response> list_turns(Sessions* sessions, Caller caller, Request* request) {
  constexpr std::int64_t kTurnPageMax = 1'000;
  constexpr std::int64_t kTurnPageDefault = 100;
  Query query(request->query);
  const auto after = query.integer("after", 0, std::numeric_limits<std::int64_t>::max());
  const auto limit = query.integer("limit", 1, kTurnPageMax);
  if (auto checked = query.check(); !checked) co_return problem(checked.error(), request->id);
  const auto id = session_id_of(*request);
  if (!id) co_return problem(id.error(), request->id);
  const auto page = co_await sessions->turns(caller.app->name, *id, after.value_or(0),
                                             limit.value_or(kTurnPageDefault));
  if (!page) co_return problem(page.error(), request->id);
  co_return turn_list(*page);
}

Task<Response> list(Sessions* sessions, const SessionRows* rows, Caller caller, Request* request) {
  auto filter = parse_session_list(request->query, caller.app->name);
  if (!filter) co_return problem(filter.error(), request->id);
  auto page = co_await rows->page(std::move(*filter), Lane(caller.app->name));
  if (!page) co_return problem(page.error(), request->id);
  co_return session_list(std::move(page->sessions), page->next_cursor, [sessions](Session session) {
    return sessions->view_of(std::move(session));
  });
}

// Clients that know no `keep` may send anything here: only a JSON object is looked at.
Task<Response> close(Sessions* sessions, Caller caller, Request* request) {
  auto object = parse_json_object(request->body);
  const boost::json::object given = object ? std::move(*object) : boost::json::object();
  Fields fields(given);
  const bool keep = fields.boolean("keep").value_or(false);
  std::string ignored;
  const auto checked = fields.check(&ignored);
  name_ignored_fields(*request, std::move(ignored));
  if (!checked) co_return problem(checked.error(), request->id);
  const auto id = session_id_of(*request);
  if (!id) co_return problem(id.error(), request->id);
  const auto was_open = keep ? co_await sessions->close_and_keep(caller.app->name, *id)
                             : co_await sessions->close(caller.app->name, *id);
  if (!was_open) co_return problem(was_open.error(), request->id);
  co_return json_response(*was_open ? R"({"ok":true})" : R"({"ok":true,"already_closed":true})");
}

Task<Response> list_files(Sessions* sessions, Caller caller, Request* request) {
  const auto id = session_id_of(*request);
  if (!id) co_return problem(id.error(), request->id);
  const auto files = co_await sessions->files(caller.app->name, *id);
  if (!files) co_return problem(files.error(), request->id);
  co_return file_list(*files);
}

// One that has become shorter since it was opened is cut: else it would look whole.
Async<void> send_file(std::unique_ptr<WorkFileReader> file, BodyWriter* writer) {
  for (std::int64_t left = file->size(); left > 0;) {
    auto piece = co_await file->read(kFilePieceBytes);
    if (!piece) co_return std::unexpected(piece.error());
    if (piece->empty()) {
      co_return fail(Errc::unavailable, "file_changed", "The file has become shorter meanwhile.");
    }
    left -= static_cast<std::int64_t>(piece->size());
    const auto written = co_await writer->write(std::move(*piece));
    if (!written) co_return std::unexpected(written.error());
  }
  co_return Result<void>{};
}

// What an agent has written is foreign: no browser may take it for a page of ours.
Task<Response> fetch_file(Sessions* sessions, Caller caller, Request* request) {
  const auto id = session_id_of(*request);
  if (!id) co_return problem(id.error(), request->id);
  auto file = co_await sessions->open_file(caller.app->name, *id, request->params.back());
  if (!file) co_return problem(file.error(), request->id);
  Response response;
  response.content_type = "application/octet-stream";
  response.headers.emplace_back("Content-Disposition", "attachment");
  response.stream = [reader = std::move(*file)](BodyWriter* writer) mutable {
    return send_file(std::move(reader), writer);
  };
  co_return response;
}

}  // namespace

Result<SessionId> session_id_of(const Request& request) {
  const std::string& id = request.params.front();
  if (is_session_id(id)) return SessionId(id);
  return fail(Errc::not_found, "session_not_found", "There is no such session.",
              "no id that a session could have");
}

Task<Response> answer_turn(TurnCall deps, Caller caller, Request* request,
                           std::shared_ptr<AskGate> gate) {
  SessionDefaults defaults = deps.defaults;
  defaults.event_format = caller.app->event_format.value_or(defaults.event_format);
  const auto ignored = std::make_shared<std::string>();
  auto parsed = co_await deps.compute->run(
      Lane(caller.app->name), std::move(request->body),
      [accepts_stream = accepts_event_stream(*request), defaults, ignored](std::string& body) {
        return parse_turn(body, accepts_stream, defaults, ignored.get());
      });
  name_ignored_fields(*request, std::move(*ignored));
  if (!parsed) co_return problem(parsed.error(), request->id);
  const auto id = session_id_of(*request);
  if (!id) co_return problem(id.error(), request->id);
  TurnRequest& asked = parsed->turn;
  asked.received = request->received;
  if (parsed->is_streamed && caller.key) {
    co_return problem(fail(Errc::invalid, "idempotency_streamed",
                           "A streamed turn takes no Idempotency-Key, since its stream is not "
                           "kept: ask for a plain answer, or leave the key out.")
                          .error(),
                      request->id);
  }
  if (parsed->is_streamed) {
    auto stream =
        co_await stream_turn(deps, caller.app, *id, std::move(asked), parsed->is_simple_stream);
    if (!stream) co_return problem(stream.error(), request->id);
    co_return std::move(*stream);
  }
  asked.memory = deps.memory->open(caller.app->name.str());
  const std::shared_ptr<NativeEvents> events = native_events(parsed->format);
  asked.events = events;
  if (gate) asked.waits = false;
  // Made once: the events are taken out of where they are gathered.
  const auto made = std::make_shared<std::optional<Response>>();
  if (caller.key) {
    asked.key = caller.key;
    asked.answer_of = [made, events, session = *id, own = request->id](const TurnOutcome& ended) {
      *made = turn_answer(session, ended, events->take_json(), own);
      return kept_answer(**made, own);
    };
  }
  const auto outcome = co_await deps.sessions->turn(caller.app, *id, std::move(asked),
                                                    request->hang_up, std::move(gate));
  if (!outcome) co_return problem(outcome.error(), request->id);
  std::optional<Response> kept = std::move(*made);
  Response response =
      kept ? std::move(*kept) : turn_answer(*id, *outcome, events->take_json(), request->id);
  add_limit_headers(response, outcome->rate_limit_policy, outcome->rate_limit);
  co_return response;
}

void add_session_routes(Endpoints& endpoints, Sessions& sessions, const Apps& apps, Quota& quota,
                        ByteBudget& memory, Keys& keys, ComputeWorker& compute,
                        const SessionRows& rows, SessionDefaults defaults) {
  Sessions* const all = &sessions;
  endpoints.push_back(
      {"POST", "/sessions", Permit::app, Body::json,
       keyed(keys, compute,
             [all, known = &apps, worker = &compute](Caller caller, Request* request) {
               return create(all, known, worker, std::move(caller), request);
             }),
       true});
  endpoints.push_back({"GET", "/sessions", Permit::app, Body::none,
                       [all, from = &rows](Caller caller, Request* request) {
                         return list(all, from, std::move(caller), request);
                       }});
  endpoints.push_back(
      {"GET", "/sessions/{id}", Permit::app, Body::none,
       [all](Caller caller, Request* request) { return show(all, std::move(caller), request); }});
  endpoints.push_back(
      {"DELETE", "/sessions/{id}", Permit::app, Body::json,
       [all](Caller caller, Request* request) { return close(all, std::move(caller), request); }});
  endpoints.push_back({"POST", "/sessions/{id}/turn", Permit::app, Body::json,
                       keyed(keys, compute,
                             [deps = TurnCall{&sessions, &apps, &quota, &memory, &compute,
                                              defaults}](Caller caller, Request* request) {
                               return answer_turn(deps, std::move(caller), request);
                             }),
                       true});
  endpoints.push_back({"GET", "/sessions/{id}/turns", Permit::app, Body::none,
                       [all](Caller caller, Request* request) {
                         return list_turns(all, std::move(caller), request);
                       }});
  endpoints.push_back({"GET", "/sessions/{id}/files", Permit::app, Body::none,
                       [all](Caller caller, Request* request) {
                         return list_files(all, std::move(caller), request);
                       }});
  endpoints.push_back({"GET", "/sessions/{id}/files/{path...}", Permit::app, Body::none,
                       [all](Caller caller, Request* request) {
                         return fetch_file(all, std::move(caller), request);
                       }});
}

}  // namespace clawdforge
