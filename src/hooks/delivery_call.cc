#include "hooks/delivery_call.h"

#include <fmt/format.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <optional>
#include <vector>

#include "base/async/async_tokens.h"
#include "base/async/timer.h"
#include "base/version.h"

namespace clawdforge {
namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

using Socket = asio::basic_stream_socket<tcp, IoExecutor>;
using TlsStream = asio::ssl::stream<Socket&>;

constexpr std::uint32_t kWebhookHeadBytesMax = 16 * 1024;
constexpr std::chrono::seconds kAnswerBodyMax{1};  // after its head; it decides nothing
constexpr std::size_t kPieceBytes = 16 * 1024;

std::unexpected<Failure> no_answer(std::string why) {
  return fail(Errc::unavailable, "webhook_failed", std::move(why));
}

std::string request_text(const DeliveryRequest& request) {
  const WebAddress& to = request.to;
  const bool is_usual = to.port == (to.scheme == "https" ? 443 : 80);
  std::string text = fmt::format(
      "POST {}{}{} HTTP/1.1\r\nHost: {}{}\r\nUser-Agent: clawdforge/{}\r\n"
      "Content-Type: application/json\r\nContent-Length: {}\r\nwebhook-id: {}\r\n"
      "webhook-timestamp: {}\r\nwebhook-signature: {}\r\nConnection: close\r\n\r\n",
      to.path, to.query.empty() ? "" : "?", to.query, to.host,
      is_usual ? "" : fmt::format(":{}", to.port), kVersion, request.body.size(), request.id,
      request.at, request.signature);
  text += request.body;
  return text;
}

// Ends what is under way on a socket when its time is over.
class Deadline {
 public:
  Deadline(IoExecutor executor, Socket& socket)
      : timer_(executor), state_(std::make_shared<State>(&socket)) {}
  ~Deadline() {
    state_->socket = nullptr;
    timer_.cancel();
  }
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

  void set(std::chrono::milliseconds most) {
    timer_.expires_after(most);
    // The handler may run after the attempt has ended: it has no more than the state then.
    timer_.async_wait([state = state_](error_code error) {
      if (error || state->socket == nullptr) return;
      state->is_over = true;
      error_code ignored;
      state->socket->close(ignored);
    });
  }
  bool is_over() const { return state_->is_over; }
  Timer::time_point ends_at() const { return timer_.expiry(); }

 private:
  struct State {
    explicit State(Socket* its_socket) : socket(its_socket) {}
    Socket* socket;
    bool is_over = false;
  };

  Timer timer_;
  std::shared_ptr<State> state_;
};

// An address needs no look-up.
Async<NameLookups::Addresses> addresses_of(const WebAddress* to, NameLookups* names,
                                           Timer::time_point deadline) {
  std::string host = to->host;
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  error_code parse_error;
  const auto ip = asio::ip::make_address(host, parse_error);
  if (!parse_error) co_return NameLookups::Addresses{ip};
  if (names == nullptr) co_return no_answer("names of hosts cannot be looked up");
  co_return co_await names->find(std::move(host), deadline);
}

Task<error_code> connect(Socket* socket, NameLookups::Addresses addresses, std::uint16_t port) {
  std::vector<tcp::endpoint> endpoints;
  for (const auto& address : addresses) endpoints.emplace_back(address, port);
  const auto [error, endpoint] = co_await asio::async_connect(*socket, endpoints, kAwait);
  co_return error;
}

// The body of an answer is read so that its sender can end well, and thrown away.
template <class Stream>
Task<void> drop_body(Stream* stream, boost::beast::flat_buffer* buffer,
                     http::response_parser<http::buffer_body>* parser) {
  std::vector<char> piece(kPieceBytes);
  for (std::size_t read = 0; !parser->is_done() && read < kWebhookAnswerBytesMax;) {
    parser->get().body().data = piece.data();
    parser->get().body().size = piece.size();
    const auto [error, count] = co_await http::async_read_some(*stream, *buffer, *parser, kAwait);
    read += piece.size() - parser->get().body().size;
    if (error && error != http::error::need_buffer) co_return;
  }
}

struct Answer {
  error_code error;
  int status = 0;
};

template <class Stream>
Task<Answer> exchange(Stream* stream, const std::string* text, Deadline* deadline) {
  const auto [write_error, written] =
      co_await asio::async_write(*stream, asio::buffer(*text), kAwait);
  boost::beast::flat_buffer buffer(kWebhookHeadBytesMax + kPieceBytes);
  http::response_parser<http::buffer_body> parser;
  parser.header_limit(kWebhookHeadBytesMax);
  parser.body_limit(boost::none);
  // A receiver that does not want the body may answer without having read it.
  const auto [read_error, count] =
      co_await http::async_read_header(*stream, buffer, parser, kAwait);
  if (read_error) co_return Answer{write_error ? write_error : read_error, 0};
  const int status = static_cast<int>(parser.get().result_int());
  deadline->set(kAnswerBodyMax);
  co_await drop_body(stream, &buffer, &parser);
  co_return Answer{{}, status};
}

Task<Answer> exchange_by_tls(Socket* socket, const DeliveryRequest* request,
                             const std::string* text, Deadline* deadline) {
  TlsStream stream(*socket, *request->trust);
  const std::string& host = request->to.host;
  const std::string name = host.starts_with('[') ? host.substr(1, host.size() - 2) : host;
  error_code not_an_address;
  asio::ip::make_address(name, not_an_address);
  stream.set_verify_mode(asio::ssl::verify_peer);
  stream.set_verify_callback(asio::ssl::host_name_verification(name));
  if (not_an_address) SSL_set_tlsext_host_name(stream.native_handle(), name.c_str());
  const auto [error] = co_await stream.async_handshake(asio::ssl::stream_base::client, kAwait);
  if (error) co_return Answer{error, 0};
  co_return co_await exchange(&stream, text, deadline);
}

}  // namespace

Result<TlsTrust> load_system_trust() {
  auto trust = std::make_shared<asio::ssl::context>(asio::ssl::context::tls_client);
  error_code error;
  trust->set_default_verify_paths(error);
  if (error) return no_answer("the system's certificates cannot be read: " + error.message());
  return trust;
}

Async<int> call_webhook(DeliveryRequest request) {
  const IoExecutor executor = co_await asio::this_coro::executor;
  Socket socket(executor);
  Deadline deadline(executor, socket);
  deadline.set(request.time_max);
  const std::string text = request_text(request);
  auto addresses = co_await addresses_of(&request.to, request.names, deadline.ends_at());
  if (!addresses) co_return std::unexpected(std::move(addresses.error()));
  Answer answer;
  answer.error = co_await connect(&socket, std::move(*addresses), request.to.port);
  if (!answer.error) {
    answer = request.to.scheme == "https"
                 ? co_await exchange_by_tls(&socket, &request, &text, &deadline)
                 : co_await exchange(&socket, &text, &deadline);
  }
  if (!answer.error) co_return answer.status;
  if (deadline.is_over()) {
    co_return no_answer(
        fmt::format("there was no answer within {} s",
                    std::chrono::ceil<std::chrono::seconds>(request.time_max).count()));
  }
  co_return no_answer(answer.error.message());
}

}  // namespace clawdforge
