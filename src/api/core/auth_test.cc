#include "api/core/auth.h"

#include <gtest/gtest.h>

#include "base/async/run_to_end.h"
#include "ledger/open_ledger.h"

namespace clawdforge {
namespace {

Request request_from(const char* peer, std::vector<Header> headers = {}) {
  Request request(*IpAddress::parse(peer));
  request.headers = std::move(headers);
  return request;
}

std::vector<Cidr> ranges(std::initializer_list<const char*> texts) {
  std::vector<Cidr> all;
  for (const char* text : texts) all.push_back(*Cidr::parse(text));
  return all;
}

std::string origin(const Request& request, const std::vector<Cidr>& trusted) {
  const auto address = origin_of(request, trusted);
  return address ? address->text() : "none";
}

TEST(Origin, IsThePeerUnlessThatIsATrustedProxy) {
  const Request request = request_from("203.0.113.9", {{"X-Forwarded-For", "10.0.0.1"}});
  EXPECT_EQ(origin(request, {}), "203.0.113.9");
  EXPECT_EQ(origin(request, ranges({"203.0.113.0/24"})), "10.0.0.1");
}

TEST(Origin, IsTheRightmostAddressThatIsNotTrusted) {
  const auto trusted = ranges({"127.0.0.1/32", "10.0.0.0/8"});
  EXPECT_EQ(origin(request_from("127.0.0.1", {{"X-Forwarded-For", "6.6.6.6, 1.2.3.4, 10.0.0.7"}}),
                   trusted),
            "1.2.3.4");
  EXPECT_EQ(origin(request_from("127.0.0.1", {{"X-Forwarded-For", "10.0.0.8,10.0.0.7"}}), trusted),
            "10.0.0.8");
  EXPECT_EQ(origin(request_from("127.0.0.1"), trusted), "127.0.0.1");
}

TEST(Origin, ReadsSeveralHeadersAsOneList) {
  EXPECT_EQ(origin(request_from("127.0.0.1", {{"x-forwarded-for", "6.6.6.6"},
                                              {"Other", "x"},
                                              {"X-Forwarded-For", "1.2.3.4"}}),
                   ranges({"127.0.0.1/32"})),
            "1.2.3.4");
}

TEST(Origin, UnderstandsPortsBracketsAndMappedAddresses) {
  const auto trusted = ranges({"127.0.0.1/32"});
  const auto from = [&](const char* value) {
    return origin(request_from("127.0.0.1", {{"X-Forwarded-For", value}}), trusted);
  };
  EXPECT_EQ(from("1.2.3.4:5678"), "1.2.3.4");
  EXPECT_EQ(from("[2001:db8::1]:99"), "2001:db8::1");
  EXPECT_EQ(from("2001:db8::1"), "2001:db8::1");
  EXPECT_EQ(from("::ffff:1.2.3.4"), "1.2.3.4");
}

TEST(Origin, IsNoneWhereATrustedProxyNamesNoAddress) {
  for (const char* value :
       {"", "unknown", "1.2.3.4, ", "1.2.3", "[::1", "a:b:c", "1.2.3.4 5.6.7.8"}) {
    EXPECT_EQ(
        origin(request_from("127.0.0.1", {{"X-Forwarded-For", value}}), ranges({"127.0.0.1/32"})),
        "none")
        << value;
  }
}

class AuthTest : public ::testing::Test {
 protected:
  AuthTest()
      : log_(LogLevel::error, LogFormat::json),
        ledger_(std::move(
            *open_ledger(io_.get_executor(), "sqlite::memory:", InstanceId("i1"), log_, metrics_))),
        apps_(ledger_->apps, clock_, ids_, log_),
        auth_({ranges({"10.0.0.0/8"}), {}}, sha256(kAdmin), apps_) {}

  std::string mint(const char* name, std::vector<Cidr> from = {}) {
    App fresh;
    fresh.name = AppName(name);
    fresh.ip_cidrs = std::move(from);
    return std::string(run_to_end(io_, apps_.mint(std::move(fresh), {}))->token.reveal());
  }

  Result<Caller> identify(const std::string& header, const char* from = "127.0.0.1") {
    const Request request = request_from(from, {{"Authorization", header}});
    return auth_.identify(request, request.peer);
  }

  static constexpr const char* kAdmin = "the-admin-token-of-this-test";
  IoContext io_{1};
  Log log_;
  Metrics metrics_;
  SystemClock clock_;
  RandomIds ids_{clock_};
  std::unique_ptr<Ledger> ledger_;
  Apps apps_;
  Auth auth_;
};

TEST_F(AuthTest, AllowsLoopbackAndTheListedRanges) {
  for (const char* peer :
       {"127.0.0.1", "127.8.9.10", "::1", "::ffff:127.0.0.1", "10.1.2.3", "::ffff:10.1.2.3"}) {
    EXPECT_TRUE(auth_.check_address(request_from(peer))) << peer;
  }
  for (const char* peer : {"11.0.0.1", "192.168.0.1", "2001:db8::1", "::2"}) {
    const auto checked = auth_.check_address(request_from(peer));
    ASSERT_FALSE(checked) << peer;
    EXPECT_EQ(checked.error().code, "address_not_allowed");
  }
}

TEST_F(AuthTest, TellsAppsAndTheAdminApart) {
  const std::string token = mint("one");
  const auto app = identify("Bearer " + token);
  ASSERT_TRUE(app);
  EXPECT_EQ(app->kind, CallerKind::app);
  EXPECT_EQ(app->app->name, "one");
  EXPECT_EQ(identify("bearer " + token)->kind, CallerKind::app);
  EXPECT_EQ(identify(std::string("Bearer ") + kAdmin)->kind, CallerKind::admin);
}

TEST_F(AuthTest, GivesOneAndTheSameAnswerToEveryBadToken) {
  const std::string token = mint("one");
  ASSERT_TRUE(run_to_end(io_, apps_.revoke(AppName("one"), {})));
  for (const std::string& header :
       {std::string(), std::string("Bearer"), std::string("Bearer "), std::string("Basic abc"),
        "Bearer " + token, std::string("Bearer cf_unknown"), token}) {
    const auto caller = identify(header);
    ASSERT_FALSE(caller) << header;
    EXPECT_EQ(caller.error().kind, Errc::unauthorized) << header;
    EXPECT_EQ(caller.error().message, identify("").error().message);
  }
}

TEST_F(AuthTest, NarrowsAnAppToItsOwnRangesAlsoOnLoopback) {
  const std::string token = mint("narrow", ranges({"10.1.0.0/16"}));
  EXPECT_TRUE(identify("Bearer " + token, "10.1.2.3"));
  EXPECT_EQ(identify("Bearer " + token, "10.2.2.3").error().code, "address_not_allowed");
  EXPECT_EQ(identify("Bearer " + token, "127.0.0.1").error().code, "address_not_allowed");
}

TEST_F(AuthTest, StopsGuessingButNotWhatIsRight) {
  const std::string token = mint("one");
  for (int i = 0; i < 20; ++i) identify("Bearer cf_guess" + std::to_string(i), "10.0.0.1");
  EXPECT_EQ(identify("Bearer cf_more", "10.0.0.1").error().code, "too_many_attempts");
  EXPECT_TRUE(identify(std::string("Bearer ") + kAdmin, "10.0.0.1"));
  EXPECT_TRUE(identify("Bearer " + token, "10.0.0.1"));
  EXPECT_EQ(identify("Bearer cf_more", "10.0.0.1").error().code, "too_many_attempts");
}

TEST_F(AuthTest, TakesTheSocketForTheAdminUnlessATokenSaysOtherwise) {
  const std::string token = mint("one");
  Request request = request_from("127.0.0.1");
  request.is_from_local_socket = true;
  EXPECT_EQ(auth_.identify(request, request.peer)->admin.door, AdminDoor::socket);
  for (const std::string& header :
       {"Bearer " + token, std::string("Bearer cf_wrong"), std::string("Bearer "), std::string()}) {
    Request with_token = request_from("127.0.0.1", {{"Authorization", header}});
    with_token.is_from_local_socket = true;
    const auto caller = auth_.identify(with_token, with_token.peer);
    EXPECT_FALSE(caller && caller->kind == CallerKind::admin) << header;
  }
}

TEST_F(AuthTest, AnswersWithoutATokenOnlyToNamesThatCannotBeAStrangers) {
  const Auth named({{}, {}, {"forge.example"}}, sha256(kAdmin), apps_);
  const auto is_taken = [&](const char* host) {
    return named.check_host(request_from("127.0.0.1", {{"Host", host}})).has_value();
  };
  for (const char* host : {"127.0.0.1", "127.0.0.1:80", "[::1]", "[::1]:80", "localhost:8800",
                           "FORGE.example", "forge.example:1"}) {
    EXPECT_TRUE(is_taken(host)) << host;
  }
  for (const char* host : {"", ":80", "evil.example", "forge.example.evil", "127.0.0.1.evil",
                           "[::1", "[evil]:80", "localhost.evil:80", "::1:80:evil"}) {
    EXPECT_FALSE(is_taken(host)) << host;
  }
  EXPECT_TRUE(named.check_host(request_from("127.0.0.1"))) << "HTTP/1.0 has no Host";
}

}  // namespace
}  // namespace clawdforge
