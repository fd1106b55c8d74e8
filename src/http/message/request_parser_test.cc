#include "http/message/request_parser.h"

#include <gtest/gtest.h>

#include <string>

namespace clawdforge {
namespace {

const IpAddress kPeer = *IpAddress::parse("127.0.0.1");

struct Parsed {
  Request request{kPeer};
  RequestParser parser{RequestLimits{}};
  std::optional<Fault> fault;
};

Parsed parse(std::string_view head) {
  Parsed parsed;
  parsed.request.head_bytes.assign(head.begin(), head.end());
  parsed.fault = parsed.parser.parse_head(parsed.request);
  return parsed;
}

int status_of(std::string_view head) {
  const Parsed parsed = parse(head);
  return parsed.fault ? parsed.fault->status : 200;
}

std::string with_header(std::string_view line) {
  return "POST /x HTTP/1.1\r\nHost: a\r\n" + std::string(line) + "\r\n\r\n";
}

TEST(RequestParser, FindsMethodPathQueryAndHeaders) {
  const Parsed parsed = parse("GET /a/b?c=d&e HTTP/1.1\r\nHost: x:1\r\nX-One:  two \r\n\r\n");
  ASSERT_FALSE(parsed.fault);
  EXPECT_EQ(parsed.request.method, "GET");
  EXPECT_EQ(parsed.request.path, "/a/b");
  EXPECT_EQ(parsed.request.query, "c=d&e");
  EXPECT_EQ(parsed.request.header("x-one"), "two");
  EXPECT_EQ(parsed.request.version_minor, 1);
  EXPECT_TRUE(parsed.parser.is_done());
  EXPECT_TRUE(parsed.parser.keep_alive());
}

TEST(RequestParser, KeepsItsViewsWhenTheRequestIsMoved) {
  Parsed parsed = parse("GET /moved HTTP/1.1\r\nHost: x\r\n\r\n");
  const Request moved = std::move(parsed.request);
  EXPECT_EQ(moved.path, "/moved");
  EXPECT_EQ(moved.header("Host"), "x");
}

TEST(RequestParser, TakesTheAbsoluteForm) {
  const Parsed parsed = parse("GET http://host:80/a?b HTTP/1.1\r\nHost: host\r\n\r\n");
  ASSERT_FALSE(parsed.fault);
  EXPECT_EQ(parsed.request.path, "/a");
  EXPECT_EQ(parsed.request.query, "b");
}

TEST(RequestParser, RefusesTargetsThatAreNoPath) {
  EXPECT_EQ(status_of("GET * HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
  EXPECT_EQ(status_of("CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET http://host HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET http://h?/metrics HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET http:///healthz HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET http://a@b/healthz HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
}

TEST(RequestParser, RefusesEveryTransferCodingButChunked) {
  for (const char* value : {"xchunked", "chunked, identity", "gzip, chunked", "identity",
                            "chunked, chunked", "chunked;q=1", "\"chunked\"", ""}) {
    const int status = status_of(with_header(std::string("Transfer-Encoding: ") + value));
    EXPECT_TRUE(status == 501 || status == 400) << value << " gave " << status;
  }
  EXPECT_EQ(status_of(with_header("Transfer-Encoding: Chunked")), 200);
}

TEST(RequestParser, RefusesChunkedInHttp10) {
  EXPECT_EQ(status_of("POST /x HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), 501);
}

TEST(RequestParser, RefusesTwoThingsThatMustBeOne) {
  EXPECT_EQ(status_of("GET /x HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"), 400);
  EXPECT_EQ(status_of(with_header("Content-Length: 3\r\nContent-Length: 3")), 400);
  EXPECT_EQ(status_of(with_header("Content-Length: 3\r\nContent-Length: 4")), 400);
  EXPECT_EQ(status_of(with_header("Content-Length: 3, 3")), 400);
  EXPECT_EQ(status_of(with_header("Content-Length:")), 400);
  EXPECT_EQ(status_of(with_header("Content-Length: 3\r\nTransfer-Encoding: chunked")), 400);
  EXPECT_EQ(status_of(with_header("Transfer-Encoding: chunked\r\nContent-Length: 3")), 400);
  EXPECT_EQ(status_of(with_header("Authorization: Bearer a\r\nAuthorization: Bearer b")), 400);
}

TEST(RequestParser, NeedsAHostInHttp11) {
  EXPECT_EQ(status_of("GET /x HTTP/1.1\r\nA: b\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET /x HTTP/1.0\r\nA: b\r\n\r\n"), 200);
  EXPECT_EQ(status_of("GET /x HTTP/1.1\r\nHost: a b\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET /x HTTP/1.1\r\nHost: a,b\r\n\r\n"), 400);
}

TEST(RequestParser, RefusesLinesThatGoOnInTheNext) {
  EXPECT_EQ(status_of(with_header("X: a\r\n b")), 400);
  EXPECT_EQ(status_of(with_header("X: a\r\n\tb")), 400);
}

TEST(RequestParser, RefusesLowerCaseMethodsAndOtherVersions) {
  EXPECT_EQ(status_of("get /x HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET /x HTTP/2.0\r\nHost: a\r\n\r\n"), 505);
  EXPECT_EQ(status_of("GET /x HTTP/0.9\r\nHost: a\r\n\r\n"), 505);
}

TEST(RequestParser, LimitsTheNumberOfHeadersAndTheTarget) {
  std::string head = "GET /x HTTP/1.1\r\nHost: a\r\n";
  for (int i = 0; i < 99; ++i) head += "A: b\r\n";
  EXPECT_EQ(status_of(head + "\r\n"), 200);
  EXPECT_EQ(status_of(head + "A: b\r\n\r\n"), 431);
  EXPECT_EQ(status_of("GET /" + std::string(9000, 'x') + " HTTP/1.1\r\nHost: a\r\n\r\n"), 414);
}

TEST(RequestParser, KnowsWhatItIsExpectedToExpect) {
  const Parsed parsed = parse(with_header("Content-Length: 3\r\nExpect: 100-Continue"));
  EXPECT_FALSE(parsed.fault);
  EXPECT_TRUE(parsed.parser.expects_continue());
  EXPECT_EQ(status_of(with_header("Expect: a-miracle")), 417);
}

TEST(RequestParser, ReadsAChunkedBodyInAnyPieces) {
  const std::string wire = "4\r\nWiki\r\n5;ext=1\r\npedia\r\n0\r\nTrailer: x\r\n\r\nGET /next";
  for (std::size_t piece = 1; piece <= wire.size(); ++piece) {
    Parsed parsed = parse(with_header("Transfer-Encoding: chunked"));
    ASSERT_FALSE(parsed.fault);
    std::string body;
    std::string held;
    std::size_t used = 0;
    for (std::size_t at = 0; at < wire.size() && !parsed.parser.is_done(); at += piece) {
      held += wire.substr(at, piece);
      const auto step = parsed.parser.parse_body(held, body, 100);
      ASSERT_FALSE(step.fault);
      held.erase(0, step.consumed);
      used += step.consumed;
    }
    EXPECT_TRUE(parsed.parser.is_done()) << piece;
    EXPECT_EQ(body, "Wikipedia") << piece;
    EXPECT_EQ(wire.substr(used), "GET /next") << piece;
  }
}

TEST(RequestParser, StopsABodyAtItsLimit) {
  Parsed chunked = parse(with_header("Transfer-Encoding: chunked"));
  std::string body;
  EXPECT_EQ(chunked.parser.parse_body("5\r\nhello\r\n", body, 4).fault->status, 413);
  Parsed sized = parse(with_header("Content-Length: 5"));
  EXPECT_EQ(sized.parser.parse_body("hello", body, 4).fault->status, 413);
}

TEST(RequestParser, RefusesBrokenChunks) {
  for (const char* wire : {"x\r\nhello\r\n", "5\nhello\r\n", "5\r\nhelloXX\r\n0\r\n\r\n", "-1\r\n",
                           "ffffffffffffffffff\r\n", "5 5\r\nhello\r\n"}) {
    Parsed parsed = parse(with_header("Transfer-Encoding: chunked"));
    std::string body;
    const auto step = parsed.parser.parse_body(wire, body, 100);
    ASSERT_TRUE(step.fault) << wire;
    EXPECT_EQ(step.fault->status, 400) << wire;
  }
}

TEST(FindHeadEnd, WaitsUntilTheEmptyLineIsThere) {
  const RequestLimits limits;
  const std::string head = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
  for (std::size_t size = 1; size < head.size(); ++size) {
    const HeadEnd end = find_head_end(std::string_view(head).substr(0, size), limits);
    EXPECT_EQ(end.size, 0u);
    EXPECT_FALSE(end.fault);
  }
  EXPECT_EQ(find_head_end(head + "rest", limits).size, head.size());
}

TEST(FindHeadEnd, DoesNotWaitForWhatCannotBecomeGood) {
  const RequestLimits limits;
  EXPECT_EQ(find_head_end("GET / HTTP/1.1\nHost: a\n\n", limits).fault->status, 400);
  EXPECT_EQ(find_head_end("\x16\x03\x01", limits).fault->status, 400);
  EXPECT_EQ(find_head_end(std::string(limits.head_bytes_max, 'A'), limits).fault->status, 414);
  EXPECT_EQ(find_head_end("GET / HTTP/1.1\r\n" + std::string(limits.head_bytes_max, 'A'), limits)
                .fault->status,
            431);
}

TEST(PercentDecoded, UndoesEscapesAndRefusesBrokenOnes) {
  EXPECT_EQ(percent_decoded("a%20b%2F"), "a b/");
  EXPECT_EQ(percent_decoded("plain"), "plain");
  for (const char* text : {"%", "%2", "%zz", "%00", "a%"}) {
    EXPECT_FALSE(percent_decoded(text)) << text;
  }
}

}  // namespace
}  // namespace clawdforge
