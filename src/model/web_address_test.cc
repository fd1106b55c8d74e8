#include "model/web_address.h"

#include <gtest/gtest.h>

namespace clawdforge {
namespace {

bool reaches(std::string_view text, std::string_view prefix) {
  const auto address = WebAddress::parse(text);
  const auto allowed = WebAddress::parse(prefix);
  EXPECT_TRUE(allowed) << prefix;
  return address && allowed && is_within(*address, *allowed);
}

TEST(WebAddress, IsTakenApart) {
  const auto address = WebAddress::parse("HTTPS://Tools.Example:8443/mcp/v1?key=a%20b");
  ASSERT_TRUE(address);
  EXPECT_EQ(address->scheme, "https");
  EXPECT_EQ(address->host, "tools.example");
  EXPECT_EQ(address->port, 8443);
  EXPECT_EQ(address->path, "/mcp/v1");
  EXPECT_EQ(address->query, "key=a%20b");
  EXPECT_EQ(address->text(), "https://tools.example:8443/mcp/v1?key=a%20b");
}

TEST(WebAddress, HasThePortOfItsScheme) {
  EXPECT_EQ(WebAddress::parse("http://h")->port, 80);
  EXPECT_EQ(WebAddress::parse("https://h/")->port, 443);
  EXPECT_EQ(WebAddress::parse("https://h:443/a")->text(), "https://h/a");
  EXPECT_EQ(WebAddress::parse("http://[0:0::1]:81/")->text(), "http://[::1]:81/");
}

TEST(WebAddress, RefusesWhatTwoProgramsCouldReadDifferently) {
  for (const char* text : {"",
                           "h/mcp",
                           "ftp://h/",
                           "file:///etc/passwd",
                           "javascript:alert(1)",
                           "http:/h",
                           "http://",
                           "http:///mcp",
                           "http://user@h/",
                           "http://user:pass@h/",
                           "http://good.example@evil.example/",
                           "http://h:0/",
                           "http://h:65536/",
                           "http://h:80x/",
                           "http://h:/",
                           "http://h:-1/",
                           "http://h/a b",
                           "http://h/\n",
                           "http://h/\\..",
                           "http://h\\@evil/",
                           "http://h/#x",
                           "http://h/..",
                           "http://h/a/../b",
                           "http://h/./a",
                           "http://h/%2e%2e/a",
                           "http://h/%2E/a",
                           "http://h/a%2fb",
                           "http://h/a%5cb",
                           "http://h/%252e%252e/",
                           "http://h/%00",
                           "http://h/%0d",
                           "http://h/%",
                           "http://h/%2",
                           "http://h/%zz",
                           "http://h./",
                           "http://.h/",
                           "http://a..b/",
                           "http://h%2eexample/",
                           "http://[::1/",
                           "http://::1/",
                           "http://[::ffff:1.2.3.4]/",
                           "http://[v1.x]/",
                           "http://h\xc3\xa9/",
                           "http://h/\xc3\xa9"}) {
    EXPECT_FALSE(WebAddress::parse(text)) << text;
  }
  EXPECT_FALSE(WebAddress::parse("http://h/" + std::string(3'000, 'a')));
}

TEST(WebAddress, IsWithinAPrefixByItsParts) {
  EXPECT_TRUE(reaches("https://tools.example/mcp", "https://tools.example/mcp"));
  EXPECT_TRUE(reaches("https://TOOLS.example:443/mcp/v1?x=1", "https://tools.example/mcp"));
  EXPECT_TRUE(reaches("https://tools.example/mcp?x=1", "https://tools.example/mcp"));
  EXPECT_TRUE(reaches("https://tools.example/mcp/", "https://tools.example/mcp/"));
  EXPECT_TRUE(reaches("https://tools.example/any", "https://tools.example"));
}

TEST(WebAddress, IsNotWithinAPrefixByItsTextAlone) {
  for (const char* text :
       {"https://tools.example.evil.example/mcp", "https://tools.example@evil.example/mcp",
        "https://tools.example:8443/mcp", "http://tools.example/mcp", "https://tools.example/mcp-2",
        "https://tools.example/mcpx/v1", "https://tools.example/mcp/../admin",
        "https://tools.example/mcp/%2e%2e/admin", "https://tools.example/",
        "https://evil.tools.example/mcp", "https://tools.example/MCP"}) {
    EXPECT_FALSE(reaches(text, "https://tools.example/mcp")) << text;
  }
  EXPECT_FALSE(reaches("https://tools.example/mcp", "https://tools.example/mcp/"));
}

}  // namespace
}  // namespace clawdforge
