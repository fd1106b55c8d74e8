#include "raw_http.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "server.h"

namespace clawdforge {
namespace {

constexpr std::string_view kHeadEnd = "\r\n\r\n";

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

}  // namespace

Connection::Connection(std::uint16_t port)
    : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int on = 1;
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
  char piece[16 * 1024];
  const ssize_t count = recv(socket_, piece, sizeof piece, 0);
  if (count <= 0) give_up("the server closed the connection before its answer");
  unread_.append(piece, static_cast<std::size_t>(count));
}

Answer Connection::receive() {
  std::size_t head_end = unread_.find(kHeadEnd);
  while (head_end == std::string::npos) {
    fill();
    head_end = unread_.find(kHeadEnd);
  }
  head_end += kHeadEnd.size();
  const std::size_t length = content_length(unread_.substr(0, head_end));
  while (unread_.size() < head_end + length) fill();
  Answer answer;
  constexpr std::size_t kStatusAt = 9;  // after "HTTP/1.1 "
  std::from_chars(unread_.data() + kStatusAt, unread_.data() + head_end, answer.status);
  answer.body = unread_.substr(head_end, length);
  unread_.erase(0, head_end + length);
  return answer;
}

Answer Connection::ask(std::string_view request) {
  send(request);
  return receive();
}

std::string json_request(std::string_view path, std::string_view token, std::string_view body) {
  return fmt::format(
      "POST {} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n"
      "Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
      path, token, body.size(), body);
}

}  // namespace clawdforge
