#include "api/workspaces/session_work_routes.h"

#include <boost/json.hpp>
#include <memory>
#include <utility>

#include "api/core/json_body.h"
#include "api/core/problem.h"
#include "api/core/query.h"
#include "api/native/session_routes.h"
#include "json/json_members.h"
#include "quota/apps.h"
#include "sessions/sessions.h"
#include "workspaces/work_streams.h"
#include "workspaces/workspace_records.h"

namespace clawdforge {
namespace {

constexpr std::size_t kCommitMessageBytesMax = 16 * 1024;

std::string changes_json(const std::vector<ChangedFile>& files) {
  std::string body = R"({"files":[)";
  std::int64_t added = 0;
  std::int64_t removed = 0;
  for (const ChangedFile& file : files) {
    body += body.back() == '[' ? "{" : ",{";
    append_member(body, "path", file.path);
    append_member(body, "added", file.added);
    append_member(body, "removed", file.removed);
    append_member(body, "binary", file.is_binary);
    body += '}';
    added += file.added;
    removed += file.removed;
  }
  body += ']';
  append_member(body, "added", added);
  append_member(body, "removed", removed);
  return body + "}";
}

Task<Response> diff(Sessions* sessions, Caller caller, Request* request) {
  Query query(request->query);
  const bool wants_counts = query.flag("stat").value_or(false);
  if (auto checked = query.check(); !checked) co_return problem(checked.error(), request->id);
  const auto id = session_id_of(*request);
  if (!id) co_return problem(id.error(), request->id);
  if (wants_counts) {
    const auto files = co_await sessions->changed_files(caller.app->name, *id);
    if (!files) co_return problem(files.error(), request->id);
    co_return json_response(changes_json(*files));
  }
  auto changes = co_await sessions->diff(caller.app->name, *id);
  if (!changes) co_return problem(changes.error(), request->id);
  Response response;
  response.content_type = "text/x-diff; charset=utf-8";
  if (changes->is_cut) response.headers.emplace_back("X-Clawdforge-Truncated", "true");
  response.body = std::move(changes->text);
  co_return response;
}

Async<void> send_archive(std::unique_ptr<WorkArchive> archive, BodyWriter* writer) {
  for (;;) {
    auto piece = co_await archive->next();
    if (!piece) co_return std::unexpected(piece.error());
    if (piece->empty()) co_return Result<void>{};
    const auto written = co_await writer->write(std::move(*piece));
    if (!written) co_return std::unexpected(written.error());
  }
}

Task<Response> archive(Sessions* sessions, Caller caller, Request* request) {
  const auto id = session_id_of(*request);
  if (!id) co_return problem(id.error(), request->id);
  auto opened = co_await sessions->archive(caller.app->name, *id);
  if (!opened) co_return problem(opened.error(), request->id);
  Response response;
  response.content_type = "application/x-tar";
  response.headers.emplace_back("Content-Disposition", "attachment");
  response.stream = [reader = std::move(*opened)](BodyWriter* writer) mutable {
    return send_archive(std::move(reader), writer);
  };
  co_return response;
}

Async<bool> take_body(std::unique_ptr<WorkPut> put, std::shared_ptr<const App> app,
                      const Apps* apps, Request* request) {
  for (;;) {
    auto piece = co_await request->body_reader->next();
    if (!apps->is_current(*app)) co_return token_revoked();
    if (!piece) co_return std::unexpected(piece.error());
    if (piece->empty()) break;
    auto written = co_await put->append(std::string(*piece));
    if (!written) co_return std::unexpected(written.error());
  }
  co_return co_await put->keep();
}

Task<Response> put_file(Sessions* sessions, const Apps* apps, Caller caller, Request* request) {
  const auto id = session_id_of(*request);
  if (!id) co_return problem(id.error(), request->id);
  auto put = co_await sessions->put_file(caller.app->name, *id, request->params.back());
  if (!put) co_return problem(put.error(), request->id);
  const auto replaced = co_await take_body(std::move(*put), caller.app, apps, request);
  if (!replaced) co_return problem(replaced.error(), request->id);
  co_return json_response(*replaced ? R"({"ok":true,"replaced":true})"
                                    : R"({"ok":true,"replaced":false})");
}

Task<Response> commit(Sessions* sessions, Caller caller, Request* request) {
  auto object = parse_json_object(request->body);
  if (!object) co_return problem(object.error(), request->id);
  Fields fields(*object);
  std::string message = fields.text("message").value_or("");
  if (message.empty() || message.size() > kCommitMessageBytesMax || message.contains('\0')) {
    fields.wrong("message", "must have 1 to 16384 bytes and no zero byte");
  }
  std::string ignored;
  const auto checked = fields.check(&ignored);
  name_ignored_fields(*request, std::move(ignored));
  if (!checked) co_return problem(checked.error(), request->id);
  const auto id = session_id_of(*request);
  if (!id) co_return problem(id.error(), request->id);
  const auto committed = co_await sessions->commit(caller.app->name, *id, std::move(message));
  if (!committed) co_return problem(committed.error(), request->id);
  std::string body = R"({"ok":true)";
  append_member(body, "commit", committed->id);
  append_member(body, "new", committed->is_new);
  co_return json_response(body + "}");
}

}  // namespace

void add_session_work_routes(Endpoints& endpoints, Sessions& sessions, const Apps& apps,
                             std::size_t file_bytes_max) {
  Sessions* const all = &sessions;
  endpoints.push_back(
      {"GET", "/sessions/{id}/diff", Permit::app, Body::none,
       [all](Caller caller, Request* request) { return diff(all, std::move(caller), request); }});
  endpoints.push_back({"GET", "/sessions/{id}/archive", Permit::app, Body::none,
                       [all](Caller caller, Request* request) {
                         return archive(all, std::move(caller), request);
                       }});
  endpoints.push_back(
      {"POST", "/sessions/{id}/commit", Permit::app, Body::json,
       [all](Caller caller, Request* request) { return commit(all, std::move(caller), request); }});
  endpoints.push_back({.method = "PUT",
                       .pattern = "/sessions/{id}/files/{path...}",
                       .permit = Permit::app,
                       .body = Body::bytes,
                       .answer =
                           [all, known = &apps](Caller caller, Request* request) {
                             return put_file(all, known, std::move(caller), request);
                           },
                       .body_bytes_max = file_bytes_max});
}

}  // namespace clawdforge
