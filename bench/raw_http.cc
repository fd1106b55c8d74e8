#include "raw_http.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <utility>

#include "server.h"

namespace clawdforge {
namespace {

constexpr std::string_view kHeadEnd = "\r\n\r\n";
constexpr int kReadSecsMax = 60;

std::size_t content_length(std::string head) {
  constexpr std::string_view kName = "\r\ncontent-length:";
  std::ranges::transform(head, head.begin(), [](unsigned char c) { return std::tolower(c); });
  auto at = head.find(kName);
  if (at == std::string::npos) give_up("an answer without its length: " + head);
  at = head.find_first_not_of(' ', at + kName.size());
  std::size_t length = 0;
  std::from_chars(head.data() + at, head.data() + head.size(), length);
  return length;
}

int status_in(std::string_view head) {
  constexpr std::size_t kStatusAt = 9;  // after "HTTP/1.1 "
  int status = 0;
  std::from_chars(head.data() + kStatusAt, head.data() + head.size(), status);
  return status;
}

}  // namespace

Connection::Connection(std::uint16_t port)
    : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int on = 1;
  const timeval longest{.tv_sec = kReadSecsMax, .tv_usec = 0};
  setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &longest, sizeof longest);
  setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    give_up("cannot connect");
  }
}

Connection::~Connection() { close(socket_); }

void Connection::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) give_up("the server closed the connection");
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
}

void Connection::fill() {
  char piece[64 * 1024];
  const ssize_t count = recv(socket_, piece, sizeof piece, 0);
  if (count < 0) give_up("the server did not answer in time");
  if (count == 0) give_up("the server closed the connection before its answer");
  unread_.append(piece, static_cast<std::size_t>(count));
}

std::size_t Connection::head_size() {
  std::size_t head_end = unread_.find(kHeadEnd);
  while (head_end == std::string::npos) {
    fill();
    head_end = unread_.find(kHeadEnd);
  }
  return head_end + kHeadEnd.size();
}

Answer Connection::receive() {
  const std::size_t head_end = head_size();
  const std::size_t length = content_length(unread_.substr(0, head_end));
  while (unread_.size() < head_end + length) fill();
  Answer answer;
  answer.status = status_in(unread_);
  answer.body = unread_.substr(head_end, length);
  unread_.erase(0, head_end + length);
  return answer;
}

int Connection::receive_head() {
  const std::size_t head_end = head_size();
  const int status = status_in(unread_);
  unread_.erase(0, head_end);
  return status;
}

std::string Connection::take_some() {
  if (unread_.empty()) fill();
  return std::exchange(unread_, {});
}

void Connection::put_back(std::string_view bytes) { unread_.insert(0, bytes); }

Answer Connection::ask(std::string_view request) {
  send(request);
  return receive();
}

std::string get_request(std::string_view path, std::string_view token, std::string_view accept) {
  return fmt::format(
      "GET {} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nAccept: {}\r\n\r\n", path,
      token, accept);
}

std::string json_request(std::string_view path, std::string_view token, std::string_view body) {
  return fmt::format(
      "POST {} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n"
      "Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
      path, token, body.size(), body);
}

}  // namespace clawdforge
