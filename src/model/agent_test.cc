#include "model/agent.h"

#include <gtest/gtest.h>

#include <vector>

namespace clawdforge {
namespace {

TEST(PermissionModes, AreOrderedFromTheStrictest) {
  const std::vector<PermissionMode> order = {PermissionMode::deny_all,
                                             PermissionMode::approve_reads, PermissionMode::ask,
                                             PermissionMode::approve_all};
  for (std::size_t mode = 0; mode < order.size(); ++mode) {
    for (std::size_t limit = 0; limit < order.size(); ++limit) {
      EXPECT_EQ(exceeds(order[mode], order[limit]), mode > limit) << mode << " and " << limit;
    }
  }
}

TEST(PermissionModes, HaveNamesThatLeadBackToThem) {
  for (const std::string_view name : {"deny_all", "approve_reads", "ask", "approve_all"}) {
    const auto mode = permission_mode_from(name);
    ASSERT_TRUE(mode) << name;
    EXPECT_EQ(name_of(*mode), name);
  }
  EXPECT_FALSE(permission_mode_from("allow"));
}

}  // namespace
}  // namespace clawdforge
