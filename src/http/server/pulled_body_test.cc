// Bodies that a handler pulls, over real sockets.
#include "http/server/pulled_body.h"

#include <gtest/gtest.h>

#include "http/server/server_fixture.h"

namespace clawdforge {
namespace {

constexpr std::size_t kBodyBytes = 3 * 1024 * 1024;  // the most that is taken

class PulledBodyTest : public ::testing::Test {
 protected:
  explicit PulledBodyTest(ServerOptions options = {})
      : running_(std::move(options), [this](Request& request) { return admit(request); }) {}

  // Pulls all, or only one piece, and answers with the sizes that it has seen.
  static Task<Response> pull(PulledBodyTest* test, Request* request, bool only_one) {
    ++test->handlers_;
    std::size_t total = 0;
    Response response;
    for (;;) {
      auto piece = co_await request->body_reader->next();
      if (!piece) {
        test->refused_ = piece.error().code;
        const auto again = co_await request->body_reader->next();
        EXPECT_FALSE(again) << "an error is the end";
        break;
      }
      total += piece->size();
      test->pieces_ += 1;
      test->last_ = std::string(piece->substr(0, 100));
      if (piece->empty() || only_one) break;
    }
    response.body = "total " + std::to_string(total) + ";";
    co_return response;
  }
  static Task<Response> ignore(Request*) {
    Response response;
    response.body = "unread;";
    co_return response;
  }
  static Task<Response> plain(Request*) {
    Response response;
    response.body = "plain;";
    co_return response;
  }

  Admission admit(Request& request) {
    Admission admission;
    admission.body_bytes_max = kBodyBytes;
    admission.pulls_body = request.path != "/plain";
    if (request.path == "/plain") admission.handler = plain;
    if (request.path == "/ignore") admission.handler = ignore;
    if (request.path == "/all") {
      admission.handler = [this](Request* pulled) { return pull(this, pulled, false); };
    }
    if (request.path == "/one") {
      admission.handler = [this](Request* pulled) { return pull(this, pulled, true); };
    }
    return admission;
  }

  static std::string post(std::string_view path, std::size_t length, std::string_view more = "") {
    return "POST " + std::string(path) + " HTTP/1.1\r\nHost: t\r\n" + std::string(more) +
           "Content-Length: " + std::to_string(length) + "\r\n\r\n";
  }
  static std::string chunked(std::string_view path) {
    return "POST " + std::string(path) +
           " HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n";
  }
  static std::string last() {
    return "GET /plain HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n";
  }
  static bool has(const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
  }

  int handlers_ = 0;
  int pieces_ = 0;
  std::string refused_;
  std::string last_;
  RunningServer running_;
};

class SlowBodyTest : public PulledBodyTest {
 protected:
  static ServerOptions impatient() {
    ServerOptions options;
    options.body_read_max = std::chrono::seconds(1);
    return options;
  }

  SlowBodyTest() : PulledBodyTest(impatient()) {}
};

TEST_F(PulledBodyTest, ArrivesWholeAndInLargePieces) {
  const std::string answer =
      running_.ask(post("/all", kBodyBytes) + std::string(kBodyBytes, 'x') + last());
  EXPECT_TRUE(has(answer, "total " + std::to_string(kBodyBytes) + ";")) << answer;
  EXPECT_TRUE(answer.ends_with("plain;")) << "the connection goes on";
  EXPECT_LT(pieces_, 600);
}

TEST_F(PulledBodyTest, CanBeEmptyOrAbsent) {
  EXPECT_TRUE(has(running_.ask(post("/all", 0) + last()), "total 0;"));
  const std::string answer = running_.ask("POST /all HTTP/1.1\r\nHost: t\r\n\r\n" + last());
  EXPECT_TRUE(has(answer, "total 0;") && answer.ends_with("plain;")) << answer;
}

TEST_F(PulledBodyTest, ArrivesFromChunksHoweverTheyAreCut) {
  std::string request = chunked("/all");
  for (int i = 0; i < 500; ++i) request += "3\r\nabc\r\n";
  request += "0\r\nX-Trailer: 1\r\n\r\n";
  auto socket = running_.connect();
  for (const char byte : request) {
    boost::asio::write(socket, boost::asio::buffer(&byte, 1));
    running_.io().poll();
  }
  boost::asio::write(socket, boost::asio::buffer(last()));
  const std::string answer = running_.read_all(socket);
  EXPECT_TRUE(has(answer, "total 1500;") && answer.ends_with("plain;")) << answer;
}

TEST_F(PulledBodyTest, IsRefusedByItsAnnouncedLengthBeforeAnyHandlerRuns) {
  const std::string answer = running_.ask(post("/all", kBodyBytes + 1));
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 413 ") && has(answer, "body_too_large")) << answer;
  EXPECT_EQ(handlers_, 0);
}

TEST_F(PulledBodyTest, IsRefusedWhenItsChunksGrowTooLarge) {
  std::string request = chunked("/all") + "100000\r\n" + std::string(0x100000, 'x') +
                        "\r\n200001\r\n" + std::string(100, 'x');
  const std::string answer = running_.ask(request);
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 413 ")) << answer;
  EXPECT_EQ(refused_, "body_too_large");
}

TEST_F(PulledBodyTest, IsRefusedWhenItsChunksAreNotValid) {
  for (const std::string bad :
       {"3\r\nabcd\r\n\r\n", "zz\r\n\r\n", "3\nabc\n0\r\n\r\n", "-1\r\n\r\n"}) {
    const std::string answer = running_.ask(chunked("/all") + bad);
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 400 ")) << bad << answer;
    EXPECT_EQ(refused_, "bad_request");
  }
  const std::string endless = "1;" + std::string(1024 * 1024, 'x');
  EXPECT_TRUE(running_.ask(chunked("/all") + endless).starts_with("HTTP/1.1 400 "));
}

TEST_F(SlowBodyTest, IsRefused) {
  auto socket = running_.connect();
  boost::asio::write(socket, boost::asio::buffer(post("/all", 100) + "abc"));
  const std::string answer = running_.read_all(socket);
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 408 ") && has(answer, "request_timeout")) << answer;
  EXPECT_EQ(refused_, "request_timeout");
}

TEST_F(PulledBodyTest, TellsTheHandlerThatTheCallerHasGone) {
  {
    auto socket = running_.connect();
    boost::asio::write(socket, boost::asio::buffer(post("/all", 100) + "abc"));
    running_.wait_until([&] { return pieces_ > 0; }, "the first piece");
  }
  running_.wait_until([&] { return !refused_.empty(); }, "the end");
  EXPECT_EQ(refused_, "caller_gone");
  running_.wait_until([&] { return running_.server().busy() == 0; }, "the exchange");
  EXPECT_TRUE(has(running_.metrics(), "499")) << running_.metrics();
}

TEST_F(PulledBodyTest, IsAskedForOnlyWhenItIsPulled) {
  auto socket = running_.connect();
  const std::string head = post("/all", 3, "Expect: 100-continue\r\n");
  boost::asio::write(socket, boost::asio::buffer(head));
  const std::string go = running_.read_until(socket, "\r\n\r\n");
  EXPECT_EQ(go, "HTTP/1.1 100 Continue\r\n\r\n");
  boost::asio::write(socket, boost::asio::buffer("abc" + last()));
  EXPECT_TRUE(has(running_.read_all(socket), "total 3;"));

  const std::string unread = running_.ask(post("/ignore", 3, "Expect: 100-continue\r\n"));
  EXPECT_TRUE(unread.starts_with("HTTP/1.1 200 ") && unread.ends_with("unread;")) << unread;
  EXPECT_TRUE(has(unread, "Connection: close\r\n"));
}

TEST_F(PulledBodyTest, EndsTheConnectionWhenItIsNotPulledToItsEnd) {
  // More than the kernel holds, so that the answer must reach a caller who is still sending.
  for (const std::string path : {"/one", "/ignore"}) {
    const std::string answer =
        running_.ask(post(path, kBodyBytes) + std::string(kBodyBytes / 3, 'x'));
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 ")) << answer;
    EXPECT_TRUE(has(answer, "Connection: close\r\n")) << answer;
    EXPECT_FALSE(has(answer, "plain;"));
  }
}

TEST_F(PulledBodyTest, EndsInOrderWhenTheServerStops) {
  auto socket = running_.connect();
  boost::asio::write(socket, boost::asio::buffer(post("/all", 100) + "abc"));
  running_.wait_until([&] { return pieces_ > 0; }, "the first piece");
  run_to_end(running_.io(), running_.stop());
  EXPECT_EQ(running_.server().connections(), 0u);
}

}  // namespace
}  // namespace clawdforge
