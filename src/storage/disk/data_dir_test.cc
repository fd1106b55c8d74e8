#include "storage/disk/data_dir.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace clawdforge {
namespace {

class DataDirTest : public ::testing::Test {
 protected:
  DataDirTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "clawdforge-XXXXXX").string();
    root_ = mkdtemp(pattern.data());
  }
  ~DataDirTest() override { std::filesystem::remove_all(root_); }

  static mode_t mode_of(const std::string& path) {
    struct stat found{};
    EXPECT_EQ(stat(path.c_str(), &found), 0) << path;
    return found.st_mode & 0777;
  }

  std::string root_;
};

TEST_F(DataDirTest, IsMadeWithItsParentsForItsOwnerOnly) {
  const auto opened = DataDir::open(root_ + "/a/b");
  ASSERT_TRUE(opened);
  EXPECT_EQ(mode_of(root_ + "/a/b"), 0700u);
}

TEST_F(DataDirTest, BelongsToOneGatewayAtATime) {
  {
    const auto first = DataDir::open(root_ + "/d");
    ASSERT_TRUE(first);
    const auto second = DataDir::open(root_ + "/d");
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().kind, Errc::conflict);
    EXPECT_NE(second.error().message.find(root_), std::string::npos);
  }
  EXPECT_TRUE(DataDir::open(root_ + "/d"));
}

TEST_F(DataDirTest, TellsWhetherAGatewayHasIt) {
  EXPECT_FALSE(is_data_dir_in_use(root_ + "/d"));
  {
    const auto opened = DataDir::open(root_ + "/d");
    EXPECT_TRUE(is_data_dir_in_use(root_ + "/d"));
  }
  EXPECT_FALSE(is_data_dir_in_use(root_ + "/d"));
}

TEST_F(DataDirTest, KnowsWhenOthersCanLookInside) {
  const auto opened = DataDir::open(root_ + "/d");
  ASSERT_TRUE(opened);
  EXPECT_TRUE(opened->is_private());
  ASSERT_EQ(chmod((root_ + "/d").c_str(), 0750), 0);
  EXPECT_FALSE(opened->is_private());
}

TEST_F(DataDirTest, SaysWhyItCannotBeMade) {
  std::ofstream(root_ + "/file") << "x";
  const auto below = DataDir::open(root_ + "/file/d");
  ASSERT_FALSE(below);
  EXPECT_EQ(below.error().kind, Errc::unavailable);
  const auto itself = DataDir::open(root_ + "/file");
  ASSERT_FALSE(itself);
  EXPECT_EQ(itself.error().kind, Errc::unavailable);
}

TEST_F(DataDirTest, KeepsTheAdminTokenForItsOwnerOnly) {
  const auto directory = DataDir::open(root_ + "/d");
  ASSERT_TRUE(directory);
  EXPECT_EQ(directory->read_admin_token().error().kind, Errc::not_found);
  ASSERT_TRUE(directory->write_admin_token(Secret(std::string("a-secret-of-some-length"))));
  EXPECT_EQ(mode_of(directory->admin_token_path()), 0600u);
  const auto token = read_admin_token_in(root_ + "/d");
  ASSERT_TRUE(token);
  EXPECT_EQ(token->reveal(), "a-secret-of-some-length");
}

TEST_F(DataDirTest, DoesNotFollowALinkToItsFiles) {
  const auto directory = DataDir::open(root_ + "/d");
  ASSERT_TRUE(directory);
  std::ofstream(root_ + "/elsewhere") << "a-secret-of-some-length";
  std::filesystem::create_symlink(root_ + "/elsewhere", directory->admin_token_path());
  EXPECT_FALSE(directory->read_admin_token());
  ASSERT_TRUE(directory->write_admin_token(Secret(std::string("another-secret-of-length"))));
  std::string kept;
  std::ifstream(root_ + "/elsewhere") >> kept;
  EXPECT_EQ(kept, "a-secret-of-some-length");
}

TEST_F(DataDirTest, WritesAndRemovesThePortAndTheAddress) {
  const auto directory = DataDir::open(root_ + "/d");
  ASSERT_TRUE(directory);
  EXPECT_EQ(read_address_in(root_ + "/d").error().kind, Errc::not_found);
  ASSERT_TRUE(directory->write_port(8800));
  ASSERT_TRUE(directory->write_address("http://127.0.0.1:8800", ""));
  EXPECT_EQ(read_address_in(root_ + "/d")->url, "http://127.0.0.1:8800");
  EXPECT_EQ(read_address_in(root_ + "/d")->certificate, "");
  ASSERT_TRUE(directory->write_address("https://127.0.0.1:8800", "-----BEGIN\nx\n-----END\n"));
  EXPECT_EQ(read_address_in(root_ + "/d")->url, "https://127.0.0.1:8800");
  EXPECT_EQ(read_address_in(root_ + "/d")->certificate, "-----BEGIN\nx\n-----END\n");
  directory->remove_port_and_address();
  EXPECT_EQ(read_address_in(root_ + "/d").error().kind, Errc::not_found);
  EXPECT_FALSE(std::filesystem::exists(root_ + "/d/port"));
}

}  // namespace
}  // namespace clawdforge
