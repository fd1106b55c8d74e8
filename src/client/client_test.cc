#include "client/client.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <thread>

#include "http/server/server_fixture.h"

namespace clawdforge {
namespace {

TEST(ServerUrl, ReadsSchemeHostAndPort) {
  const auto plain = parse_server_url("http://127.0.0.1:8800/");
  ASSERT_TRUE(plain);
  EXPECT_FALSE(plain->is_tls);
  EXPECT_EQ(plain->host, "127.0.0.1");
  EXPECT_EQ(plain->port, 8800);
  const auto secure = parse_server_url("https://gateway.example");
  ASSERT_TRUE(secure);
  EXPECT_TRUE(secure->is_tls);
  EXPECT_EQ(secure->port, 443);
  const auto six = parse_server_url("http://[::1]:99");
  ASSERT_TRUE(six);
  EXPECT_EQ(six->host, "::1");
  EXPECT_EQ(six->port, 99);
}

TEST(ServerUrl, RefusesWhatIsNoGateway) {
  for (const char* url :
       {"", "127.0.0.1:8800", "ftp://a", "http://", "http://a:b", "http://a:99999", "http://a/path",
        "http://[::1", "http://u@h:1", "http://a:1:2"}) {
    EXPECT_FALSE(parse_server_url(url)) << url;
  }
}

TEST(CallServer, SaysThatNoServerAnswers) {
  // Port 1 on loopback: nothing listens there.
  const auto answer =
      call_server({.is_tls = false, .host = "127.0.0.1", .port = 1},
                  {.method = "GET", .target = "/", .token = {}, .body = {}, .file = {}},
                  std::chrono::seconds(5));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind, Errc::unavailable);
}

// Answers with the body's size and its ends; the server runs on another thread, because the
// client blocks its own.
class ClientFileTest : public ::testing::Test {
 protected:
  static constexpr std::size_t kBodyBytes = 4 * 1024 * 1024;

  ~ClientFileTest() override {
    running_.io().stop();
    loop_.join();
    running_.io().restart();
  }

  static Task<Response> measure(Request* request) {
    std::string body;
    for (;;) {
      const auto piece = co_await request->body_reader->next();
      if (!piece || piece->empty()) break;
      body += *piece;
    }
    Response response;
    response.headers.emplace_back("X-Type",
                                  std::string(request->header("Content-Type").value_or("")));
    response.body = body.substr(0, 9) + std::to_string(body.size()) + body.substr(body.size() - 9);
    co_return response;
  }
  static Admission admit(Request&) {
    Admission admission;
    admission.body_bytes_max = kBodyBytes;
    admission.pulls_body = true;
    admission.handler = measure;
    return admission;
  }

  Result<ClientAnswer> upload(std::size_t there, std::size_t announced) {
    const std::unique_ptr<FILE, int (*)(FILE*)> file(std::tmpfile(), std::fclose);
    const std::string content(there, 'x');
    EXPECT_EQ(::pwrite(fileno(file.get()), content.data(), there, 0), static_cast<ssize_t>(there));
    return call_server({.is_tls = false, .host = "127.0.0.1", .port = running_.port()},
                       {.method = "POST",
                        .target = "/",
                        .token = {},
                        .body = "<prefix>",
                        .content_type = "a/b",
                        .file = ClientFile{fileno(file.get()), announced, "<suffix>"}},
                       std::chrono::seconds(20));
  }

  RunningServer running_{ServerOptions{}, admit};
  std::thread loop_{[this] { running_.io().run(); }};
};

TEST_F(ClientFileTest, SendsAFileBetweenWhatComesBeforeAndBehind) {
  const auto answer = upload(3'000'000, 3'000'000);
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->body, "<prefix>x3000016x<suffix>");
  EXPECT_EQ(answer->header("x-type"), "a/b");
  EXPECT_EQ(answer->header("X-Absent"), "");
}

TEST_F(ClientFileTest, HearsTheAnswerToABodyThatIsNotWanted) {
  const auto answer = upload(kBodyBytes * 8, kBodyBytes * 8);
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->status, 413);
}

TEST_F(ClientFileTest, DoesNotPretendThatAShorterFileWasSent) {
  const auto answer = upload(1000, 1001);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, "file_unreadable");
}

}  // namespace
}  // namespace clawdforge
