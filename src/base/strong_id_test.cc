#include "base/strong_id.h"

#include <gtest/gtest.h>

#include <concepts>
#include <unordered_set>

namespace clawdforge {
namespace {

// What the compiler must refuse.
static_assert(!std::convertible_to<std::string, SessionId>);
static_assert(!std::convertible_to<const char*, SessionId>);
static_assert(!std::convertible_to<SessionId, std::string>);
static_assert(!std::convertible_to<SessionId, std::string_view>);
static_assert(!std::constructible_from<SessionId, AppName>);
static_assert(!std::equality_comparable_with<SessionId, AppName>);

TEST(StrongId, GivesItsTextAndComparesByIt) {
  SessionId id("s-1");
  EXPECT_EQ(id.str(), "s-1");
  EXPECT_EQ(id, SessionId("s-1"));
  EXPECT_EQ(id, "s-1");
  EXPECT_LT(id, SessionId("s-2"));
  EXPECT_TRUE(SessionId().empty());
  EXPECT_EQ(std::string_view(id), "s-1");
  EXPECT_EQ(fmt::format("{:>5}", id), "  s-1");
  EXPECT_EQ(std::move(id).str(), "s-1");
}

TEST(StrongId, CanBeHashed) {
  const std::unordered_set<AppName> names = {AppName("a"), AppName("b"), AppName("a")};
  EXPECT_EQ(names.size(), 2u);
}

}  // namespace
}  // namespace clawdforge
