#include "egress/net_target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace clawdforge {
namespace {

TEST(NetTargetTest, ReadsNamesAndAddresses) {
  EXPECT_EQ(net_target_from("API.Example.org:443"), (NetTarget{"api.example.org", 443}));
  EXPECT_EQ(net_target_from("api.example.org.:443"), (NetTarget{"api.example.org", 443}));
  EXPECT_EQ(net_target_from("[::1]:80"), (NetTarget{"::1", 80}));
  EXPECT_EQ(net_target_from("[::1]:80")->text(), "[::1]:80");
  for (const char* wrong : {"", "host", "host:", "host:0", "host:65536", "host:44x", ":443",
                            "::1:80", "a b:443", "a/b:443", "user@host:443", "a%2e:443", ".:443"}) {
    EXPECT_FALSE(net_target_from(wrong)) << wrong;
  }
}

TEST(NetTargetTest, TakesOnlyConnect) {
  EXPECT_EQ(connect_target("CONNECT a.example:443 HTTP/1.1\r\nHost: other:1\r\n\r\n"),
            (NetTarget{"a.example", 443}));
  for (const char* wrong :
       {"GET http://a.example/ HTTP/1.1\r\n\r\n", "CONNECT a.example:443\r\n\r\n",
        "CONNECT a.example HTTP/1.1\r\n\r\n", "CONNECT  a.example:443 HTTP/1.1\r\n\r\n", ""}) {
    EXPECT_FALSE(connect_target(wrong)) << wrong;
  }
}

TEST(NetTargetTest, AllowsWhatIsNamed) {
  const std::vector<std::string> allowed = {"api.example.org:443", "*.example.net:443",
                                            "127.0.0.1:8080"};
  const auto is_open = [&](const char* text) {
    return is_allowed(*net_target_from(text), allowed);
  };
  EXPECT_TRUE(is_open("api.example.org:443"));
  EXPECT_TRUE(is_open("API.example.org.:443"));
  EXPECT_TRUE(is_open("a.example.net:443"));
  EXPECT_TRUE(is_open("a.b.example.net:443"));
  EXPECT_TRUE(is_open("127.0.0.1:8080"));
  EXPECT_FALSE(is_open("api.example.org:80"));
  EXPECT_FALSE(is_open("example.net:443"));
  EXPECT_FALSE(is_open("badexample.net:443"));
  EXPECT_FALSE(is_open("api.example.org.evil.example:443"));
  EXPECT_FALSE(is_open("127.0.0.1:8081"));
  EXPECT_FALSE(is_open("[::ffff:127.0.0.1]:8080"));
}

}  // namespace
}  // namespace clawdforge
