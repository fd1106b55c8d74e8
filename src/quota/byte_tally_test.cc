#include "quota/byte_tally.h"

#include <gtest/gtest.h>

#include <memory>

namespace clawdforge {
namespace {

TEST(ByteTally, WhatIsOnItsWayAndWhatIsKeptCountTogether) {
  ByteTally tally(10);
  auto first = std::make_unique<ByteReservation>(tally, AppName("app"));
  EXPECT_TRUE(first->add(4));
  EXPECT_TRUE(first->add(2));
  ByteReservation second(tally, AppName("app"));
  EXPECT_FALSE(second.add(5));
  EXPECT_TRUE(second.add(4)) << "what was refused was not added";
  ByteReservation other(tally, AppName("other"));
  EXPECT_TRUE(other.add(10)) << "each app has its own";
  first->keep();
  first.reset();
  EXPECT_EQ(tally.held_by(AppName("app")), 10);
  EXPECT_EQ(tally.total(), 20);
}

TEST(ByteTally, WhatIsDroppedIsGivenBack) {
  ByteTally tally(10);
  {
    ByteReservation dropped(tally, AppName("app"));
    EXPECT_TRUE(dropped.add(10));
  }
  EXPECT_EQ(tally.held_by(AppName("app")), 0);
  EXPECT_EQ(tally.total(), 0);
}

TEST(ByteTally, ACountReplacesWhatWasKeptAndLosesNothingThatCameMeanwhile) {
  ByteTally tally(100);
  const auto keep = [&](std::int64_t bytes) {
    ByteReservation kept(tally, AppName("app"));
    EXPECT_TRUE(kept.add(bytes));
    kept.keep();
  };
  keep(50);
  tally.begin_count();
  keep(7);
  ByteReservation arriving(tally, AppName("app"));
  EXPECT_TRUE(arriving.add(3));
  tally.end_count({{AppName("app"), 20}, {AppName("gone"), 5}});
  EXPECT_EQ(tally.held_by(AppName("app")), 20 + 7 + 3);
  tally.begin_count();
  tally.end_count({{AppName("app"), 27}});
  EXPECT_EQ(tally.held_by(AppName("app")), 30);
  EXPECT_EQ(tally.held_by(AppName("gone")), 0);
}

}  // namespace
}  // namespace clawdforge
