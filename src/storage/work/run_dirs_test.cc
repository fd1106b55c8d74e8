#include "storage/work/run_dirs.h"

#include <boost/asio/co_spawn.hpp>
#include <filesystem>
#include <future>
#include <optional>

#include "storage/disk/workspace_fixture.h"

namespace clawdforge {
namespace {

class RunDirsTest : public WorkspaceTest {
 protected:
  Result<RunDir> make(const std::string& id, std::vector<Attachment> attachments = {}) {
    return await(dirs_.make(id, {.attachments = std::move(attachments), .system_prompt = {}}));
  }
  // Runs after all that was posted before.
  void finish() {
    for (int i = 0; i < 4; ++i)
      ASSERT_TRUE(await(disk_.call(Lane(), []() -> Result<void> { return {}; })));
  }
  std::string upload(const std::string& name, const std::string& text) {
    write_file(path(name), text);
    EXPECT_EQ(chmod(path(name).c_str(), 0400), 0);
    return path(name);
  }

  RunDirs dirs_{root_, disk_, log_};
};

TEST_F(RunDirsTest, ARunHasItsOwnPlacesThatNoOtherUserSees) {
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

TEST_F(RunDirsTest, ADirectoryIsMadeAheadWhenARunHasEnded) {
  const auto entries = [this](const std::string& name) {
    return std::distance(std::filesystem::directory_iterator(path(name)), {});
  };
  ASSERT_TRUE(make("first"));
  EXPECT_FALSE(exists(path("spare"))) << "a gateway without runs has none";
  dirs_.remove("first");
  finish();
  EXPECT_EQ(entries("spare"), 1);
  EXPECT_EQ(entries("runs"), 0);
  const auto made = make("second");
  ASSERT_TRUE(made) << made.error().detail;
  EXPECT_EQ(entries("spare"), 0) << "the run has it";
  for (const std::string& place : {path("runs/second"), made->work, made->temp, made->home}) {
    EXPECT_EQ(mode_of(place), 0700u) << place;
  }
  EXPECT_EQ(entries("runs/second"), 3);
}

TEST_F(RunDirsTest, NotMoreThanSomeAreMadeAheadAndAStartRemovesThem) {
  for (std::size_t i = 0; i < kSpareRunDirsMax + 3; ++i) ASSERT_TRUE(make(std::to_string(i)));
  for (std::size_t i = 0; i < kSpareRunDirsMax + 3; ++i) dirs_.remove(std::to_string(i));
  finish();
  const std::filesystem::directory_iterator spares(path("spare"));
  EXPECT_EQ(std::distance(spares, {}), static_cast<std::ptrdiff_t>(kSpareRunDirsMax));
  RunDirs next(root_, disk_, log_);
  EXPECT_EQ(await(next.clear()), 0) << "they are nothing that an earlier life has left";
  EXPECT_TRUE(std::filesystem::is_empty(path("spare")));
}

TEST_F(RunDirsTest, ARunDoesWithoutADirectoryThatWasRemovedByAnotherProgram) {
  ASSERT_TRUE(make("first"));
  dirs_.remove("first");
  finish();
  std::filesystem::remove_all(path("spare"));
  const auto made = make("second");
  ASSERT_TRUE(made) << made.error().detail;
  EXPECT_TRUE(exists(made->work) && exists(made->temp));
}

TEST_F(RunDirsTest, ASystemPromptIsInAFileThatGoesWithTheRun) {
  const std::string prompt(300'000, 's');
  const mode_t before = umask(0);
  const auto made = await(dirs_.make("r", {.attachments = {}, .system_prompt = prompt}));
  umask(before);
  ASSERT_TRUE(made) << made.error().detail;
  EXPECT_EQ(made->system_file, made->temp + "/system-prompt.txt");
  EXPECT_EQ(read_file(made->system_file), prompt);
  EXPECT_EQ(mode_of(made->system_file), 0600u);
  dirs_.remove("r");
  finish();
  EXPECT_FALSE(exists(path("runs/r")));
  EXPECT_EQ(make("other")->system_file, "") << "a run without one has no such file";
}

// The io thread only asks: while the disk is at other work, nothing is written.
TEST_F(RunDirsTest, ASystemPromptIsWrittenByTheDisksThread) {
  std::promise<void> let_go;
  disk_.post(Lane(), [held = let_go.get_future().share()] { held.wait(); });
  std::optional<Result<RunDir>> made;
  boost::asio::co_spawn(
      io_, dirs_.make("r", {.attachments = {}, .system_prompt = "be brief"}),
      [&](const std::exception_ptr&, Result<RunDir> dir) { made = std::move(dir); });
  io_.poll();
  io_.restart();
  EXPECT_FALSE(made);
  EXPECT_FALSE(exists(path("runs/r")));
  let_go.set_value();
  finish();
  ASSERT_TRUE(made && *made);
  EXPECT_EQ(read_file((*made)->system_file), "be brief");
}

TEST_F(RunDirsTest, AttachmentsAreCopiesUnderNamesOfOurs) {
  const std::string first = upload("u1", "one");
  const std::string second = upload("u2", "two");
  const auto made = make("r", {{first, ".txt"}, {second, ""}, {first, ".CSV9"}});
  ASSERT_TRUE(made) << made.error().detail;
  EXPECT_EQ(made->attachments,
            (std::vector<std::string>{"attachment-1.txt", "attachment-2", "attachment-3.CSV9"}));
  EXPECT_EQ(read_file(made->work + "/attachment-1.txt"), "one");
  EXPECT_EQ(read_file(made->work + "/attachment-2"), "two");
  EXPECT_NE(status_of(made->work + "/attachment-1.txt").st_ino, status_of(first).st_ino);
  EXPECT_EQ(status_of(first).st_nlink, 1u);
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

TEST_F(RunDirsTest, AnUploadOnAnotherFileSystemIsCopied) {
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

TEST_F(RunDirsTest, AnAgentThatSetsOutToCannotChangeAnUpload) {
  const std::string file = upload("u1", "one");
  const auto made = make("r", {{file, ".txt"}});
  ASSERT_TRUE(made);
  const std::string attached = made->work + "/attachment-1.txt";
  ASSERT_EQ(chmod(attached.c_str(), 0600), 0);
  write_file(attached, "changed");
  EXPECT_EQ(read_file(file), "one");
  EXPECT_EQ(mode_of(file), 0400u);
}

// One that takes several steps, beside small ones.
TEST_F(RunDirsTest, LargeAttachmentsAreWhole) {
  std::string text;
  while (text.size() < 2 * kAttachmentStepBytesMax + 12'345) text += std::to_string(text.size());
  const std::string large = upload("u1", text);
  const std::string small = upload("u2", "two");
  const auto made = make("r", {{small, ""}, {large, ".txt"}, {small, ""}, {upload("u3", ""), ""}});
  ASSERT_TRUE(made) << made.error().detail;
  EXPECT_TRUE(read_file(made->work + "/attachment-2.txt") == text);
  EXPECT_EQ(read_file(made->work + "/attachment-3"), "two");
  EXPECT_EQ(read_file(made->work + "/attachment-4"), "");
}

TEST_F(RunDirsTest, AnErrorAfterSomeStepsLeavesNothingBehind) {
  const std::string large = upload("u1", std::string(kAttachmentStepBytesMax + 1, 'x'));
  const auto gone = make("r", {{large, ".txt"}, {path("never-there"), ".txt"}});
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, "file_not_found");
  EXPECT_TRUE(names_in(path("runs")).empty());
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
  EXPECT_EQ(names_in(path("runs/r")), (std::set<std::string>{"home", "tmp", "work"}));
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
