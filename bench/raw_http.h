// The smallest HTTP client there can be, so that a benchmark measures the server: one
// kept-alive connection over a blocking socket, answers with a Content-Length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace clawdforge {

struct Answer {
  int status = 0;
  std::string body;
};

class Connection {
 public:
  // To loopback. All of it gives up where something fails.
  explicit Connection(std::uint16_t port);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void send(std::string_view bytes);
  Answer receive();
  // Only the head of an answer; its body is what take_some() gives from then on.
  int receive_head();
  // At least one byte of what has come, or comes next.
  std::string take_some();
  // Puts back the last of what was taken.
  void put_back(std::string_view bytes);
  Answer ask(std::string_view request);

 private:
  void fill();
  std::size_t head_size();

  int socket_;
  std::string unread_;
};

std::string get_request(std::string_view path, std::string_view token, std::string_view accept);
std::string json_request(std::string_view path, std::string_view token, std::string_view body);

}  // namespace clawdforge
