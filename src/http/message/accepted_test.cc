#include "http/message/accepted.h"

#include <gtest/gtest.h>

namespace clawdforge {
namespace {

TEST(Accepted, ATypeCountsWhereItIsNamed) {
  EXPECT_TRUE(accepts_type("text/html,application/xhtml+xml,*/*;q=0.8", "text/html"));
  EXPECT_TRUE(accepts_type("application/json , Text/HTML ; q=0.1", "text/html"));
  EXPECT_FALSE(accepts_type("*/*", "text/html"));
  EXPECT_FALSE(accepts_type("", "text/html"));
  EXPECT_FALSE(accepts_type("text/html;q=0", "text/html"));
  EXPECT_FALSE(accepts_type("text/htmlx", "text/html"));
}

TEST(Accepted, ACodingCountsByItsNameOrByAStar) {
  EXPECT_TRUE(accepts_coding("gzip, deflate, br", "gzip"));
  EXPECT_TRUE(accepts_coding("br;q=1.0, *;q=0.5", "gzip"));
  EXPECT_TRUE(accepts_coding("gzip;q=0.001", "gzip"));
  EXPECT_FALSE(accepts_coding("gzip;q=0.000", "gzip"));
  EXPECT_FALSE(accepts_coding("gzip;q=0, *", "gzip"));
  EXPECT_FALSE(accepts_coding("*; q=0", "gzip"));
  EXPECT_FALSE(accepts_coding("identity", "gzip"));
  EXPECT_FALSE(accepts_coding("", "gzip"));
  EXPECT_FALSE(accepts_coding(",,;;=", "gzip"));
}

TEST(Accepted, ATagIsFoundInAList) {
  EXPECT_TRUE(names_tag(R"("a", W/"b")", R"("b")"));
  EXPECT_TRUE(names_tag("*", R"("b")"));
  EXPECT_FALSE(names_tag(R"("a-gzip")", R"("a")"));
  EXPECT_FALSE(names_tag("a", R"("a")"));
  EXPECT_FALSE(names_tag("", R"("a")"));
}

}  // namespace
}  // namespace clawdforge
