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
constexpr std::size_t kEventPageBytesMax = 4 * 1024 * 1024;  // but for the last event of a page
// Events of a stream that are put together for one write, and from which size on one is sent
// without a copy.
constexpr std::size_t kStreamBatchBytesMax = 64 * 1024;
constexpr std::size_t kSliceBytesMin = 32 * 1024;
// What a reader may hold without being counted.
constexpr std::size_t kUncountedPieceBytesMax = 4 * 1024;

// A comment, not an event, because no other reader of the session has it. When the caller comes
// back it gets 401.
constexpr std::string_view kTokenGone = ": the token is not valid any more\n\n";

// Goes through the events of a piece that the reader has not seen.
class EventCursor {
 public:
  explicit EventCursor(const EventPiece& piece) : piece_(piece) {}

  // None: there are no more.
  std::optional<EventView> next() {
    for (;;) {
      while (rest_.empty()) {
        if (block_ == piece_.blocks.size()) return std::nullopt;
        const JournalBlock& block = *piece_.blocks[block_++];
        rest_ = block.lines;
        at_ = unix_seconds(block.at);
      }
      line_ = rest_.substr(0, rest_.find('\n'));
      rest_.remove_prefix(std::min(line_.size() + 1, rest_.size()));
      auto event = event_in(line_);
      if (!event || event->id <= piece_.after) continue;
      is_whole_ = event->at.has_value();
      // An event that is older than times of events has that of its block.
      event->at = event->at.value_or(at_);
      return event;
    }
  }
  // Appends the line of the event that was given last.
  void append_line(std::string& out, const EventView& event) const {
    if (is_whole_) {
      out += line_;
      return;
    }
    append_event_line(out, event);
    out.pop_back();  // its newline
  }

 private:
  const EventPiece& piece_;
  std::size_t block_ = 0;  // the next one
  std::string_view rest_;  // of the present one
  std::string_view line_;
  std::int64_t at_ = 0;    // of the present block
  bool is_whole_ = false;  // the line says when it happened
};

struct Watcher {
  std::unique_ptr<EventReader> reader;
  std::optional<std::int64_t> turn_index;
  StreamShare share;
  std::shared_ptr<const App> app;
  const Apps* apps = nullptr;
  StreamShape shape{};
};

// What an update tells in the stream's shape; empty: nothing.
Task<Result<std::string>> shaped(const Watcher* watcher, const EventView* event) {
  co_return co_await watcher->shape.compute->run(
      Lane(watcher->app->name), std::string(event->json),
      [simple = watcher->shape.simple, turn = event->turn_index](
          std::string& message) -> Result<std::string> { return simple->take(message, turn); });
}

Async<void> flush(BodyWriter* writer, std::string* out) {
  co_return co_await writer->write(std::exchange(*out, {}));
}

std::size_t bytes_of(const EventPiece& piece) {
  std::size_t bytes = 0;
  for (const SharedBlock& block : piece.blocks) bytes += block->lines.size();
  return bytes;
}

// One large event, which is sent from its block.
bool is_slice(const EventPiece& piece) {
  return piece.blocks.size() == 1 &&
         piece.blocks[0]->first_event_id == piece.blocks[0]->last_event_id &&
         piece.blocks[0]->lines.size() >= kCountedBlockBytesMin;
}

// What a reader that takes nothing makes us keep for it alone. A large block that it shares with
// others is counted by itself.
Fit hold_piece(ByteHold& memory, const EventPiece& piece) {
  const std::size_t bytes = bytes_of(piece);
  const std::size_t batch = is_slice(piece) ? 0 : std::min(bytes, kStreamBatchBytesMax);
  const std::size_t held = (piece.is_own ? bytes : 0) + batch;
  return memory.resize(held > kUncountedPieceBytesMax ? held : 0);
}

void append_notices(std::string& out, const EventPiece& piece, std::int64_t told_until) {
  if (piece.gap && piece.gap->to > told_until) {
    append_sse(out, std::nullopt, "gap",
               fmt::format(R"({{"from":{},"to":{}}})", std::max(piece.gap->from, told_until + 1),
                           piece.gap->to));
  }
  if (piece.is_lagging) append_sse(out, std::nullopt, "lagged", "{}");
  if (piece.end == FeedEnd::shutdown) append_sse(out, std::nullopt, "shutdown", "{}");
}

// Sends a piece as a stream, but for its last small events, which stay in `out`. Small events go
// together; a large one is sent from its block, which all readers share. False: the stream ends
// here.
Async<bool> send_piece(BodyWriter* writer, const EventPiece* piece, const Watcher* watcher,
                       std::string* out) {
  const std::optional<std::int64_t>& turn_index = watcher->turn_index;
  EventCursor cursor(*piece);
  while (auto event = cursor.next()) {
    if (turn_index && event->turn_index != *turn_index) continue;
    std::string simple;
    if (watcher->shape.simple && event->kind == EventKind::update) {
      auto told = co_await shaped(watcher, &*event);
      if (!told) co_return std::unexpected(std::move(told.error()));
      simple = std::move(*told);
      if (simple.empty()) continue;
      event->json = simple;
    }
    if (event->id <= watcher->shape.told_until) continue;
    const bool is_large = event->json.size() >= kSliceBytesMin;
    append_sse_begin(*out, event->id, name_of(event->kind),
                     SseTime{event->at.value_or(0), event->offset_ms});
    if (is_large || out->size() + event->json.size() > kStreamBatchBytesMax) {
      auto written = co_await flush(writer, out);
      if (!written) co_return std::unexpected(std::move(written.error()));
    }
    if (is_large) {
      auto written = co_await writer->write_slice(event->json);
      if (!written) co_return std::unexpected(std::move(written.error()));
    } else {
      out->append(event->json);
    }
    out->append(kSseEnd);
    if (turn_index && is_closing(event->kind)) co_return false;
  }
  co_return !piece->is_lagging && piece->end == FeedEnd::none;
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
    watcher.share.memory.release();
    const auto quiet = std::chrono::steady_clock::now() - told_at;
    const auto pause = std::chrono::ceil<std::chrono::milliseconds>(kHeartbeat - quiet);
    auto piece = co_await watcher.reader->next(std::max(pause, std::chrono::milliseconds(0)));
    if (!piece) co_return std::unexpected(piece.error());
    if (!watcher.apps->is_current(*watcher.app)) {
      out += kTokenGone;
      break;
    }
    if (hold_piece(watcher.share.memory, *piece) != Fit::fits) {
      *piece = {};  // it goes on from there when it comes back
      piece->is_lagging = true;
    }
    append_notices(out, *piece, watcher.shape.told_until);
    const auto sent = co_await send_piece(writer, &*piece, &watcher, &out);
    if (!sent) co_return std::unexpected(sent.error());
    goes_on = *sent;
    if (out.empty() && std::chrono::steady_clock::now() - told_at >= kHeartbeat) {
      out += kSseComment;
    }
  }
  co_return co_await flush(writer, &out);
}

struct EventQuery {
  std::int64_t after = 0;
  std::int64_t limit = kEventPageDefault;
  bool is_simple = false;  // of a stream
};

// Last-Event-ID beats `after`: it is what a reader that comes back sends.
Result<EventQuery> parse_events(const Request& request, bool is_stream) {
  Query query(request.query);
  EventQuery asked;
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  asked.after = query.integer("after", 0, kMost).value_or(0);
  asked.limit = query.integer("limit", 1, kEventPageMax).value_or(kEventPageDefault);
  if (const auto format = query.text("event_format")) {
    if (!event_format_from(*format)) query.wrong("event_format", "must be acp or simple");
    asked.is_simple = is_stream && *format == "simple";
    if (!is_stream && *format == "simple")
      query.wrong("event_format", "is for a stream; pages are acp");
  }
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

// What has been gathered is counted while the ledger is asked for more: many callers may ask at
// the same time. The server counts the whole answer.
Result<void> hold_page(ByteHold& memory, std::size_t bytes) {
  constexpr std::size_t kStep = 256 * 1024;
  if (bytes <= kUncountedPieceBytesMax) return {};
  return refused_by(memory.resize((bytes + kStep - 1) / kStep * kStep));
}

// A page of the journal; it never waits.
Task<Response> event_page(std::unique_ptr<EventReader> reader, EventQuery asked, ByteHold memory,
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
    bool has_room = true;
    EventCursor cursor(*piece);
    while (const auto event = cursor.next()) {
      has_room = count < asked.limit && body.size() <= kEventPageBytesMax;
      if (!has_room) break;
      if (count++ > 0) body += ',';
      cursor.append_line(body, *event);
      after = event->id;
    }
    if (!has_room) break;
    if (const auto held = hold_page(memory, body.size()); goes_on && !held) {
      co_return problem(held.error(), request_id);
    }
  }
  body += fmt::format(R"(],"next_after":{}{}}})", after, gap);
  co_return json_response(std::move(body));
}

struct EventDependencies {
  Sessions* sessions;
  const Apps* apps;
  Quota* quota;
  ByteBudget* memory;
  ComputeWorker* compute;
};

Task<Response> events(EventDependencies deps, Caller caller, Request* request) {
  const bool is_stream = accepts_event_stream(*request);
  const auto asked = parse_events(*request, is_stream);
  if (!asked) co_return problem(asked.error(), request->id);
  const auto id = session_id_of(*request);
  if (!id) co_return problem(id.error(), request->id);
  StreamShare share;
  if (is_stream) {
    auto admitted = admit_stream(*deps.quota, *deps.memory, *caller.app);
    if (!admitted) co_return problem(admitted.error(), request->id);
    share = std::move(*admitted);
  }
  auto reader =
      co_await deps.sessions->read_events(caller.app->name, *id, asked->after, asked->is_simple);
  if (!reader) co_return problem(reader.error(), request->id);
  if (is_stream && (*reader)->is_over()) {
    Response nothing_more;
    nothing_more.status = 204;  // by which EventSource does not come back again
    co_return nothing_more;
  }
  if (is_stream) {
    StreamShape shape;
    if (asked->is_simple) {
      shape = {std::make_shared<SimpleStream>(), deps.compute, asked->after};
    }
    co_return event_stream(std::move(*reader), std::nullopt, std::move(share), caller.app,
                           *deps.apps, std::move(shape));
  }
  co_return co_await event_page(std::move(*reader), *asked,
                                deps.memory->open(caller.app->name.str()), request->id);
}

Task<Response> cancel(Sessions* sessions, Caller caller, Request* request) {
  const auto id = session_id_of(*request);
  if (!id) co_return problem(id.error(), request->id);
  const auto is_cancelled = co_await sessions->cancel(caller.app->name, *id);
  if (!is_cancelled) co_return problem(is_cancelled.error(), request->id);
  co_return json_response(*is_cancelled ? R"({"ok":true,"cancelled":true})"
                                        : R"({"ok":true,"cancelled":false})");
}

}  // namespace

Result<StreamShare> admit_stream(Quota& quota, ByteBudget& memory, const App& app) {
  auto stream = quota.admit_event_stream(app);
  if (!stream) return std::unexpected(std::move(stream.error()));
  return StreamShare{.stream = std::move(*stream), .memory = memory.open(app.name.str())};
}

Response event_stream(std::unique_ptr<EventReader> reader, std::optional<std::int64_t> turn_index,
                      StreamShare share, std::shared_ptr<const App> app, const Apps& apps,
                      StreamShape shape) {
  Response response;
  response.content_type = "text/event-stream";
  response.headers.emplace_back("X-Accel-Buffering", "no");
  response.stream = [watcher =
                         Watcher{std::move(reader), turn_index, std::move(share), std::move(app),
                                 &apps, std::move(shape)}](BodyWriter* writer) mutable {
    return send_events(std::move(watcher), writer);
  };
  return response;
}

void add_event_routes(Endpoints& endpoints, Sessions& sessions, const Apps& apps, Quota& quota,
                      ByteBudget& memory, ComputeWorker& compute) {
  Sessions* const all = &sessions;
  endpoints.push_back(
      {"GET", "/sessions/{id}/events", Permit::app, Body::none,
       [deps = EventDependencies{&sessions, &apps, &quota, &memory, &compute}](
           Caller caller, Request* request) { return events(deps, std::move(caller), request); }});
  endpoints.push_back(
      {"POST", "/sessions/{id}/cancel", Permit::app, Body::none,
       [all](Caller caller, Request* request) { return cancel(all, std::move(caller), request); }});
}

}  // namespace clawdforge
