#include "http/client.h"

#include <gtest/gtest.h>

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

TEST(CallServer, SaysThatNobodyAnswers) {
  // Port 1 on loopback: nothing listens there.
  const auto answer = call_server(
      {.is_tls = false, .host = "127.0.0.1", .port = 1, .pinned_cert = {}},
      {.method = "GET", .target = "/", .token = {}, .body = {}}, std::chrono::seconds(5));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind, Errc::unavailable);
}

}  // namespace
}  // namespace clawdforge
