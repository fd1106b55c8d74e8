#include "storage/work/session_dirs.h"

#include <boost/asio/co_spawn.hpp>

#include "storage/disk/tree.h"
#include "storage/disk/workspace_fixture.h"

namespace clawdforge {
namespace {

class SessionDirsTest : public WorkspaceTest {
 protected:
  std::string upload(const std::string& name, const std::string& text) {
    write_file(path(name), text);
    EXPECT_EQ(chmod(path(name).c_str(), 0400), 0);
    return path(name);
  }
  static void fill(const std::string& directory, std::size_t files) {
    std::filesystem::create_directories(directory);
    for (std::size_t i = 0; i < files; ++i) {
      write_file(directory + "/" + std::to_string(i), "");
    }
  }
  // A job of another app: says whether this is still there when it is done.
  Async<bool> other_job(const std::string& name) {
    return disk_.call(Lane(), [path = path(name)]() -> Result<bool> { return exists(path); });
  }
  // After all that was posted before.
  void finish() {
    for (int i = 0; i < 8; ++i)
      ASSERT_TRUE(await(disk_.call(Lane(), []() -> Result<void> { return {}; })));
  }

  SessionDirs dirs_{root_, disk_, log_};
};

TEST_F(SessionDirsTest, ASessionHasItsOwnPlacesThatNoOtherUserSees) {
  const mode_t before = umask(0);
  const auto made = await(dirs_.make("0190-a"));
  umask(before);
  ASSERT_TRUE(made) << made.error().detail;
  EXPECT_EQ(made->work, root_ + "/sessions/0190-a/work");
  EXPECT_EQ(made->temp, root_ + "/sessions/0190-a/tmp");
  EXPECT_EQ(dirs_.of("0190-a").work, made->work);
  EXPECT_EQ(dirs_.of("0190-a").temp, made->temp);
  for (const std::string& place :
       {path("sessions"), path("sessions/0190-a"), made->work, made->temp}) {
    EXPECT_EQ(mode_of(place), 0700u) << place;
  }
}

TEST_F(SessionDirsTest, MakingItAgainKeepsWhatIsThereAndMakesWhatIsNot) {
  const auto first = await(dirs_.make("s"));
  ASSERT_TRUE(first);
  write_file(first->work + "/file", "text");
  ASSERT_EQ(rmdir(first->temp.c_str()), 0);
  const auto second = await(dirs_.make("s"));
  ASSERT_TRUE(second) << second.error().detail;
  EXPECT_EQ(read_file(second->work + "/file"), "text");
  EXPECT_TRUE(exists(second->temp));
}

TEST_F(SessionDirsTest, ALinkInThePlaceOfADirectoryIsNotUsed) {
  const auto made = await(dirs_.make("s"));
  ASSERT_TRUE(made);
  ASSERT_EQ(rmdir(made->work.c_str()), 0);
  std::filesystem::create_directory(path("outside"));
  std::filesystem::create_symlink(path("outside"), made->work);
  EXPECT_EQ(await(dirs_.make("s")).error().code, "workspace_unavailable");
  const std::string file = upload("u1", "one");
  EXPECT_EQ(await(dirs_.attach("s", 1, {{file, ".txt"}})).error().code, "workspace_unavailable");
  EXPECT_TRUE(names_in(path("outside")).empty());

  std::filesystem::create_symlink(path("outside"), path("sessions/t"));
  EXPECT_EQ(await(dirs_.make("t")).error().code, "workspace_unavailable");
  EXPECT_TRUE(names_in(path("outside")).empty());
}

TEST_F(SessionDirsTest, FilesOfTheGatewayReplaceWhatTheAgentPutInTheirPlace) {
  const auto made = await(dirs_.make("s", {}, {{"rules.toml", "deny"}}));
  ASSERT_TRUE(made);
  EXPECT_EQ(read_file(made->temp + "/rules.toml"), "deny");
  std::filesystem::remove(made->temp + "/rules.toml");
  write_file(path("outside.txt"), "mine");
  std::filesystem::create_symlink(path("outside.txt"), made->temp + "/rules.toml");
  ASSERT_TRUE(await(dirs_.make("s", {}, {{"rules.toml", "deny"}})));
  EXPECT_EQ(read_file(made->temp + "/rules.toml"), "deny");
  EXPECT_EQ(read_file(path("outside.txt")), "mine");

  std::filesystem::remove(made->temp + "/rules.toml");
  std::filesystem::create_directory(made->temp + "/rules.toml");
  EXPECT_EQ(await(dirs_.make("s", {}, {{"rules.toml", "deny"}})).error().code,
            "workspace_unavailable");
}

TEST_F(SessionDirsTest, AttachmentsAreCopiesUnderNamesOfTheirTurn) {
  const auto made = await(dirs_.make("s"));
  ASSERT_TRUE(made);
  const std::string first = upload("u1", "one");
  const std::string second = upload("u2", "two");
  const auto attached = await(dirs_.attach("s", 3, {{first, ".txt"}, {second, "/../x"}}));
  ASSERT_TRUE(attached) << attached.error().detail;
  EXPECT_EQ(*attached, (std::vector<std::string>{made->work + "/attachment-3-1.txt",
                                                 made->work + "/attachment-3-2"}));
  EXPECT_EQ(read_file(attached->at(0)), "one");
  EXPECT_EQ(read_file(attached->at(1)), "two");
  EXPECT_NE(status_of(attached->at(0)).st_ino, status_of(first).st_ino);
  EXPECT_EQ(status_of(first).st_nlink, 1u);
  const auto next = await(dirs_.attach("s", 4, {{first, ".txt"}}));
  ASSERT_TRUE(next);
  EXPECT_EQ(next->at(0), made->work + "/attachment-4-1.txt");
  EXPECT_TRUE(await(dirs_.attach("s", 5, {})).value().empty());
  EXPECT_EQ(names_in(made->work).size(), 3u);
}

TEST_F(SessionDirsTest, AttachmentsKeepTheNamesThatTheirAppGaveThem) {
  const auto made = await(dirs_.make("s"));
  ASSERT_TRUE(made);
  const std::string file = upload("u1", "one");
  write_file(made->work + "/notes.txt", "the agent's own");
  const std::vector<Attachment> attachments = {{file, ".txt", "notes.txt"},
                                               {file, ".txt", "notes.txt"},
                                               {file, ".txt", "../evil.txt"},
                                               {file, "", "Größe"}};
  EXPECT_EQ(SessionDirs::attachment_names(2, attachments),
            (std::vector<std::string>{"notes.txt", "notes-2.txt", "attachment-2-3.txt", "Größe"}));
  const auto attached = await(dirs_.attach("s", 2, attachments));
  ASSERT_TRUE(attached) << attached.error().detail;
  EXPECT_EQ(*attached,
            (std::vector<std::string>{made->work + "/notes-2.txt", made->work + "/notes-2-2.txt",
                                      made->work + "/attachment-2-3.txt", made->work + "/Größe"}));
  EXPECT_EQ(read_file(made->work + "/notes.txt"), "the agent's own");
}

TEST(SafeFileName, LeadsNowhereElseAndChangesNoLine) {
  const std::pair<std::string, std::string> kCases[] = {
      {"notes.txt", "notes.txt"},
      {"Q3 report (final).pdf", "Q3 report (final).pdf"},
      {"/etc/passwd", "passwd"},
      {"C:\\Users\\me\\a.doc", "a.doc"},
      {"..", ""},
      {"a/", ""},
      {"", ""},
      {".mcp.json", "_mcp.json"},
      {"-rf", "_rf"},
      {"a\nb\x7f.txt", "a_b_.txt"},
      {"$(reboot);`x`", "_(reboot)__x_"},
      {"\xe2\x80\xaegpj.exe", "_gpj.exe"},
      {"a\xc2\x85z", "a_z"},
      {"Größe.txt", "Größe.txt"},
      {"\xff.txt", "\xef\xbf\xbd.txt"},
      {"trailing. . ", "trailing"},
      {std::string(300, 'x') + ".txt", std::string(96, 'x') + ".txt"},
      {"a." + std::string(300, 'x'), "a." + std::string(98, 'x')}};
  for (const auto& [foreign, safe] : kCases) {
    EXPECT_EQ(safe_file_name(foreign), safe);
    EXPECT_EQ(safe_file_name(safe), safe);
  }
}

TEST_F(SessionDirsTest, AnAgentCannotTakeTheNamesOfAttachments) {
  const auto made = await(dirs_.make("s"));
  ASSERT_TRUE(made);
  const std::string file = upload("u1", "one");
  write_file(path("outside"), "kept");
  write_file(made->work + "/attachment-1-1.txt", "taken");
  std::filesystem::create_symlink(path("outside"), made->work + "/attachment-1-2.txt");
  std::filesystem::create_directories(made->work + "/attachment-1-3.txt/a/b");
  const auto attached =
      await(dirs_.attach("s", 1, {{file, ".txt"}, {file, ".txt"}, {file, ".txt"}}));
  ASSERT_TRUE(attached) << attached.error().detail;
  for (const std::string& name : *attached) EXPECT_EQ(read_file(name), "one") << name;
  EXPECT_EQ(read_file(path("outside")), "kept");
}

// Removing it could take minutes, and every app waits for the one thread of the disk.
TEST_F(SessionDirsTest, WhatHasTheNameOfAnAttachmentIsNotRemovedOnTheWay) {
  const auto made = await(dirs_.make("s"));
  ASSERT_TRUE(made);
  const std::string file = upload("u1", "one");
  fill(made->work + "/attachment-1-1.txt", 20);
  const auto attached = await(dirs_.attach("s", 1, {{file, ".txt"}}));
  ASSERT_TRUE(attached) << attached.error().detail;
  EXPECT_EQ(read_file(attached->at(0)), "one");
  EXPECT_TRUE(attached->at(0).starts_with(made->work + "/attachment-1-1-"));
  EXPECT_TRUE(attached->at(0).ends_with(".txt"));
  EXPECT_EQ(names_in(made->work + "/attachment-1-1.txt").size(), 20u);
}

TEST_F(SessionDirsTest, AnErrorAfterSomeStepsLeavesNothingOfTheTurn) {
  const auto made = await(dirs_.make("s"));
  ASSERT_TRUE(made);
  const std::string large = upload("u1", std::string(kAttachmentStepBytesMax + 1, 'x'));
  EXPECT_FALSE(await(dirs_.attach("s", 1, {{large, ".txt"}, {path("never-there"), ".txt"}})));
  EXPECT_TRUE(names_in(made->work).empty());
  const auto attached = await(dirs_.attach("s", 2, {{large, ".txt"}}));
  ASSERT_TRUE(attached);
  EXPECT_EQ(read_file(attached->at(0)).size(), kAttachmentStepBytesMax + 1);
}

TEST_F(SessionDirsTest, AnErrorLeavesNothingOfTheTurn) {
  const auto made = await(dirs_.make("s"));
  ASSERT_TRUE(made);
  const std::string file = upload("u1", "one");
  ASSERT_TRUE(await(dirs_.attach("s", 1, {{file, ".txt"}})));
  const auto gone = await(dirs_.attach("s", 2, {{file, ".txt"}, {path("never-there"), ".txt"}}));
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().kind, Errc::not_found);
  EXPECT_EQ(gone.error().code, "file_not_found");
  EXPECT_EQ(names_in(made->work), std::set<std::string>{"attachment-1-1.txt"});
  EXPECT_EQ(await(dirs_.attach("never-made", 1, {{file, ""}})).error().code,
            "workspace_unavailable");
}

TEST_F(SessionDirsTest, AnUploadOnAnotherFileSystemIsCopied) {
  std::string elsewhere = "/dev/shm/workspace-XXXXXX";
  const Descriptor other(mkstemp(elsewhere.data()));
  if (!other.is_open() || status_of(elsewhere).st_dev == status_of(root_).st_dev) {
    GTEST_SKIP() << "there is no second file system";
  }
  write_file(elsewhere, "text");
  ASSERT_TRUE(await(dirs_.make("s")));
  const auto attached = await(dirs_.attach("s", 1, {{elsewhere, ".txt"}}));
  EXPECT_EQ(unlink(elsewhere.c_str()), 0);
  ASSERT_TRUE(attached) << attached.error().detail;
  EXPECT_EQ(read_file(attached->at(0)), "text");
  EXPECT_EQ(mode_of(attached->at(0)), 0400u);
}

TEST_F(SessionDirsTest, AnIdThatIsAPathLeadsNowhere) {
  ASSERT_TRUE(await(dirs_.make("s")));
  write_file(path("sessions/s/work/file"), "text");
  const std::string file = upload("u1", "one");
  for (const std::string id : {"", ".", "..", "../x", "s/work", "a b", "\n"}) {
    EXPECT_EQ(await(dirs_.make(id)).error().code, "workspace_unavailable") << id;
    EXPECT_EQ(await(dirs_.attach(id, 1, {{file, ""}})).error().code, "workspace_unavailable");
    EXPECT_EQ(await(dirs_.open(id, "file")).error().code, "file_not_found");
    EXPECT_TRUE(await(dirs_.list(id)).value().files.empty());
    EXPECT_EQ(dirs_.of(id).work, "");
    dirs_.remove(id);
  }
  finish();
  EXPECT_EQ(read_file(path("sessions/s/work/file")), "text");
}

TEST_F(SessionDirsTest, ASessionGoesWithAllThatIsInIt) {
  const auto made = await(dirs_.make("s"));
  ASSERT_TRUE(made);
  ASSERT_TRUE(await(dirs_.make("other")));
  fill_with_a_closed_tree(made->work);
  dirs_.remove("s");
  dirs_.remove("never-there");
  finish();
  EXPECT_EQ(names_in(path("sessions")), std::set<std::string>{"other"});
}

TEST_F(SessionDirsTest, AStartKeepsTheSessionsThatTheLedgerKnows) {
  ASSERT_TRUE(await(dirs_.keep_only({SessionId("s1")})));
  EXPECT_EQ(mode_of(path("sessions")), 0700u);
  for (const char* id : {"s1", "s2", "s3"}) ASSERT_TRUE(await(dirs_.make(id)));
  write_file(path("sessions/s1/work/file"), "text");
  write_file(path("sessions/s2/work/file"), "text");
  write_file(path("sessions/stray"), "text");
  std::filesystem::create_symlink(root_, path("sessions/link"));
  write_file(path("kept"), "text");
  EXPECT_EQ(await(dirs_.keep_only({SessionId("s1"), SessionId("s3"), SessionId("never-there"),
                                   SessionId("../kept")}))
                .value(),
            3);
  EXPECT_EQ(names_in(path("sessions")), (std::set<std::string>{"s1", "s3"}));
  EXPECT_EQ(read_file(path("sessions/s1/work/file")), "text");
  EXPECT_EQ(read_file(path("kept")), "text");
}

// More than one step removes.
constexpr std::size_t kManyFiles = 2 * kTreeStepEntriesMax + 1;

TEST_F(SessionDirsTest, AStartMovesLeftoversAwayBetweenOtherJobs) {
  ASSERT_TRUE(await(dirs_.keep_only({})));
  fill(path("sessions/left/work"), kManyFiles);
  const auto note = [](auto& answer) {
    return [&answer](std::exception_ptr, auto result) { answer = result.value(); };
  };
  std::int64_t removed = 0;
  bool is_there = false;
  boost::asio::co_spawn(io_, dirs_.keep_only({}), note(removed));
  boost::asio::co_spawn(io_, other_job("sessions/left/work"), note(is_there));
  io_.restart();
  io_.run();
  EXPECT_TRUE(is_there) << "another job was done between two steps";
  EXPECT_EQ(removed, 1);
  EXPECT_TRUE(names_in(path("sessions")).empty());
}

TEST_F(SessionDirsTest, WhatCouldNotBeRemovedIsRemovedInStepsLater) {
  ASSERT_TRUE(await(dirs_.make("s")));
  fill(path("sessions/s/work/left"), kManyFiles);
  std::filesystem::rename(path("sessions"), path("aside"));
  write_file(path("sessions"), "a file in its place");
  dirs_.remove("s");
  finish();
  EXPECT_EQ(dirs_.unremoved(), 1u);
  std::filesystem::remove(path("sessions"));
  std::filesystem::rename(path("aside"), path("sessions"));
  dirs_.remove_again();
  EXPECT_TRUE(await(other_job("sessions/s")).value()) << "it was done between two steps";
  finish();
  EXPECT_EQ(dirs_.unremoved(), 0u);
  EXPECT_TRUE(names_in(path("sessions")).empty());
}

TEST_F(SessionDirsTest, SaysWhenTheWorkspaceCannotBeUsed) {
  write_file(path("sessions"), "a file in its place");
  for (const auto& failed : {await(dirs_.make("s")).error(), await(dirs_.keep_only({})).error()}) {
    EXPECT_EQ(failed.kind, Errc::unavailable);
    EXPECT_EQ(failed.code, "workspace_unavailable");
    EXPECT_EQ(failed.message.find(root_), std::string::npos);
    EXPECT_FALSE(failed.detail.empty());
  }
}

}  // namespace
}  // namespace clawdforge
