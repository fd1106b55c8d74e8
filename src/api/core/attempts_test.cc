#include "api/core/attempts.h"

#include <gtest/gtest.h>

#include <string>

namespace clawdforge {
namespace {

using std::chrono::seconds;

const IpAddress kOne = *IpAddress::parse("192.0.2.1");
const IpAddress kTwo = *IpAddress::parse("192.0.2.2");
const Attempts::Time kStart{seconds(1000)};

Digest digest_of(int number) { return sha256("wrong " + std::to_string(number)); }

TEST(Attempts, TwentyDifferentWrongTokensAreAllowed) {
  Attempts attempts;
  for (int i = 0; i < 20; ++i) {
    EXPECT_FALSE(attempts.is_over(kOne, kStart + std::chrono::microseconds(i))) << i;
    attempts.count(kOne, digest_of(i), kStart + std::chrono::microseconds(i));
  }
  EXPECT_TRUE(attempts.is_over(kOne, kStart + std::chrono::milliseconds(1)));
  EXPECT_FALSE(attempts.is_over(kTwo, kStart));
}

TEST(Attempts, TheSameWrongTokenIsNotGuessing) {
  Attempts attempts;
  for (int i = 0; i < 1000; ++i) attempts.count(kOne, digest_of(1), kStart);
  EXPECT_FALSE(attempts.is_over(kOne, kStart));
}

TEST(Attempts, OneMoreIsAllowedEveryThreeSeconds) {
  Attempts attempts;
  for (int i = 0; i < 20; ++i) attempts.count(kOne, digest_of(i), kStart);
  EXPECT_TRUE(attempts.is_over(kOne, kStart + seconds(2)));
  EXPECT_FALSE(attempts.is_over(kOne, kStart + seconds(3)));
  attempts.count(kOne, digest_of(21), kStart + seconds(3));
  EXPECT_TRUE(attempts.is_over(kOne, kStart + seconds(4)));
}

TEST(Attempts, ANetworkOfIpv6IsOneCaller) {
  Attempts attempts;
  for (int i = 0; i < 20; ++i) {
    attempts.count(*IpAddress::parse("2001:db8::" + std::to_string(i + 1)), digest_of(i), kStart);
  }
  EXPECT_TRUE(attempts.is_over(*IpAddress::parse("2001:db8::ffff"), kStart));
  EXPECT_FALSE(attempts.is_over(*IpAddress::parse("2001:db8:0:1::1"), kStart));
}

TEST(Attempts, ManyAddressesDoNotCostManyRecords) {
  Attempts attempts;
  for (int i = 0; i < 20; ++i) attempts.count(kOne, digest_of(i), kStart);
  for (int i = 0; i < 20'000; ++i) {
    const std::array<std::uint8_t, 4> bytes{10, 1, static_cast<std::uint8_t>(i >> 8),
                                            static_cast<std::uint8_t>(i)};
    attempts.count(IpAddress::from_v4(bytes), digest_of(i), kStart);
  }
  EXPECT_LE(attempts.size(), 4096u);
}

}  // namespace
}  // namespace clawdforge
