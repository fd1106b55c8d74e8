// For tests: a server on a free loopback port, on an io_context that the test itself runs.
#pragma once

#include <gtest/gtest.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <functional>
#include <string>
#include <utility>

#include "base/async/async_tokens.h"
#include "base/async/run_to_end.h"
#include "http/server/server.h"

namespace clawdforge {

class RunningServer {
 public:
  using Socket = boost::asio::basic_stream_socket<boost::asio::ip::tcp, IoExecutor>;

  RunningServer(ServerOptions options, Admit admit)
      : log_(LogLevel::error, LogFormat::json),
        server_(io_, std::move(options), std::move(admit), log_, metrics_),
        port_(server_.listen("127.0.0.1", 0).value()) {
    server_.start();
  }
  ~RunningServer() { run_to_end(io_, stop()); }

  IoContext& io() { return io_; }
  Server& server() { return server_; }
  std::uint16_t port() const { return port_; }
  std::string metrics() const { return metrics_.render(); }

  Socket connect() {
    Socket socket(io_.get_executor());
    socket.connect({boost::asio::ip::address_v4::loopback(), port_});
    return socket;
  }

  // Runs the io_context until it holds; fails the test if it never does.
  void wait_until(const std::function<bool()>& holds, const char* what) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!holds()) {
      ASSERT_LT(std::chrono::steady_clock::now(), end) << what;
      io_.run_one_for(std::chrono::milliseconds(10));
      if (io_.stopped()) io_.restart();
    }
  }

  // All that comes until the server closes.
  template <class Stream>
  std::string read_all(Stream& stream) {
    return run_to_end(io_, read_to_end(&stream));
  }
  template <class Stream>
  std::string read_until(Stream& stream, std::string mark) {
    return run_to_end(io_, read_to_mark(&stream, std::move(mark)));
  }

  std::string ask(const std::string& request) {
    Socket socket = connect();
    return run_to_end(io_, talk(&socket, &request));
  }

  Task<int> stop() {
    co_await server_.stop();
    co_return 0;
  }

 private:
  template <class Stream>
  static Task<std::string> read_to_mark(Stream* stream, std::string mark) {
    std::string answer;
    while (mark.empty() || answer.find(mark) == std::string::npos) {
      char piece[4096];
      const auto [error, count] =
          co_await stream->async_read_some(boost::asio::buffer(piece), kAwait);
      if (error) break;
      answer.append(piece, count);
    }
    co_return answer;
  }
  template <class Stream>
  static Task<std::string> read_to_end(Stream* stream) {
    return read_to_mark(stream, std::string());
  }
  // The answer may come, and the end, before all was sent.
  static Task<std::string> talk(Socket* socket, const std::string* request) {
    co_await boost::asio::async_write(*socket, boost::asio::buffer(*request), kAwait);
    co_return co_await read_to_end(socket);
  }

  IoContext io_{1};
  Log log_;
  Metrics metrics_;
  Server server_;
  std::uint16_t port_;
};

}  // namespace clawdforge
