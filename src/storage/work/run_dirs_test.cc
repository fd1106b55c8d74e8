#include "storage/work/run_dirs.h"

#include "storage/disk/workspace_fixture.h"

namespace clawdforge {
namespace {

class RunDirsTest : public WorkspaceTest {
 protected:
  Result<RunDir> make(const std::string& id, std::vector<Attachment> attachments = {}) {
    return await(dirs_.make(id, std::move(attachments)));
  }
  // Behind all that was posted before.
  void finish() {
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(await(disk_.call([]() -> Result<void> { return {}; })));
  }
  std::string upload(const std::string& name, const std::string& text) {
    write_file(path(name), text);
    EXPECT_EQ(chmod(path(name).c_str(), 0400), 0);
    return path(name);
  }

  RunDirs dirs_{root_, disk_, log_};
};

TEST_F(RunDirsTest, ARunHasItsOwnPlacesThatNobodyElseSees) {
  const mode_t before = umask(0);
  const auto made = make("0190-a");
  umask(before);
  ASSERT_TRUE(made) << made.error().detail;
  EXPECT_EQ(made->work, root_ + "/runs/0190-a/work");
  EXPECT_EQ(made->temp, root_ + "/runs/0190-a/tmp");
  EXPECT_TRUE(made->attachments.empty());
  for (const std::string& place : {path("runs"), path("runs/0190-a"), made->work, made->temp}) {
    EXPECT_EQ(mode_of(place), 0700u) << place;
  }
}

TEST_F(RunDirsTest, AttachmentsAreLinkedUnderNamesOfOurs) {
  const std::string first = upload("u1", "one");
  const std::string second = upload("u2", "two");
  const auto made = make("r", {{first, ".txt"}, {second, ""}, {first, ".CSV9"}});
  ASSERT_TRUE(made) << made.error().detail;
  EXPECT_EQ(made->attachments,
            (std::vector<std::string>{"attachment-1.txt", "attachment-2", "attachment-3.CSV9"}));
  EXPECT_EQ(read_file(made->work + "/attachment-1.txt"), "one");
  EXPECT_EQ(read_file(made->work + "/attachment-2"), "two");
  EXPECT_EQ(status_of(made->work + "/attachment-1.txt").st_ino, status_of(first).st_ino);
  EXPECT_EQ(status_of(first).st_nlink, 3u);
  dirs_.remove("r");
  finish();
  EXPECT_EQ(read_file(first), "one") << "the upload stays when the run goes";
  EXPECT_EQ(mode_of(first), 0400u);
}

TEST_F(RunDirsTest, AnExtensionThatCouldLeadElsewhereIsLeftAway) {
  const std::string file = upload("u1", "one");
  for (const char* extension :
       {"/../../x", ".", "..", "txt", ".t/x", ".t.x", ".a b", ".12345678901234567", ".\n"}) {
    const auto made = make("r", {{file, extension}});
    ASSERT_TRUE(made) << made.error().detail;
    EXPECT_EQ(made->attachments.at(0), "attachment-1") << extension;
    dirs_.remove("r");
    finish();
  }
}

TEST_F(RunDirsTest, AnAgentDoesNotChangeAnUploadByMistake) {
  if (geteuid() == 0) GTEST_SKIP() << "modes mean nothing to root; shown as an ordinary user";
  const std::string file = upload("u1", "one");
  const auto made = make("r", {{file, ".txt"}});
  ASSERT_TRUE(made);
  const std::string attached = made->work + "/attachment-1.txt";
  EXPECT_EQ(open(attached.c_str(), O_WRONLY | O_CLOEXEC), -1);
  EXPECT_EQ(truncate(attached.c_str(), 0), -1);
  // What editors do, a new file in its place, works and leaves the upload alone.
  write_file(made->work + "/new", "two");
  ASSERT_EQ(rename((made->work + "/new").c_str(), attached.c_str()), 0);
  EXPECT_EQ(read_file(file), "one");
}

TEST_F(RunDirsTest, WhatCannotBeLinkedIsCopied) {
  std::string elsewhere = "/dev/shm/workspace-XXXXXX";
  const Descriptor other(mkstemp(elsewhere.data()));
  if (!other.is_open() || status_of(elsewhere).st_dev == status_of(root_).st_dev) {
    GTEST_SKIP() << "there is no second file system";
  }
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += std::to_string(i);
  write_file(elsewhere, text);
  const auto made = make("r", {{elsewhere, ".txt"}});
  EXPECT_EQ(unlink(elsewhere.c_str()), 0);
  ASSERT_TRUE(made) << made.error().detail;
  EXPECT_EQ(read_file(made->work + "/attachment-1.txt"), text);
  EXPECT_EQ(mode_of(made->work + "/attachment-1.txt"), 0400u);
}

TEST_F(RunDirsTest, AnErrorLeavesNothingBehind) {
  const std::string file = upload("u1", "one");
  const auto gone = make("r", {{file, ".txt"}, {path("never-there"), ".txt"}});
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().kind, Errc::not_found);
  EXPECT_EQ(gone.error().code, "file_not_found");
  EXPECT_TRUE(names_in(path("runs")).empty());
  EXPECT_EQ(status_of(file).st_nlink, 1u);
}

TEST_F(RunDirsTest, AnIdIsUsedOnceAndKeepsItsDirectory) {
  const auto first = make("r");
  ASSERT_TRUE(first);
  write_file(first->work + "/file", "text");
  const auto second = make("r");
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, "workspace_unavailable");
  EXPECT_EQ(read_file(first->work + "/file"), "text");
}

TEST_F(RunDirsTest, AnIdThatIsAPathIsRefused) {
  ASSERT_TRUE(make("r"));
  for (const char* id : {"", ".", "..", "../x", "r/work", "a b"}) {
    const auto made = make(id);
    ASSERT_FALSE(made) << id;
    EXPECT_EQ(made.error().kind, Errc::internal);
    dirs_.remove(id);
  }
  EXPECT_FALSE(make(std::string(65, 'a')));
  finish();
  EXPECT_EQ(names_in(path("runs/r")), (std::set<std::string>{"tmp", "work"}));
}

TEST_F(RunDirsTest, ARunGoesWithAllThatIsInIt) {
  const auto made = make("r");
  ASSERT_TRUE(made);
  ASSERT_TRUE(make("other"));
  fill_with_a_closed_tree(made->work);
  dirs_.remove("r");
  dirs_.remove("never-there");
  finish();
  EXPECT_EQ(names_in(path("runs")), std::set<std::string>{"other"});
}

TEST_F(RunDirsTest, ClearRemovesWhatAnEarlierLifeLeftAndMakesTheDirectory) {
  ASSERT_TRUE(await(dirs_.clear()));
  EXPECT_EQ(mode_of(path("runs")), 0700u);
  ASSERT_TRUE(make("r1"));
  const auto made = make("r2");
  ASSERT_TRUE(made);
  write_file(made->work + "/file", "text");
  ASSERT_EQ(chmod(made->work.c_str(), 0), 0);
  write_file(path("runs/stray"), "text");
  std::filesystem::create_symlink(root_, path("runs/link"));
  write_file(path("kept"), "text");
  ASSERT_TRUE(await(dirs_.clear()));
  EXPECT_TRUE(names_in(path("runs")).empty());
  EXPECT_EQ(read_file(path("kept")), "text");
}

TEST_F(RunDirsTest, SaysWhenTheWorkspaceCannotBeUsed) {
  write_file(path("runs"), "a file in its place");
  for (const auto& failed : {make("r").error(), await(dirs_.clear()).error()}) {
    EXPECT_EQ(failed.kind, Errc::unavailable);
    EXPECT_EQ(failed.code, "workspace_unavailable");
    EXPECT_EQ(failed.message.find(root_), std::string::npos);
    EXPECT_FALSE(failed.detail.empty());
  }
}

}  // namespace
}  // namespace clawdforge
