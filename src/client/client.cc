#include "client/client.h"

#include <fmt/format.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <charconv>
#include <memory>
#include <optional>

#include "base/async/async_tokens.h"
#include "base/text.h"

namespace clawdforge {
namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;
using Socket = asio::basic_stream_socket<tcp, IoExecutor>;
using Resolver = asio::ip::basic_resolver<tcp, IoExecutor>;

namespace {

constexpr std::uint64_t kAnswerBytesMax = 64 * 1024 * 1024;
constexpr std::size_t kFilePieceBytes = 256 * 1024;
constexpr std::size_t kStreamPieceBytes = 64 * 1024;
constexpr std::chrono::seconds kSilenceLook{1};

std::unexpected<Failure> unreachable(const ServerAddress& address, std::string_view why) {
  if (!address.socket_file.empty()) {
    return fail(Errc::unavailable, "unreachable",
                fmt::format("No answer from {}: {}.", address.socket_file, why));
  }
  return fail(Errc::unavailable, "unreachable",
              fmt::format("No answer from {}:{}: {}.", address.host, address.port, why));
}

// What goes over the wire, and who takes the answer as it comes.
struct Outgoing {
  std::string text;
  const ClientFile* file = nullptr;
  const StreamCall::TakePiece* take = nullptr;
};

std::string request_text(const ServerAddress& address, const ClientRequest& request) {
  const bool is_v6 = address.host.find(':') != std::string::npos;
  std::string text =
      fmt::format("{} {} HTTP/1.1\r\nHost: {}:{}\r\nConnection: close\r\nAccept: {}\r\n",
                  request.method, request.target, is_v6 ? "[" + address.host + "]" : address.host,
                  address.port, request.accept);
  if (!request.prefer.empty()) text += fmt::format("Prefer: {}\r\n", request.prefer);
  if (request.last_event_id) text += fmt::format("Last-Event-ID: {}\r\n", *request.last_event_id);
  if (!request.idempotency_key.empty()) {
    text.append("Idempotency-Key: ").append(request.idempotency_key).append("\r\n");
  }
  if (!request.token.empty()) {
    text.append("Authorization: Bearer ").append(request.token.reveal()).append("\r\n");
  }
  std::uint64_t bytes = request.body.size();
  if (request.file) bytes += request.file->bytes + request.file->suffix.size();
  if (bytes > 0) text.append("Content-Type: ").append(request.content_type).append("\r\n");
  return text + fmt::format("Content-Length: {}\r\n\r\n{}", bytes, request.body);
}

// A file that ends early, or cannot be read; the answer would only say that the body is late.
const error_code kBadFile = make_error_code(boost::system::errc::io_error);

template <class Stream>
Task<error_code> send_file(Stream* stream, const ClientFile* file) {
  std::vector<char> piece(kFilePieceBytes);
  for (std::uint64_t left = file->bytes; left > 0;) {
    const ssize_t count =
        ::read(file->descriptor, piece.data(), std::min<std::uint64_t>(piece.size(), left));
    if (count <= 0) co_return kBadFile;
    left -= static_cast<std::uint64_t>(count);
    const auto [error, written] = co_await asio::async_write(
        *stream, asio::buffer(piece.data(), static_cast<std::size_t>(count)), kAwait);
    if (error) co_return error;
  }
  const auto [error, written] =
      co_await asio::async_write(*stream, asio::buffer(file->suffix), kAwait);
  co_return error;
}

template <class Stream>
Task<error_code> send(Stream* stream, const Outgoing* outgoing) {
  const auto [error, written] =
      co_await asio::async_write(*stream, asio::buffer(outgoing->text), kAwait);
  if (error || outgoing->file == nullptr) co_return error;
  co_return co_await send_file(stream, outgoing->file);
}

void copy_head(const auto& head, ClientAnswer& answer) {
  answer.status = static_cast<int>(head.result_int());
  for (const auto& field : head) {
    answer.headers.emplace_back(std::string(field.name_string()), std::string(field.value()));
  }
}

// Reads an answer piece by piece. One that is not a stream of events is collected.
template <class Stream>
Task<error_code> read_stream(Stream* stream, const Outgoing* outgoing, ClientAnswer* answer) {
  boost::beast::flat_buffer buffer;
  http::response_parser<http::buffer_body> parser;
  parser.body_limit(boost::none);
  const auto [head_error, head_count] =
      co_await http::async_read_header(*stream, buffer, parser, kAwait);
  if (head_error) co_return head_error;
  copy_head(parser.get(), *answer);
  const bool is_stream = answer->header("Content-Type").starts_with("text/event-stream");
  std::vector<char> piece(kStreamPieceBytes);
  while (!parser.is_done()) {
    parser.get().body().data = piece.data();
    parser.get().body().size = piece.size();
    const auto [error, count] = co_await http::async_read_some(*stream, buffer, parser, kAwait);
    const std::string_view got(piece.data(), piece.size() - parser.get().body().size);
    if (is_stream) {
      if (!got.empty()) (*outgoing->take)(got);
    } else {
      answer->body += got;
      if (answer->body.size() > kAnswerBytesMax) co_return http::error::body_limit;
    }
    if (error && error != http::error::need_buffer) co_return error;
  }
  co_return error_code{};
}

template <class Stream>
Task<error_code> transfer(Stream* stream, const Outgoing* outgoing, ClientAnswer* answer) {
  const error_code send_error = co_await send(stream, outgoing);
  if (send_error == kBadFile) co_return send_error;
  if (outgoing->take != nullptr) {
    co_return send_error ? send_error : co_await read_stream(stream, outgoing, answer);
  }
  // A gateway that does not want the body answers without having read it, and closes.
  boost::beast::flat_buffer buffer;
  http::response_parser<http::string_body> parser;
  parser.body_limit(kAnswerBytesMax);
  const auto [read_error, count] = co_await http::async_read(*stream, buffer, parser, kAwait);
  if (read_error) co_return send_error ? send_error : read_error;
  copy_head(parser.get(), *answer);
  answer->body = std::move(parser.get().body());
  co_return error_code{};
}

error_code prepare_tls(asio::ssl::context& context, const ServerAddress& address) {
  error_code error;
  context.set_verify_mode(asio::ssl::verify_peer);
  if (address.pinned_pem.empty() && !address.ca_file.empty()) {
    // Also one that signed itself is an anchor then.
    X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(context.native_handle()),
                                X509_V_FLAG_PARTIAL_CHAIN);
    context.load_verify_file(address.ca_file, error);
    return error;
  }
  if (address.pinned_pem.empty()) {
    context.set_default_verify_paths(error);
    return error;
  }
  // The first certificate, the gateway's own, is the anchor, though it may be no authority. Not the
  // others: they stand for whatever their authority signs.
  const std::unique_ptr<BIO, decltype(&BIO_free)> text(
      BIO_new_mem_buf(address.pinned_pem.data(), static_cast<int>(address.pinned_pem.size())),
      BIO_free);
  const std::unique_ptr<X509, decltype(&X509_free)> own(
      text ? PEM_read_bio_X509(text.get(), nullptr, nullptr, nullptr) : nullptr, X509_free);
  if (!own) return asio::error::invalid_argument;
  X509_STORE_add_cert(SSL_CTX_get_cert_store(context.native_handle()), own.get());
  X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(context.native_handle()),
                              X509_V_FLAG_PARTIAL_CHAIN);
  return error;
}

Task<error_code> call_file(const ServerAddress* address, const Outgoing* request,
                           ClientAnswer* answer, IoExecutor executor) {
  using Local = asio::local::stream_protocol;
  error_code error;
  asio::basic_stream_socket<Local, IoExecutor> socket(executor);
  if (address->socket_file.size() >= sizeof(sockaddr_un::sun_path)) {
    co_return make_error_code(boost::system::errc::filename_too_long);
  }
  socket.connect(Local::endpoint(address->socket_file), error);
  if (error) co_return error;
  co_return co_await transfer(&socket, request, answer);
}

// An address needs no look-up, which is done on a thread of its own.
Task<error_code> connect(Socket* socket, const ServerAddress* address) {
  error_code parse_error;
  const auto ip = asio::ip::make_address(address->host, parse_error);
  if (!parse_error) {
    const auto [error] = co_await socket->async_connect(tcp::endpoint(ip, address->port), kAwait);
    co_return error;
  }
  Resolver resolver(socket->get_executor());
  const auto [resolve_error, endpoints] =
      co_await resolver.async_resolve(address->host, std::to_string(address->port), kAwait);
  if (resolve_error) co_return resolve_error;
  const auto [error, endpoint] = co_await asio::async_connect(*socket, endpoints, kAwait);
  co_return error;
}

Task<error_code> call(const ServerAddress* address, const Outgoing* request, ClientAnswer* answer,
                      IoExecutor executor) {
  if (!address->socket_file.empty()) {
    co_return co_await call_file(address, request, answer, executor);
  }
  Socket socket(executor);
  if (const auto error = co_await connect(&socket, address)) co_return error;
  if (!address->is_tls) {
    co_return co_await transfer(&socket, request, answer);
  }
  asio::ssl::context context(asio::ssl::context::tls_client);
  if (const auto error = prepare_tls(context, *address)) co_return error;
  asio::ssl::stream<Socket> stream(std::move(socket), context);
  if (address->pinned_pem.empty()) {
    stream.set_verify_callback(asio::ssl::host_name_verification(address->host));
    SSL_set_tlsext_host_name(stream.native_handle(), address->host.c_str());
  }
  const auto [shake_error] =
      co_await stream.async_handshake(asio::ssl::stream_base::client, kAwait);
  if (shake_error) co_return shake_error;
  co_return co_await transfer(&stream, request, answer);
}

}  // namespace

Result<ServerAddress> parse_server_url(std::string_view url) {
  const auto bad = [&] {
    return fail(Errc::invalid, "bad_url",
                fmt::format("'{}' is not a gateway's address; write http://host:port.", url));
  };
  ServerAddress address;
  std::string_view rest = url;
  if (rest.starts_with("https://")) {
    address.is_tls = true;
    rest.remove_prefix(8);
  } else if (rest.starts_with("http://")) {
    rest.remove_prefix(7);
  } else {
    return bad();
  }
  if (rest.ends_with('/')) rest.remove_suffix(1);
  std::string_view port;
  if (rest.starts_with('[')) {
    const std::size_t end = rest.find(']');
    if (end == rest.npos) return bad();
    address.host = rest.substr(1, end - 1);
    port = rest.substr(end + 1);
  } else {
    const std::size_t colon = std::min(rest.find(':'), rest.size());
    address.host = rest.substr(0, colon);
    port = rest.substr(colon);
  }
  address.port = address.is_tls ? 443 : 80;
  if (!port.empty()) {
    port.remove_prefix(1);
    const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
    if (error != std::errc() || end != port.data() + port.size()) return bad();
  }
  if (address.host.empty() || address.host.find_first_of("/?#@ ") != std::string::npos)
    return bad();
  return address;
}

std::string_view ClientAnswer::header(std::string_view name) const {
  for (const auto& [known, value] : headers) {
    if (equals_ignoring_case(known, name)) return value;
  }
  return {};
}

Result<ClientAnswer> call_server(const ServerAddress& address, const ClientRequest& request,
                                 std::chrono::milliseconds timeout) {
  IoContext io(1);
  ClientAnswer answer;
  std::optional<error_code> outcome;
  Outgoing outgoing{request_text(address, request), request.file ? &*request.file : nullptr};
  asio::co_spawn(io.get_executor(), call(&address, &outgoing, &answer, io.get_executor()),
                 [&](std::exception_ptr thrown, error_code error) {
                   outcome = thrown ? error_code(asio::error::fault) : error;
                 });
  io.run_for(timeout);
  const Secret wiped(std::move(outgoing.text));
  if (!outcome) return unreachable(address, "it took too long");
  if (*outcome == kBadFile) {
    return fail(Errc::internal, "file_unreadable",
                "The file cannot be read, or became shorter while it was being sent.");
  }
  if (*outcome) return unreachable(address, outcome->message());
  return answer;
}

struct StreamCall::State {
  IoContext io{1};
  std::atomic<bool> is_stopped{false};
};

StreamCall::StreamCall() : state_(std::make_unique<State>()) {}
StreamCall::~StreamCall() = default;

void StreamCall::stop() {
  state_->is_stopped = true;
  state_->io.stop();
}

Result<ClientAnswer> StreamCall::run(const ServerAddress& address, const ClientRequest& request,
                                     const TakePiece& take, std::chrono::seconds silence_max) {
  IoContext& io = state_->io;
  ClientAnswer answer;
  std::optional<error_code> outcome;
  auto heard = std::chrono::steady_clock::now();
  const TakePiece noted = [&](std::string_view piece) {
    heard = std::chrono::steady_clock::now();
    take(piece);
  };
  Outgoing outgoing{request_text(address, request), nullptr, &noted};
  asio::co_spawn(io.get_executor(), call(&address, &outgoing, &answer, io.get_executor()),
                 [&](std::exception_ptr thrown, error_code error) {
                   outcome = thrown ? error_code(asio::error::fault) : error;
                 });
  while (!outcome && !state_->is_stopped &&
         std::chrono::steady_clock::now() - heard < silence_max) {
    io.run_for(kSilenceLook);
  }
  const Secret wiped(std::move(outgoing.text));
  // A coroutine that is left is dropped with the io context, and never resumed.
  if (!outcome) return unreachable(address, state_->is_stopped ? "stopped" : "it says nothing");
  if (*outcome) return unreachable(address, outcome->message());
  return answer;
}

}  // namespace clawdforge
