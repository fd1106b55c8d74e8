#include "quota/rate_limits.h"

#include <gtest/gtest.h>

#include <vector>

namespace clawdforge {
namespace {

IpAddress address(const char* text) { return IpAddress::parse(text).value(); }

struct Rated {
  Metrics metrics;
  RateLimits limits{{.app_requests_max = 5,
                     .app_bytes_max = 1000,
                     .address_requests_max = 10,
                     .address_bytes_max = 1000,
                     .address_connections_max = 3,
                     .proxies = {Cidr::parse("10.1.0.0/16").value()}},
                    metrics};

  int passed(const IpAddress& origin, int count) {
    int passes = 0;
    for (int i = 0; i < count; ++i) {
      ByteMeter meter;
      if (limits.take(origin, meter)) ++passes;
    }
    return passes;
  }
};

// A slow machine forgives a few more than the burst while the test runs.
TEST(RateLimits, CountsRequestsOfAnAddressWhateverBecomesOfThem) {
  Rated rated;
  const int passes = rated.passed(address("192.0.2.1"), 1000);
  EXPECT_GE(passes, 20);
  EXPECT_LT(passes, 900);
  EXPECT_EQ(rated.passed(address("192.0.2.2"), 20), 20) << "another one is free";
}

TEST(RateLimits, TellsHowLongToWait) {
  Rated rated;
  App app;
  app.name = AppName("a");
  ByteMeter meter;
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(rated.limits.take(app, meter));
  Result<void> refused;
  for (int i = 0; i < 100 && refused; ++i) refused = rated.limits.take(app, meter);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, "too_many_requests");
  EXPECT_EQ(refused.error().kind, Errc::over_quota);
  EXPECT_EQ(refused.error().retry_after, std::chrono::seconds(1));
}

TEST(RateLimits, GivesLoopbackAndProxiesTheAllowanceOfMany) {
  Rated rated;
  EXPECT_EQ(rated.passed(address("127.0.0.1"), 400), 400);
  EXPECT_EQ(rated.passed(address("::1"), 400), 400);
  EXPECT_EQ(rated.passed(address("10.1.2.3"), 400), 400);
}

TEST(RateLimits, MakesAnAppWaitAfterTooManyBytes) {
  Rated rated;
  App app;
  app.name = AppName("a");
  ByteMeter meter;
  ASSERT_TRUE(rated.limits.take(address("192.0.2.1"), meter));
  ASSERT_TRUE(rated.limits.take(app, meter));
  meter.add(100'000, RateTable::Time::clock::now());
  EXPECT_GT(rated.limits.take(app, meter).error().retry_after, std::chrono::seconds(60));
  EXPECT_FALSE(rated.limits.take(address("192.0.2.1"), meter));
}

TEST(RateLimits, BoundsTheConnectionsOfAnAddressAndNotOfAProxy) {
  Rated rated;
  std::vector<std::shared_ptr<const void>> open;
  const IpAddress peer = address("2001:db8::1");
  for (int i = 0; i < 3; ++i) open.push_back(rated.limits.admit_connection(peer).value());
  EXPECT_FALSE(rated.limits.admit_connection(address("2001:db8::2"))) << "the same network";
  EXPECT_TRUE(rated.limits.admit_connection(address("2001:db8:0:1::1")));
  open.pop_back();
  EXPECT_EQ(rated.limits.connections_of(peer), 2U);
  EXPECT_TRUE(rated.limits.admit_connection(peer));
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(rated.limits.admit_connection(address("127.0.0.1")));
    EXPECT_TRUE(rated.limits.admit_connection(address("10.1.0.1")));
  }
}

}  // namespace
}  // namespace clawdforge
