// The server over real sockets, with handlers made for the purpose; what the gateway's
// own paths answer is tested from outside, in tests/blackbox.
#include "http/server/server.h"

#include <gtest/gtest.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

#include "base/async/async_tokens.h"
#include "base/async/run_to_end.h"
#include "base/async/timer.h"

namespace clawdforge {
namespace asio = boost::asio;
namespace {

using Socket = asio::basic_stream_socket<asio::ip::tcp, IoExecutor>;

Async<void> count_to(BodyWriter* writer, int last, IoExecutor executor) {
  Timer pause(executor);
  for (int i = 1; i <= last; ++i) {
    auto written = co_await writer->write(std::to_string(i) + "\n");
    if (!written) co_return written;
    pause.expires_after(std::chrono::milliseconds(1));
    co_await pause.async_wait(kAwait);
  }
  if (last == 13) co_return fail(Errc::internal, "broken", "half a stream");
  co_return Result<void>{};
}

Async<void> wait_for_ever(IoExecutor executor, int* running) {
  ++*running;
  Timer never(executor);
  never.expires_at(Timer::time_point::max());
  co_await never.async_wait(kAwait);
  --*running;
  co_return Result<void>{};
}

Async<void> throw_in_a_stream() {
  throw std::runtime_error("a defect");
  co_return Result<void>{};
}

Task<int> hold_open(std::vector<Socket>* sockets, std::uint16_t port, IoExecutor executor,
                    int count) {
  for (int i = 0; i < count; ++i) {
    sockets->emplace_back(executor);
    const asio::ip::tcp::endpoint endpoint(asio::ip::address_v4::loopback(), port);
    co_await sockets->back().async_connect(endpoint, kAwait);
  }
  co_return 0;
}

class ServerTest : public ::testing::Test {
 protected:
  ServerTest()
      : log_(LogLevel::error, LogFormat::json),
        server_(
            io_, options(), [this](Request& request) { return admit(request); }, log_, metrics_) {
    port_ = *server_.listen("127.0.0.1", 0);
    server_.start();
  }
  ~ServerTest() override { run_to_end(io_, stop()); }

  static ServerOptions options() {
    ServerOptions options;
    options.connections_max = 4;
    options.request_id_prefix = "t";
    return options;
  }

  Task<int> stop() {
    co_await server_.stop();
    co_return 0;
  }

  static Task<Response> throw_up(Request*) {
    throw std::runtime_error("a defect");
    co_return Response{};
  }
  static Task<Response> echo(Request* request) {
    Response response;
    response.content_type = "text/plain";
    response.body = request->body;
    co_return response;
  }
  Task<Response> stream(int last) {
    Response response;
    response.content_type = "text/plain";
    response.stream = [last, executor = io_.get_executor()](BodyWriter* writer) {
      return count_to(writer, last, executor);
    };
    co_return response;
  }
  Task<Response> hold() {
    Response response;
    response.stream = [this](BodyWriter*) { return wait_for_ever(io_.get_executor(), &running_); };
    co_return response;
  }
  static Task<Response> break_off() {
    Response response;
    response.stream = [](BodyWriter*) { return throw_in_a_stream(); };
    co_return response;
  }
  // With a body and a stream, whether the status may have one or not.
  static Task<Response> bare(Request* request) {
    Response response;
    response.status = std::stoi(std::string(request->path.substr(8)));
    response.body = "body";
    if (request->query == "stream") {
      response.stream = [](BodyWriter* writer) { return writer->write("streamed"); };
    }
    co_return response;
  }
  Task<Response> big() {
    Response response;
    response.body = std::string(8 * 1024 * 1024, 'x');
    co_return response;
  }

  Admission admit(Request& request) {
    Admission admission;
    admission.body_bytes_max = 1024;
    if (request.path == "/throw") admission.handler = throw_up;
    if (request.path == "/echo") admission.handler = echo;
    if (request.path == "/hold") admission.handler = [this](Request*) { return hold(); };
    if (request.path == "/defect") admission.handler = [](Request*) { return break_off(); };
    if (request.path == "/big") admission.handler = [this](Request*) { return big(); };
    if (request.path == "/count") admission.handler = [this](Request*) { return stream(3); };
    if (request.path == "/broken") admission.handler = [this](Request*) { return stream(13); };
    if (request.path.starts_with("/status/"))
      admission.handler = [](Request* asked) { return bare(asked); };
    return admission;
  }

  // Sends `request` and reads until the server closes, or `until` bytes are there.
  Task<std::string> talk(std::string request, std::size_t until = SIZE_MAX) {
    Socket socket(io_.get_executor());
    const asio::ip::tcp::endpoint endpoint(asio::ip::address_v4::loopback(), port_);
    co_await socket.async_connect(endpoint, kAwait);
    co_await asio::async_write(socket, asio::buffer(request), kAwait);
    std::string answer;
    while (answer.size() < until) {
      char piece[4096];
      const auto [error, count] = co_await socket.async_read_some(asio::buffer(piece), kAwait);
      if (error) break;
      answer.append(piece, count);
    }
    co_return answer;
  }

  std::string ask(std::string request) { return run_to_end(io_, talk(std::move(request))); }

  static std::string get(std::string_view path, std::string_view version = "1.1") {
    return "GET " + std::string(path) + " HTTP/" + std::string(version) +
           "\r\nHost: t\r\nConnection: close\r\n\r\n";
  }

  IoContext io_{1};
  Log log_;
  Metrics metrics_;
  Server server_;
  std::uint16_t port_ = 0;
  int running_ = 0;  // streams that wait for ever
};

TEST_F(ServerTest, StreamsABodyThatIsWrittenOverTime) {
  const std::string answer = ask(get("/count"));
  EXPECT_NE(answer.find("Transfer-Encoding: chunked\r\n"), std::string::npos);
  EXPECT_TRUE(answer.ends_with("\r\n\r\n2\r\n1\n\r\n2\r\n2\n\r\n2\r\n3\n\r\n0\r\n\r\n")) << answer;
}

TEST_F(ServerTest, StreamsToHttp10WithoutChunks) {
  const std::string answer = ask(get("/count", "1.0"));
  EXPECT_EQ(answer.find("Transfer-Encoding"), std::string::npos);
  EXPECT_TRUE(answer.ends_with("\r\n\r\n1\n2\n3\n")) << answer;
  EXPECT_NE(answer.find("Connection: close\r\n"), std::string::npos);
}

TEST_F(ServerTest, CutsAStreamThatFailsSoThatItsEndIsMissing) {
  const std::string answer = ask(get("/broken"));
  EXPECT_NE(answer.find("13\n"), std::string::npos);
  EXPECT_FALSE(answer.ends_with("0\r\n\r\n")) << answer;
}

TEST_F(ServerTest, OutlivesADefectInAStream) {
  const std::string answer = ask(get("/defect"));
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 ")) << answer;
  EXPECT_FALSE(answer.ends_with("0\r\n\r\n")) << answer;
  EXPECT_EQ(server_.busy(), 0u);
  EXPECT_TRUE(ask(get("/count")).ends_with("0\r\n\r\n"));
}

TEST_F(ServerTest, EndsAStreamThatWaitsForSomethingElseWhenItStops) {
  std::vector<Socket> sockets;
  run_to_end(io_, hold_open(&sockets, port_, io_.get_executor(), 1));
  const std::string request = get("/hold");
  asio::write(sockets.front(), asio::buffer(request));
  while (running_ == 0) io_.run_one_for(std::chrono::milliseconds(10));
  run_to_end(io_, stop());
  EXPECT_EQ(server_.connections(), 0u);
}

TEST_F(ServerTest, GivesHeadOfAStreamNoBody) {
  const std::string answer = ask("HEAD /count HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(answer.ends_with("\r\n\r\n")) << answer;
  EXPECT_EQ(answer.find("1\n\r\n2"), std::string::npos);
}

TEST_F(ServerTest, GoesOnAfterAStreamOnTheSameConnection) {
  const std::string answer = ask("GET /count HTTP/1.1\r\nHost: t\r\n\r\n" + get("/count"));
  const auto first = answer.find("0\r\n\r\nHTTP/1.1 200");
  EXPECT_NE(first, std::string::npos) << answer;
}

TEST_F(ServerTest, AnswersADefectOfAHandlerWith500) {
  const std::string answer = ask(get("/throw"));
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 500 ")) << answer;
  EXPECT_NE(answer.find("internal: "), std::string::npos);
  EXPECT_EQ(answer.find("a defect"), std::string::npos);
}

TEST_F(ServerTest, AnswersWithAnyStatus) {
  for (const auto* line : {"202 Accepted", "409 Conflict", "499 Client Error", "529 Overloaded"}) {
    const std::string answer = ask(get("/status/" + std::string(line).substr(0, 3)));
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 " + std::string(line) + "\r\n")) << answer;
    EXPECT_TRUE(answer.ends_with("\r\n\r\nbody")) << answer;
  }
}

TEST_F(ServerTest, WritesNoBodyWhereTheStatusHasNone) {
  for (const auto* path : {"/status/204", "/status/304", "/status/304?stream"}) {
    const std::string first = "GET " + std::string(path) + " HTTP/1.1\r\nHost: t\r\n\r\n";
    const std::string answer = ask(first + get("/count"));
    const std::string head = answer.substr(0, answer.find("\r\n\r\n"));
    EXPECT_EQ(head.find("\r\nContent-Length"), std::string::npos) << head;
    EXPECT_EQ(head.find("\r\nContent-Type"), std::string::npos) << head;
    EXPECT_EQ(head.find("Transfer-Encoding"), std::string::npos) << head;
    EXPECT_TRUE(answer.substr(head.size() + 4).starts_with("HTTP/1.1 200 OK\r\n")) << answer;
  }
}

TEST_F(ServerTest, AnswersPipelinedRequestsInTheirOrder) {
  std::string requests;
  for (int i = 0; i < 100; ++i) {
    const std::string body = std::to_string(i) + ";";
    requests += "POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: " + std::to_string(body.size()) +
                "\r\n\r\n" + body;
  }
  const std::string answer = ask(requests + get("/count"));
  std::size_t at = 0;
  for (int i = 0; i < 100; ++i) {
    at = answer.find("\r\n\r\n" + std::to_string(i) + ";", at);
    ASSERT_NE(at, std::string::npos) << i;
  }
}

TEST_F(ServerTest, WritesALargeBodyWhole) {
  const std::string answer = ask(get("/big"));
  EXPECT_EQ(answer.size() - answer.find("\r\n\r\n") - 4, 8u * 1024 * 1024);
}

TEST_F(ServerTest, TellsConnectionsOverTheLimitThatItIsFull) {
  std::vector<Socket> sockets;
  run_to_end(io_, hold_open(&sockets, port_, io_.get_executor(), 4));
  const std::string answer = ask(get("/count"));
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 503 ")) << answer;
  EXPECT_NE(answer.find("too_many_connections: "), std::string::npos);
}

TEST_F(ServerTest, EndsIdleConnectionsWhenItDrains) {
  std::vector<Socket> sockets;
  run_to_end(io_, hold_open(&sockets, port_, io_.get_executor(), 2));
  while (server_.connections() < 2) io_.run_one_for(std::chrono::milliseconds(10));
  server_.drain();
  while (server_.connections() > 0) io_.run_one_for(std::chrono::milliseconds(10));
  EXPECT_EQ(server_.busy(), 0u);
}

}  // namespace
}  // namespace clawdforge
