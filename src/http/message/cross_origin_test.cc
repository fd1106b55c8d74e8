#include "http/message/cross_origin.h"

#include <gtest/gtest.h>

#include "http/message/request_parser.h"

namespace clawdforge {
namespace {

// As if this head had come in.
Request request_with(const std::string& head) {
  Request request(IpAddress::from_v4({127, 0, 0, 1}));
  request.head_bytes.assign(head.begin(), head.end());
  RequestParser parser{RequestLimits{}};
  EXPECT_FALSE(parser.parse_head(request));
  return request;
}

std::string origin_allowed(const CrossOrigin& origins, const std::string& origin) {
  const Request request =
      request_with("GET / HTTP/1.1\r\nHost: x\r\nOrigin: " + origin + "\r\n\r\n");
  Response response;
  origins.add_headers(request, response);
  for (const auto& [name, value] : response.headers) {
    if (name == "Access-Control-Allow-Origin") return value;
  }
  return "";
}

TEST(CrossOrigin, AllowsExactlyWhatIsListed) {
  const CrossOrigin origins({"https://app.example", "http://localhost:5173"});
  EXPECT_EQ(origin_allowed(origins, "https://app.example"), "https://app.example");
  EXPECT_EQ(origin_allowed(origins, "http://localhost:5173"), "http://localhost:5173");
  for (const char* other :
       {"http://app.example", "https://app.example:8443", "https://app.example.evil",
        "https://app.exampl", "null", "*", "http://localhost", "https://APP.example"}) {
    EXPECT_EQ(origin_allowed(origins, other), "") << other;
  }
  EXPECT_EQ(origin_allowed(CrossOrigin(), "https://app.example"), "");
}

TEST(CrossOrigin, KnowsAPreflight) {
  const CrossOrigin origins({"https://app.example"});
  const std::string head = "OPTIONS /run HTTP/1.1\r\nHost: x\r\n";
  const std::string origin = "Origin: https://app.example\r\n";
  const std::string method = "Access-Control-Request-Method: POST\r\n";
  EXPECT_TRUE(origins.is_preflight(request_with(head + origin + method + "\r\n")));
  EXPECT_FALSE(origins.is_preflight(request_with(head + origin + "\r\n")));
  EXPECT_FALSE(origins.is_preflight(request_with(head + method + "\r\n")));
  EXPECT_FALSE(CrossOrigin().is_preflight(request_with(head + origin + method + "\r\n")));
}

}  // namespace
}  // namespace clawdforge
