#include "cli/chat/attachments.h"

#include <gtest/gtest.h>

namespace clawdforge {
namespace {

TEST(Attachments, CommonBeginningsEndAtACharacter) {
  EXPECT_EQ(common_beginning({"src/ab", "src/ac"}), "src/a");
  EXPECT_EQ(common_beginning({"ä", "ö"}), "");
  EXPECT_EQ(common_beginning({"one"}), "one");
  EXPECT_TRUE(attached_paths("mail a@b and @no-such-file-here").empty());
}

}  // namespace
}  // namespace clawdforge
