#include "storage/work/upload_files.h"

#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <limits>

#include "storage/disk/workspace_fixture.h"
#include "storage/work/incoming_file.h"

namespace clawdforge {
namespace {

class UploadFilesTest : public WorkspaceTest {
 protected:
  std::unique_ptr<IncomingFile> begin() {
    auto begun = await(files_.begin());
    EXPECT_TRUE(begun) << begun.error().detail;
    return begun ? std::move(*begun) : nullptr;
  }
  std::set<std::string> names() {
    const auto listed = await(files_.names());
    EXPECT_TRUE(listed);
    return {listed->begin(), listed->end()};
  }
  void keep(const std::string& name, const std::string& text) {
    const auto file = begin();
    ASSERT_TRUE(await(file->append(text)));
    ASSERT_TRUE(await(file->keep(sha256(name))));
  }
  // Runs after all that was posted before.
  void finish() {
    ASSERT_TRUE(await(disk_.call(Lane(), []() -> Result<void> { return {}; })));
  }

  UploadFiles files_{root_, disk_};
};

TEST_F(UploadFilesTest, AFileArrivesInPiecesAndStaysWhenItIsKept) {
  std::string whole;
  {
    const auto file = begin();
    for (int i = 0; i < 40; ++i) {
      const std::string piece(300'000 + i, static_cast<char>('a' + i % 26));
      whole += piece;
      ASSERT_TRUE(await(file->append(piece)));
      EXPECT_EQ(file->size(), static_cast<std::int64_t>(whole.size()));
    }
    EXPECT_TRUE(names().empty()) << "it has no name while it is arriving";
    ASSERT_TRUE(await(file->keep(sha256("token"))));
  }
  finish();
  EXPECT_EQ(names(), std::set{to_hex(sha256("token"))});
  EXPECT_EQ(files_.path_of(sha256("token")), root_ + "/uploads/" + to_hex(sha256("token")));
  EXPECT_TRUE(read_file(files_.path_of(sha256("token"))) == whole);
  EXPECT_EQ(mode_of(files_.path_of(sha256("token"))), 0400u);
  EXPECT_EQ(mode_of(path("uploads")), 0700u);
}

TEST_F(UploadFilesTest, AnEmptyFileIsAFile) {
  keep("token", "");
  EXPECT_EQ(status_of(files_.path_of(sha256("token"))).st_size, 0);
}

TEST_F(UploadFilesTest, DroppingItDropsTheFile) {
  const auto count = [] { return names_in("/proc/self/fd").size(); };
  finish();
  const std::size_t before = count();
  {
    const auto file = begin();
    ASSERT_TRUE(await(file->append("some")));
    EXPECT_GT(count(), before);
  }
  finish();
  EXPECT_TRUE(names().empty());
  EXPECT_EQ(count(), before);
}

TEST_F(UploadFilesTest, AProcessThatCannotBeTracedKeepsFilesToo) {
  const auto file = begin();
  ASSERT_TRUE(await(file->append("text")));
  ASSERT_EQ(prctl(PR_SET_DUMPABLE, 0), 0);
  const auto kept = await(file->keep(sha256("token")));
  ASSERT_EQ(prctl(PR_SET_DUMPABLE, 1), 0);
  EXPECT_TRUE(kept) << kept.error().detail;
}

TEST_F(UploadFilesTest, ATakenNameIsNotOverwritten) {
  keep("token", "first");
  const auto file = begin();
  ASSERT_TRUE(await(file->append("second")));
  EXPECT_FALSE(await(file->keep(sha256("token"))));
  EXPECT_EQ(read_file(files_.path_of(sha256("token"))), "first");
}

TEST_F(UploadFilesTest, AFileThatIsTooLargeForItsLimitIsAFullDisk) {
  signal(SIGXFSZ, SIG_IGN);
  const auto file = begin();
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{100'000, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto appended = await(file->append(std::string(200'000, 'x')));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  ASSERT_FALSE(appended);
  EXPECT_EQ(appended.error().kind, Errc::unavailable);
  EXPECT_EQ(appended.error().code, "disk_full");
  EXPECT_EQ(file->size(), 0);
  EXPECT_FALSE(await(file->keep(sha256("token")))) << "half a file is none";
  EXPECT_TRUE(names().empty());
}

TEST_F(UploadFilesTest, AFullDiskLeavesNothingBehindAndHeals) {
  if (mount("none", root_.c_str(), "tmpfs", 0, "size=1m") != 0) {
    GTEST_SKIP() << "no file system can be mounted here";
  }
  {
    const auto file = begin();
    const auto first = await(file->append(std::string(600'000, 'x')));
    const auto second = await(file->append(std::string(600'000, 'x')));
    EXPECT_TRUE(first);
    EXPECT_EQ(second ? "" : second.error().code, "disk_full");
  }
  finish();
  EXPECT_TRUE(names().empty());
  keep("token", std::string(600'000, 'x'));
  EXPECT_EQ(names().size(), 1u);
  EXPECT_EQ(umount2(root_.c_str(), MNT_DETACH), 0);
}

TEST_F(UploadFilesTest, TheLastOfTheDiskIsNotForUploads) {
  UploadFiles modest(root_, disk_, 1);
  EXPECT_TRUE(await(modest.begin()));
  UploadFiles greedy(root_, disk_, std::numeric_limits<std::int64_t>::max());
  const auto refused = await(greedy.begin());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Errc::unavailable);
  EXPECT_EQ(refused.error().code, "disk_low");
  EXPECT_GT(refused.error().retry_after.count(), 0);
}

TEST_F(UploadFilesTest, AnUploadEndsWhenTheDiskComesToItsFloorMeanwhile) {
  if (mount("none", root_.c_str(), "tmpfs", 0, "size=2m") != 0) {
    GTEST_SKIP() << "no file system can be mounted here";
  }
  {
    UploadFiles files(root_, disk_, 1'000'000);
    auto file = std::move(*await(files.begin()));
    EXPECT_TRUE(await(file->append(std::string(1'500'000, 'x'))));
    const auto refused = await(file->append("more"));
    EXPECT_EQ(refused ? "" : refused.error().code, "disk_low");
    EXPECT_FALSE(await(file->keep(sha256("token"))));
  }
  finish();
  EXPECT_TRUE(names().empty());
  EXPECT_EQ(umount2(root_.c_str(), MNT_DETACH), 0);
}

TEST_F(UploadFilesTest, WhereFilesNeedANameTheyHaveOneThatGoes) {
  ASSERT_TRUE(names().empty());
  const auto open_uploads = [this] {
    return Descriptor(open(path("uploads").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  };
  {
    auto named = begin_named(open_uploads());
    ASSERT_TRUE(named);
    IncomingFile kept(std::move(*named), Lane(), disk_);
    auto second = begin_named(open_uploads());
    ASSERT_TRUE(second);
    const IncomingFile dropped(std::move(*second), Lane(), disk_);
    EXPECT_EQ(names().size(), 2u);
    for (const std::string& name : names()) EXPECT_TRUE(name.starts_with(".arriving-")) << name;
    ASSERT_TRUE(await(kept.append("text")));
    ASSERT_TRUE(await(kept.keep(sha256("token"))));
  }
  finish();
  EXPECT_EQ(names(), std::set{to_hex(sha256("token"))});
  EXPECT_EQ(read_file(files_.path_of(sha256("token"))), "text");
  EXPECT_EQ(mode_of(files_.path_of(sha256("token"))), 0400u);
}

TEST_F(UploadFilesTest, FilesAreRemovedByDigestAndByName) {
  for (const char* name : {"a", "b", "c", "d"}) keep(name, name);
  files_.remove({sha256("a"), sha256("never there")});
  EXPECT_TRUE(await(files_.remove_named({to_hex(sha256("b")), "", ".", "..", "../uploads"})));
  write_file(path("outside"), "text");
  EXPECT_TRUE(await(files_.remove_named({"../outside"})));
  ASSERT_EQ(::mkdir(path("uploads/directory").c_str(), 0700), 0);
  EXPECT_FALSE(await(files_.remove_named({"directory"}))) << "it says so";
  ASSERT_EQ(::rmdir(path("uploads/directory").c_str()), 0);
  finish();
  EXPECT_EQ(names(), (std::set{to_hex(sha256("c")), to_hex(sha256("d"))}));
  EXPECT_TRUE(exists(path("outside")));

  const auto removal = await(files_.remove_and_tell({sha256("c"), sha256("a")}));
  ASSERT_TRUE(removal);
  EXPECT_EQ(removal->gone, (std::vector{sha256("c"), sha256("a")})) << "gone before is gone too";
  EXPECT_EQ(removal->why_not, "");
  EXPECT_EQ(names(), std::set{to_hex(sha256("d"))});
}

TEST_F(UploadFilesTest, SaysWhichFilesCouldNotBeRemoved) {
  keep("a", "text");
  std::filesystem::create_directory(files_.path_of(sha256("b")));  // no file, whatever its name
  const auto removal = await(files_.remove_and_tell({sha256("b"), sha256("a")}));
  ASSERT_TRUE(removal);
  EXPECT_EQ(removal->gone, std::vector{sha256("a")});
  EXPECT_FALSE(removal->why_not.empty());
}

TEST_F(UploadFilesTest, SaysWhenTheWorkspaceCannotBeUsed) {
  write_file(path("uploads"), "a file in its place");
  const auto begun = await(files_.begin());
  ASSERT_FALSE(begun);
  EXPECT_EQ(begun.error().kind, Errc::unavailable);
  EXPECT_EQ(begun.error().code, "workspace_unavailable");
  EXPECT_FALSE(await(files_.names()));
}

}  // namespace
}  // namespace clawdforge
