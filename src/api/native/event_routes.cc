#include "api/native/event_routes.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "api/core/problem.h"
#include "api/core/query.h"
#include "api/native/session_requests.h"
#include "api/native/session_routes.h"
#include "http/message/sse.h"

namespace clawdforge {
namespace {

constexpr std::int64_t kEventPageMax = 1'000;
constexpr std::int64_t kEventPageDefault = 100;
constexpr std::size_t kEventPageBytesMax = 16 * 1024 * 1024;  // but for the last event of a page

// Not an event, because no other reader of the session has it; whoever comes back gets 401.
constexpr std::string_view kTokenGone = ": the token is not valid any more\n\n";

// Calls `use` with each event of the piece that the reader has not seen, until it says false.
template <class Use>
bool each_event(const EventPiece& piece, Use use) {
  for (const SharedBlock& block : piece.blocks) {
    std::string_view rest = block->lines;
    while (!rest.empty()) {
      const std::string_view line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(line.size() + 1, rest.size()));
      const auto event = event_in(line);
      if (!event || event->id <= piece.after) continue;
      if (!use(*event, line)) return false;
    }
  }
  return true;
}

bool is_closing(std::string_view kind) { return kind == "done" || kind == "failed"; }

struct Watcher {
  std::unique_ptr<EventReader> reader;
  std::optional<std::int64_t> turn_index;
  AppShare share;  // of the app's streams
  std::shared_ptr<const App> app;
  const Apps* apps = nullptr;
};

Async<void> flush(BodyWriter* writer, std::string* out) {
  co_return co_await writer->write(std::exchange(*out, {}));
}

// What a piece is as a stream. False: it ends here.
bool append_piece(std::string& out, const EventPiece& piece,
                  std::optional<std::int64_t> turn_index) {
  if (piece.gap) {
    append_sse(out, std::nullopt, "gap",
               fmt::format(R"({{"from":{},"to":{}}})", piece.gap->from, piece.gap->to));
  }
  if (piece.is_lagging) append_sse(out, std::nullopt, "lagged", "{}");
  if (piece.end == FeedEnd::shutdown) append_sse(out, std::nullopt, "shutdown", "{}");
  std::size_t bytes = out.size();
  for (const SharedBlock& block : piece.blocks) bytes += block->lines.size();
  out.reserve(bytes);  // an event is shorter in a stream than in its line
  const bool goes_on = each_event(piece, [&](const EventView& event, std::string_view) {
    if (turn_index && event.turn_index != *turn_index) return true;
    append_sse(out, event.id, event.kind, event.json);
    return !(turn_index && is_closing(event.kind));
  });
  return goes_on && !piece.is_lagging && piece.end == FeedEnd::none;
}

Async<void> send_events(Watcher watcher, BodyWriter* writer) {
  std::string out(kSseComment);  // so that the caller sees at once that it is heard
  auto told_at = std::chrono::steady_clock::now();
  for (bool goes_on = true; goes_on;) {
    if (!out.empty()) {
      told_at = std::chrono::steady_clock::now();
      const auto written = co_await flush(writer, &out);
      if (!written) co_return written;
    }
    const auto quiet = std::chrono::steady_clock::now() - told_at;
    const auto pause = std::chrono::ceil<std::chrono::milliseconds>(kHeartbeat - quiet);
    const auto piece = co_await watcher.reader->next(std::max(pause, std::chrono::milliseconds(0)));
    if (!piece) co_return std::unexpected(piece.error());
    if (!watcher.apps->is_current(*watcher.app)) {
      out += kTokenGone;
      break;
    }
    goes_on = append_piece(out, *piece, watcher.turn_index);
    if (out.empty() && std::chrono::steady_clock::now() - told_at >= kHeartbeat) {
      out += kSseComment;
    }
  }
  co_return co_await flush(writer, &out);
}

struct EventQuery {
  std::int64_t after = 0;
  std::int64_t limit = kEventPageDefault;
};

// Last-Event-ID beats `after`: it is what a reader that comes back sends.
Result<EventQuery> parse_events(const Request& request, bool is_stream) {
  Query query(request.query);
  EventQuery asked;
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  asked.after = query.integer("after", 0, kMost).value_or(0);
  asked.limit = query.integer("limit", 1, kEventPageMax).value_or(kEventPageDefault);
  if (const auto last = request.header("Last-Event-ID"); last && is_stream) {
    const auto [end, error] =
        std::from_chars(last->data(), last->data() + last->size(), asked.after);
    if (error != std::errc() || end != last->data() + last->size() || asked.after < 0) {
      query.wrong("Last-Event-ID", "must be the id of an event");
    }
  }
  if (auto checked = query.check(); !checked) return std::unexpected(checked.error());
  return asked;
}

// A page of the journal; it never waits.
Task<Response> event_page(std::unique_ptr<EventReader> reader, EventQuery asked,
                          std::string request_id) {
  std::string body = R"({"events":[)";
  std::string gap;
  std::int64_t after = asked.after;
  std::int64_t count = 0;
  for (bool goes_on = true; goes_on;) {
    const auto piece = co_await reader->next(std::chrono::milliseconds(0));
    if (!piece) co_return problem(piece.error(), request_id);
    const bool is_news = !piece->is_pause || reader->is_behind();
    goes_on = is_news && !piece->is_lagging && piece->end == FeedEnd::none;
    const std::optional<EventGap>& missing = piece->gap;
    if (missing && count > 0) break;  // it begins the next page
    if (missing) {
      gap = fmt::format(R"(,"gap":{{"from":{},"to":{}}})", missing->from, missing->to);
      after = missing->to;
    }
    const bool has_room = each_event(*piece, [&](const EventView& event, std::string_view line) {
      if (count >= asked.limit || body.size() > kEventPageBytesMax) return false;
      if (count++ > 0) body += ',';
      body += line;
      after = event.id;
      return true;
    });
    if (!has_room) break;
  }
  body += fmt::format(R"(],"next_after":{}{}}})", after, gap);
  co_return json_response(std::move(body));
}

Task<Response> events(Sessions* sessions, const Apps* apps, Quota* quota, Caller caller,
                      Request* request) {
  const bool is_stream = accepts_event_stream(*request);
  const auto asked = parse_events(*request, is_stream);
  if (!asked) co_return problem(asked.error(), request->id);
  const auto id = session_id_of(*request);
  if (!id) co_return session_problem(id.error(), request->id);
  AppShare share;
  if (is_stream) {
    auto admitted = quota->admit_event_stream(*caller.app);
    if (!admitted) co_return problem(admitted.error(), request->id);
    share = std::move(*admitted);
  }
  auto reader = co_await sessions->read_events(caller.app->name, *id, asked->after);
  if (!reader) co_return session_problem(reader.error(), request->id);
  if (is_stream) {
    co_return event_stream(std::move(*reader), std::nullopt, std::move(share), caller.app, *apps);
  }
  co_return co_await event_page(std::move(*reader), *asked, request->id);
}

Task<Response> cancel(Sessions* sessions, Caller caller, Request* request) {
  const auto id = session_id_of(*request);
  if (!id) co_return session_problem(id.error(), request->id);
  const auto is_cancelled = co_await sessions->cancel(caller.app->name, *id);
  if (!is_cancelled) co_return session_problem(is_cancelled.error(), request->id);
  co_return json_response(*is_cancelled ? R"({"ok":true,"cancelled":true})"
                                        : R"({"ok":true,"cancelled":false})");
}

}  // namespace

Response event_stream(std::unique_ptr<EventReader> reader, std::optional<std::int64_t> turn_index,
                      AppShare share, std::shared_ptr<const App> app, const Apps& apps) {
  Response response;
  response.content_type = "text/event-stream";
  response.headers.emplace_back("Cache-Control", "no-store");
  response.headers.emplace_back("X-Accel-Buffering", "no");
  response.stream = [watcher = Watcher{std::move(reader), turn_index, std::move(share),
                                       std::move(app), &apps}](BodyWriter* writer) mutable {
    return send_events(std::move(watcher), writer);
  };
  return response;
}

void add_event_routes(Endpoints& endpoints, Sessions& sessions, const Apps& apps, Quota& quota) {
  Sessions* const all = &sessions;
  endpoints.push_back({"GET", "/sessions/{id}/events", Permit::app, Body::none,
                       [all, known = &apps, shares = &quota](Caller caller, Request* request) {
                         return events(all, known, shares, std::move(caller), request);
                       }});
  endpoints.push_back(
      {"POST", "/sessions/{id}/cancel", Permit::app, Body::none,
       [all](Caller caller, Request* request) { return cancel(all, std::move(caller), request); }});
}

}  // namespace clawdforge
