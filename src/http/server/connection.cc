#include "http/server/connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <array>
#include <boost/asio/post.hpp>
#include <exception>
#include <type_traits>

#include "base/async/async_tokens.h"
#include "base/free_memory.h"
#include "http/server/caller_watch.h"
#include "http/server/pulled_body.h"
#include "http/server/whole_body.h"

namespace clawdforge {
namespace asio = boost::asio;
using boost::system::error_code;
using std::chrono::steady_clock;

namespace {

constexpr std::size_t kTlsReadBytes = 16 * 1024;
constexpr std::size_t kChunkFrameBytes = 24;  // more than the size and the line ends of a chunk
constexpr std::size_t kDrainBytesMax = 64 * 1024;     // of a refused body, to keep the connection
constexpr std::size_t kLingerBytesMax = 1024 * 1024;  // read after the last answer, so it arrives
constexpr std::chrono::seconds kLingerMax{2};
constexpr int kExchangesInARowMax = 32;  // of one pipelining caller, then others have a turn
constexpr std::size_t kLoggedPathBytesMax = 200;
// Of a stream, given to the kernel and not sent: beyond that its reader is behind, and what
// it has not read is in the journal, not in memory.
constexpr int kStreamUnsentBytesMax = 256 * 1024;

template <class Stream>
class StreamConnection final : public Connection, private BodyWriter, private BodySource {
  static constexpr bool kTls = !std::is_same_v<Stream, TcpSocket>;

 public:
  template <class... Args>
  StreamConnection(Newcomer newcomer, ConnectionContext& context, Args&&... stream)
      : stream_(std::forward<Args>(stream)...),
        peer_(newcomer.peer),
        peer_hold_(std::move(newcomer.hold)),
        surplus_(newcomer.surplus),
        context_(context) {}

  Task<void> serve() override;

 private:
  TcpSocket& socket() override {
    if constexpr (kTls) {
      return stream_.next_layer();
    } else {
      return stream_;
    }
  }

  Task<bool> handshake();
  Task<bool> exchange();
  Task<HeadEnd> read_head();
  Task<std::optional<Fault>> take_body(RequestParser* parser, Request* request,
                                       Admission* admission);
  Task<std::optional<Fault>> read_body(RequestParser* parser, Request* request,
                                       Admission* admission);
  Task<Response> handle(Exchange& exchange, RequestParser& parser, Request& request,
                        Admission& admission);
  Task<Response> handle_pulling(Exchange* exchange, RequestParser* parser, Request* request,
                                Admission* admission);
  Task<Response> handle_watched(Exchange* exchange, Request* request, Admission* admission);
  Task<bool> discard_body(RequestParser* parser);
  Task<bool> send_rest(std::size_t sent, std::string_view body);
  Task<bool> stream_answer();
  Task<bool> send_stream(Response* response);
  Task<bool> read_more();
  Task<bool> send(std::string_view bytes);
  Task<void> end();
  Async<void> write(std::string bytes) override;
  Async<void> write_slice(std::string_view bytes) override;
  Result<void> written(bool is_sent);
  Task<std::size_t> read_into(std::span<char> room, steady_clock::duration allowed) override;
  bool has_timed_out() const override { return timed_out_; }
  Task<bool> send_continue() override { return send("HTTP/1.1 100 Continue\r\n\r\n"); }

  std::optional<Fault> begin(Exchange& exchange, RequestParser& parser, Request& request);
  void stream_later(Exchange exchange, Response response, std::size_t sent) {
    streaming_.reset(
        new Streaming{BusyMark(context_.busy), std::move(exchange), std::move(response), sent});
  }
  // The path is empty where the head could not be read.
  Response refuse(Exchange& exchange, const Fault& fault, std::string_view path) {
    exchange.keep_alive = false;
    linger_ = true;
    return refused(refusal_of(fault, exchange.id), context_.options.refusals.find(path));
  }
  void compose(Exchange& exchange, Response& response);
  void settle(const Exchange& exchange, const Response& response) {
    now_ = steady_clock::now();
    account(exchange, response, peer_, now_, context_.metrics, context_.log);
  }
  // Bytes read without waiting; none: nothing there yet. Zero: the end.
  std::optional<std::size_t> try_read(std::span<char> room);
  // Bytes taken without waiting; none: the caller is gone.
  std::optional<std::size_t> try_send(std::string_view bytes);

  // An answer that is written over time, with what is still needed of its request.
  struct Streaming {
    BusyMark busy;
    Exchange exchange;
    Response response;
    std::size_t sent;  // of its head
  };

  Stream stream_;
  const Peer peer_;
  const std::shared_ptr<const void> peer_hold_;
  const Fault* const surplus_;  // what all requests are answered with; null: they are served
  ConnectionContext& context_;
  SteadyTime now_ = steady_clock::now();  // when the last answer went out
  // What an idle connection reads into: enough for the head of a simple request. Waiting
  // with a buffer at hand saves the kernel a call for each request.
  std::array<char, 512> first_bytes_;
  bool is_answer_chunked_ = false;
  bool linger_ = false;  // the caller may still be sending: let our answer arrive first
  std::string in_;       // read, not yet used; empty and without memory while idle
  std::string out_;
  std::shared_ptr<const void> hold_;      // what the admission keeps for the connection
  std::unique_ptr<Streaming> streaming_;  // to be sent when its exchange() is done
};

template <class Stream>
Task<void> StreamConnection<Stream>::serve() {
  if constexpr (kTls) {
    if (!co_await handshake()) co_return;
  }
  int in_a_row = 0;
  for (bool is_first = true;; is_first = false) {
    if (in_.empty()) {
      in_a_row = 0;
      free_memory(in_);
      free_memory(out_);
      if (context_.draining && !is_first) break;
      // A caller that connects and says nothing has no more time than for a head.
      const ServerOptions& options = context_.options;
      enter(Phase::idle, now_ + (is_first ? options.head_read_max : options.idle_max));
      const auto [error, count] =
          co_await stream_.async_read_some(asio::buffer(first_bytes_), kAwait);
      if (error) co_return;
      in_.assign(first_bytes_.data(), count);
    } else if (++in_a_row >= kExchangesInARowMax) {
      in_a_row = 0;
      co_await asio::post(kAwait);
    }
    bool goes_on = co_await exchange();
    if (streaming_) {
      goes_on = co_await stream_answer();
    }
    if (!goes_on) break;
  }
  co_await end();
}

template <class Stream>
Task<bool> StreamConnection<Stream>::handshake() {
  enter(Phase::idle, steady_clock::now() + context_.options.head_read_max);
  if constexpr (kTls) {
    const auto [error] = co_await stream_.async_handshake(asio::ssl::stream_base::server, kAwait);
    co_return !error;
  }
  co_return true;
}

template <class Stream>
std::optional<std::size_t> StreamConnection<Stream>::try_read(std::span<char> room) {
  error_code error;
  std::size_t count = 0;
  if constexpr (!kTls) count = stream_.read_some(asio::buffer(room.data(), room.size()), error);
  if (error == asio::error::would_block) return std::nullopt;
  return error ? 0 : count;
}

template <class Stream>
std::optional<std::size_t> StreamConnection<Stream>::try_send(std::string_view bytes) {
  error_code error;
  std::size_t count = 0;
  if constexpr (!kTls) count = stream_.write_some(asio::buffer(bytes), error);
  if (error && error != asio::error::would_block) return std::nullopt;
  return count;
}

// False: the caller is gone, or the ticker has interrupted us (timed_out_).
template <class Stream>
Task<bool> StreamConnection<Stream>::read_more() {
  if constexpr (kTls) {
    const std::size_t size = in_.size();
    in_.resize(size + kTlsReadBytes);
    const auto [error, count] =
        co_await stream_.async_read_some(asio::buffer(in_.data() + size, kTlsReadBytes), kAwait);
    in_.resize(size + (error ? 0 : count));
    co_return !error;
  } else {
    for (;;) {
      if (const auto count = try_read(context_.read_buffer)) {
        in_.append(context_.read_buffer.data(), *count);
        co_return *count > 0;
      }
      const auto [error] = co_await stream_.async_wait(TcpSocket::wait_read, kAwait);
      if (error) co_return false;
    }
  }
}

template <class Stream>
Task<std::size_t> StreamConnection<Stream>::read_into(std::span<char> room,
                                                      steady_clock::duration allowed) {
  std::optional<std::size_t> count = kTls ? std::nullopt : try_read(room);
  if (!count) enter(Phase::reading, steady_clock::now() + allowed);
  while (!count) {
    if constexpr (kTls) {
      const auto [error, some] =
          co_await stream_.async_read_some(asio::buffer(room.data(), room.size()), kAwait);
      count = error ? 0 : some;
    } else {
      const auto [error] = co_await stream_.async_wait(TcpSocket::wait_read, kAwait);
      count = error ? 0 : try_read(room);
    }
  }
  enter(Phase::handling, SteadyTime::max());
  co_return *count;
}

// Parses the head and notes what the answer and the log will need of it.
template <class Stream>
std::optional<Fault> StreamConnection<Stream>::begin(Exchange& exchange, RequestParser& parser,
                                                     Request& request) {
  std::optional<Fault> fault = parser.parse_head(request);
  exchange.id = request_id(request, context_.options.request_id_prefix, context_.next_request);
  request.id = exchange.id;
  exchange.version_minor = request.version_minor;
  exchange.is_head = request.is_head();
  if (context_.log.is_on(LogLevel::warn)) {
    exchange.method = request.method.substr(0, kLoggedPathBytesMax);
    exchange.path = request.path.substr(0, kLoggedPathBytesMax);
  }
  if (fault) return fault;
  if (surplus_ != nullptr) return *surplus_;
  exchange.keep_alive = parser.keep_alive() && request.version_minor == 1;
  return std::nullopt;
}

// The caller has gone: kGone.
template <class Stream>
Task<HeadEnd> StreamConnection<Stream>::read_head() {
  for (;;) {
    const bool more = co_await read_more();
    if (!more) co_return HeadEnd{0, timed_out_ ? kTimeout : kGone};
    HeadEnd end = find_head_end(in_, context_.options.request);
    if (end.size > 0 || end.fault) co_return end;
  }
}

// Reads one request and answers it, but for a stream: that comes after it, in streaming_,
// so that the many who watch for hours cost little. False: it was the connection's last.
template <class Stream>
Task<bool> StreamConnection<Stream>::exchange() {
  const BusyMark busy(context_.busy);
  timed_out_ = false;
  Exchange exchange;
  exchange.begun = steady_clock::now();
  enter(Phase::reading, exchange.begun + context_.options.head_read_max);
  Request request(peer_.address);
  request.is_from_local_socket = peer_.is_local_socket;
  if (in_.starts_with("\r\n")) in_.erase(0, 2);  // one empty line too many is forgiven
  HeadEnd end = find_head_end(in_, context_.options.request);
  if (end.size == 0 && !end.fault) {
    end = co_await read_head();
    if (end.fault && end.fault->status == kCallerGone) co_return false;
  }
  request.head_bytes.assign(in_.begin(), in_.begin() + static_cast<std::ptrdiff_t>(end.size));
  in_.erase(0, end.size);
  RequestParser parser(context_.options.request);
  exchange.fault = begin(exchange, parser, request);
  if (end.fault) exchange.fault = end.fault;
  Response response;
  Admission admission;
  if (!exchange.fault) {
    hold_.reset();  // before it is asked for again: both would count
    admission = context_.admit(request);
    hold_ = std::move(admission.connection_hold);
  }
  exchange.route = admission.route;
  exchange.who = std::move(request.who);
  exchange.origin = request.origin;
  if (admission.refusal) {
    if (!parser.is_done()) {
      if (!co_await discard_body(&parser)) exchange.keep_alive = false;
    }
    response = std::move(*admission.refusal);
  } else if (!exchange.fault && !parser.is_done() && !admission.pulls_body) {
    exchange.fault = co_await take_body(&parser, &request, &admission);
  }
  if (!exchange.fault && !admission.refusal) {
    request.received = steady_clock::now();
    enter(Phase::handling, SteadyTime::max());
    try {
      response = co_await handle(exchange, parser, request, admission);
    } catch (const std::exception& exception) {
      if (context_.stopping) throw;  // the cancellation
      note_defect(exchange, exception, context_.log);
    }
    count_answer(exchange, response, admission.memory);
  }
  if (exchange.fault && exchange.fault->status == kCallerGone) {
    response.status = kCallerGone;
    settle(exchange, response);
    co_return false;
  }
  if (exchange.fault) response = refuse(exchange, *exchange.fault, request.path);
  context_.options.cross_origin.add_headers(request, response);
  compose(exchange, response);
  const std::string_view apart = body_apart(exchange, response);
  const auto sent = try_send(out_);
  if (!sent) {
    exchange.keep_alive = false;
    response.detail = "the caller has gone";
  } else if (response.stream && !exchange.is_head) {
    stream_later(std::move(exchange), std::move(response), *sent);
    co_return true;
  } else if (*sent < out_.size() || !apart.empty()) {
    if (!co_await send_rest(*sent, apart)) exchange.keep_alive = false;
  }
  settle(exchange, response);
  co_return exchange.keep_alive;
}

// A large body may be more than there is memory for: that costs this request alone.
template <class Stream>
Task<std::optional<Fault>> StreamConnection<Stream>::take_body(RequestParser* parser,
                                                               Request* request,
                                                               Admission* admission) {
  try {
    co_return co_await read_body(parser, request, admission);
  } catch (const std::bad_alloc&) {
    free_memory(request->body);
    co_return kNoMemory;
  }
}

// A fault with status kCallerGone: the caller has gone and is not told.
template <class Stream>
Task<std::optional<Fault>> StreamConnection<Stream>::read_body(RequestParser* parser,
                                                               Request* request,
                                                               Admission* admission) {
  WholeBody body(*parser, request->body, *admission, context_.options, steady_clock::now());
  if (auto fault = body.begin()) co_return fault;
  if (parser->expects_continue() && request->version_minor == 1 && in_.empty()) {
    if (!co_await send("HTTP/1.1 100 Continue\r\n\r\n")) co_return kGone;
  }
  for (;;) {
    if (auto fault = body.take(in_, steady_clock::now())) co_return fault;
    if (body.is_done()) co_return std::nullopt;
    enter(Phase::reading, body.give_up_at());
    if (body.has_had_its_turn()) co_await asio::post(kAwait);
    if (!co_await read_more()) co_return timed_out_ ? kTimeout : kGone;
  }
}

// Reads a small unwanted body to its end, so that the connection can go on. False: it
// was too large, or the caller waits for a "100 Continue" that will not come.
template <class Stream>
Task<bool> StreamConnection<Stream>::discard_body(RequestParser* parser) {
  if (parser->is_done()) co_return true;
  linger_ = true;
  if (parser->expects_continue()) co_return false;
  if (parser->content_length().value_or(0) > kDrainBytesMax) co_return false;
  Request unwanted(peer_.address);
  Admission little;
  little.body_bytes_max = kDrainBytesMax;
  const auto fault = co_await read_body(parser, &unwanted, &little);
  linger_ = fault.has_value();
  co_return !fault;
}

// Most handlers need nothing more than their request.
template <class Stream>
Task<Response> StreamConnection<Stream>::handle(Exchange& exchange, RequestParser& parser,
                                                Request& request, Admission& admission) {
  if (admission.pulls_body) return handle_pulling(&exchange, &parser, &request, &admission);
  if (admission.watches_caller) return handle_watched(&exchange, &request, &admission);
  return admission.handler(&request);
}

template <class Stream>
Task<Response> StreamConnection<Stream>::handle_pulling(Exchange* exchange, RequestParser* parser,
                                                        Request* request, Admission* admission) {
  if (parser->content_length().value_or(0) > admission->body_bytes_max) {
    exchange->fault = kTooLarge;
    co_return Response{};
  }
  const ServerOptions& options = context_.options;
  PulledBody body(*this, *parser, std::exchange(in_, {}),
                  {.body_bytes_max = admission->body_bytes_max,
                   .read_max = options.body_read_max,
                   .bytes_per_second_min = options.body_bytes_per_second_min,
                   .chunk_head_bytes_max = options.request.head_bytes_max},
                  admission->meter, parser->expects_continue() && request->version_minor == 1);
  request->body_reader = &body;
  Response response = co_await admission->handler(request);
  request->body_reader = nullptr;
  exchange->fault = body.fault();
  in_ = body.take_rest();
  if (!parser->is_done()) {
    exchange->keep_alive = false;
    linger_ = true;
  }
  co_return response;
}

template <class Stream>
Task<Response> StreamConnection<Stream>::handle_watched(Exchange* exchange, Request* request,
                                                        Admission* admission) {
  HangUp hang_up;
  request->hang_up = &hang_up;
  CallerWatch watch(stream_, std::span<char>(first_bytes_), in_, hang_up);
  Response response;
  std::exception_ptr thrown;
  try {
    response = co_await admission->handler(request);
  } catch (...) {
    thrown = std::current_exception();
  }
  request->hang_up = nullptr;
  // The stream may neither die nor be used before the watch's read is back. In a coroutine
  // that is being cancelled, waiting would throw instead.
  co_await asio::this_coro::throw_if_cancelled(false);
  co_await watch.end();
  co_await asio::this_coro::throw_if_cancelled(true);
  if (thrown) std::rethrow_exception(thrown);
  exchange->has_departed = watch.has_departed();
  if (exchange->has_departed) exchange->keep_alive = false;
  co_return response;
}

template <class Stream>
void StreamConnection<Stream>::compose(Exchange& exchange, Response& response) {
  if (!has_body(response.status)) {
    free_memory(response.body);
    response.stream = nullptr;
  }
  if ((response.close || context_.draining) && exchange.keep_alive) {
    exchange.keep_alive = false;
    linger_ = true;  // the caller does not know yet, and may have sent more
  }
  is_answer_chunked_ = response.stream && exchange.version_minor == 1;
  exchange.is_chunked = is_answer_chunked_;
  if (response.stream && !is_answer_chunked_) exchange.keep_alive = false;
  compose_answer(out_, exchange, response, context_.date);
}

// What compose() and try_send() have left to do. False: the connection is of no more use.
template <class Stream>
Task<bool> StreamConnection<Stream>::send_rest(std::size_t sent, std::string_view body) {
  if (!co_await send(std::string_view(out_).substr(sent))) co_return false;
  co_return co_await send(body);
}

// False: it was the connection's last answer.
template <class Stream>
Task<bool> StreamConnection<Stream>::stream_answer() {
  const std::unique_ptr<Streaming> answer = std::move(streaming_);
  // Where that fails, the kernel's own limit holds, which is larger.
  ::setsockopt(socket().native_handle(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &kStreamUnsentBytesMax,
               sizeof kStreamUnsentBytesMax);
  if (in_.empty()) free_memory(in_);
  bool is_whole = co_await send(std::string_view(out_).substr(answer->sent));
  if (is_whole) {
    is_whole = co_await send_stream(&answer->response);
  }
  settle(answer->exchange, answer->response);
  co_return is_whole && answer->exchange.keep_alive;
}

template <class Stream>
Task<bool> StreamConnection<Stream>::send_stream(Response* response) {
  enter(Phase::handling, SteadyTime::max());
  try {
    const Result<void> whole = co_await response->stream(this);
    if (!whole) {
      const Failure& error = whole.error();
      response->detail = error.detail.empty() ? error.message : error.detail;
      co_return false;
    }
  } catch (const std::exception& exception) {
    if (context_.stopping) throw;  // the cancellation
    response->detail = exception.what();
    context_.log.error("a stream threw", {{"what", std::string_view(exception.what())}});
    co_return false;
  }
  if (!is_answer_chunked_) co_return true;
  co_return co_await send("0\r\n\r\n");
}

template <class Stream>
Async<void> StreamConnection<Stream>::write(std::string bytes) {
  if (bytes.empty()) co_return Result<void>{};  // an empty chunk would end the stream
  out_.clear();
  if (is_answer_chunked_) {
    out_.reserve(bytes.size() + kChunkFrameBytes);
    append_number(out_, bytes.size(), 16);
    out_.append("\r\n").append(bytes).append("\r\n");
    free_memory(bytes);  // a caller that does not read costs this much once
  } else {
    out_ = std::move(bytes);
  }
  const bool is_sent = co_await send(out_);
  free_memory(out_);  // it may be quiet for long
  co_return written(is_sent);
}

template <class Stream>
Async<void> StreamConnection<Stream>::write_slice(std::string_view bytes) {
  if (bytes.empty()) co_return Result<void>{};
  out_.clear();
  if (is_answer_chunked_) {
    append_number(out_, bytes.size(), 16);
    out_.append("\r\n");
  }
  bool is_sent = co_await send(out_);
  if (is_sent) is_sent = co_await send(bytes);
  if (is_sent && is_answer_chunked_) is_sent = co_await send("\r\n");
  co_return written(is_sent);
}

template <class Stream>
Result<void> StreamConnection<Stream>::written(bool is_sent) {
  enter(Phase::handling, SteadyTime::max());
  if (!is_sent) return fail(Errc::gone, "caller_gone", "The caller has gone.");
  return {};
}

// `bytes` must stay until the task has ended.
template <class Stream>
Task<bool> StreamConnection<Stream>::send(std::string_view bytes) {
  // Nearly always the kernel takes it all at once, and there is nothing to wait for.
  const auto at_once = try_send(bytes);
  if (!at_once) co_return false;
  bytes.remove_prefix(*at_once);
  while (!bytes.empty()) {
    const std::chrono::seconds stall_max = context_.options.write_stall_max;
    enter(Phase::writing,
          steady_clock::now() +
              (context_.draining ? std::min(stall_max, kDrainStallMax) : stall_max));
    const auto [error, count] = co_await stream_.async_write_some(asio::buffer(bytes), kAwait);
    if (error) co_return false;
    bytes.remove_prefix(count);
  }
  co_return true;
}

// Closing a socket with unread input resets the connection, and the answer may be lost
// on the way. So: say that we are done, and read on for a little while. TLS can say so
// only when nothing more is read; there the answer itself has said it.
template <class Stream>
Task<void> StreamConnection<Stream>::end() {
  enter(Phase::ending, steady_clock::now() + kLingerMax);
  error_code ignored;
  if (linger_ && !kTls) socket().shutdown(TcpSocket::shutdown_send, ignored);
  for (std::size_t total = 0; linger_ && total < kLingerBytesMax; total += in_.size()) {
    in_.clear();
    if (!co_await read_more()) break;
  }
  if constexpr (kTls) co_await stream_.async_shutdown(kAwait);
}

}  // namespace

std::unique_ptr<Connection> make_connection(TcpSocket socket, Newcomer newcomer,
                                            ConnectionContext& context) {
  return std::make_unique<StreamConnection<TcpSocket>>(std::move(newcomer), context,
                                                       std::move(socket));
}

std::unique_ptr<Connection> make_tls_connection(TcpSocket socket, Newcomer newcomer,
                                                boost::asio::ssl::context& tls,
                                                ConnectionContext& context) {
  return std::make_unique<StreamConnection<TlsStream>>(std::move(newcomer), context,
                                                       std::move(socket), tls);
}

}  // namespace clawdforge
