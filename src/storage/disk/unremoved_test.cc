#include "storage/disk/unremoved.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace clawdforge {
namespace {

TEST(Unremoved, KnowsSoManyAndNoMore) {
  Unremoved unremoved;
  for (std::size_t i = 0; i < kUnremovedMax + 10; ++i) unremoved.add(fmt::format("n{:05}", i));
  EXPECT_EQ(unremoved.count(), kUnremovedMax);
  EXPECT_EQ(unremoved.names().back(), "n09999") << "those over it wait for the next start";
  unremoved.add("n00000");
  EXPECT_EQ(unremoved.count(), kUnremovedMax);
  unremoved.remove("n00000");
  unremoved.remove("never there");
  EXPECT_EQ(unremoved.count(), kUnremovedMax - 1);
  unremoved.add("new");
  EXPECT_EQ(unremoved.count(), kUnremovedMax) << "there is room again";
}

}  // namespace
}  // namespace clawdforge
