#include "storage/homes/earlier_home.h"

#include "storage/disk/workspace_fixture.h"

namespace clawdforge {
namespace {

class EarlierHomeTest : public WorkspaceTest {
 protected:
  EarlierHomeTest() {
    std::filesystem::create_directories(path("owner/.claude/projects/" + folder_));
    std::filesystem::create_directories(path("owner/.acpx/sessions"));
    std::filesystem::create_directories(path("s/home"));
  }
  std::string kept(const std::string& name) const {
    return path("owner/.claude/projects/" + folder_ + "/" + name);
  }
  std::string brought(const std::string& name) const {
    return path("s/home/.claude/projects/" + folder_ + "/" + name);
  }
  static Task<bool> brought_all(Task<void> bringing) {
    co_await std::move(bringing);
    co_return true;
  }
  void bring(const std::string& id) {
    await(brought_all(earlier_.bring({.own_dir = path("s"),
                                      .home = path("s/home"),
                                      .working_dir = work_,
                                      .agent_session_id = id},
                                     Lane())));
  }

  std::string work_ = path("s/work");
  std::string folder_ = claude_folder_of(work_);
  EarlierHome earlier_{path("owner"), path("owner/.claude"), disk_, log_};
};

TEST(ClaudeFolder, HasADashForAllThatIsNeitherLetterNorDigit) {
  EXPECT_EQ(claude_folder_of("/home/u/.local/state/s_1/work"), "-home-u--local-state-s-1-work");
}

TEST_F(EarlierHomeTest, AConversationIsBroughtOnce) {
  write_file(kept("id-1.jsonl"), "said before");
  bring("id-1");
  EXPECT_EQ(read_file(brought("id-1.jsonl")), "said before");
  EXPECT_EQ(mode_of(brought("id-1.jsonl")), 0600u);
  EXPECT_EQ(read_file(kept("id-1.jsonl")), "said before");
  write_file(brought("id-1.jsonl"), "said since");
  bring("id-1");
  EXPECT_EQ(read_file(brought("id-1.jsonl")), "said since");
}

TEST_F(EarlierHomeTest, OfASharedDirectoryOnlyItsOwnConversationIsBrought) {
  work_ = "/srv/project";
  folder_ = claude_folder_of(work_);
  std::filesystem::create_directories(path("owner/.claude/projects/" + folder_));
  write_file(kept("id-1.jsonl"), "its own");
  write_file(kept("id-2.jsonl"), "the owner's");
  bring("id-1");
  EXPECT_EQ(read_file(brought("id-1.jsonl")), "its own");
  EXPECT_FALSE(exists(brought("id-2.jsonl")));
}

TEST_F(EarlierHomeTest, ARecordOfAcpxIsBroughtWithItsJournals) {
  write_file(path("owner/.acpx/sessions/r-1.json"), "record");
  write_file(path("owner/.acpx/sessions/r-1.stream.ndjson"), "journal");
  write_file(path("owner/.acpx/sessions/r-2.json"), "of another");
  bring("acpx:r-1");
  EXPECT_EQ(names_in(path("s/home/.acpx/sessions")),
            (std::set<std::string>{"r-1.json", "r-1.stream.ndjson"}));
}

TEST_F(EarlierHomeTest, WhatAcpxIsToldByItsOwnerIsBrought) {
  write_file(path("owner/.acpx/config.json"), "{}");
  await(brought_all(earlier_.bring({.own_dir = path("s"),
                                    .home = path("s/home"),
                                    .working_dir = work_,
                                    .agent_session_id = "",
                                    .is_acpx = true},
                                   Lane())));
  EXPECT_EQ(read_file(path("s/home/.acpx/config.json")), "{}");
  EXPECT_FALSE(exists(path("s/home/.claude")));
}

TEST_F(EarlierHomeTest, NoLinkIsFollowed) {
  write_file(path("secret"), "a key");
  ASSERT_EQ(symlink(path("secret").c_str(), kept("id-1.jsonl").c_str()), 0);
  bring("id-1");
  EXPECT_FALSE(exists(brought("id-1.jsonl")));
  // Nor one of the agent's in its own home.
  ASSERT_EQ(unlink(kept("id-1.jsonl").c_str()), 0);
  write_file(kept("id-1.jsonl"), "said before");
  std::filesystem::remove_all(path("s/home/.claude"));
  std::filesystem::create_directories(path("elsewhere"));
  ASSERT_EQ(symlink(path("elsewhere").c_str(), path("s/home/.claude").c_str()), 0);
  bring("id-1");
  EXPECT_TRUE(names_in(path("elsewhere")).empty());
}

TEST_F(EarlierHomeTest, AnIdThatIsAPathBringsNothing) {
  work_ = "/srv/project";
  folder_ = claude_folder_of(work_);
  write_file(path("owner/.claude/projects/secret.jsonl"), "of another");
  std::filesystem::create_directories(path("owner/.claude/projects/" + folder_));
  bring("../secret");
  EXPECT_FALSE(exists(path("s/home/.claude")));
}

}  // namespace
}  // namespace clawdforge
