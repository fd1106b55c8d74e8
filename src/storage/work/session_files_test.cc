// What callers may see of a session's working directory, and all the ways in which an agent
// or a caller could try to see more.
#include <sys/socket.h>
#include <sys/un.h>

#include <atomic>
#include <thread>

#include "storage/disk/workspace_fixture.h"
#include "storage/work/session_dirs.h"

namespace clawdforge {
namespace {

class SessionFilesTest : public WorkspaceTest {
 protected:
  SessionFilesTest() : work_(await(dirs_.make("s")).value().work) {}

  std::string inside(const std::string& name) const { return work_ + "/" + name; }
  std::vector<std::string> listed() {
    std::vector<std::string> paths;
    for (const WorkFile& file : await(dirs_.list("s")).value().files) paths.push_back(file.path);
    return paths;
  }
  // The file's text, or the code of the error.
  std::string fetched(const std::string& path, std::size_t bytes_max = 1'000) {
    auto opened = await(dirs_.open("s", path));
    if (!opened) return std::string(opened.error().code);
    std::string text;
    for (;;) {
      const auto bytes = await((*opened)->read(bytes_max));
      if (!bytes) return std::string(bytes.error().code);
      if (bytes->empty()) return text;
      text += *bytes;
    }
  }
  void make_socket(const std::string& path) {
    const Descriptor door(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    ASSERT_EQ(bind(door.number(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }

  SessionDirs dirs_{root_, disk_, log_};
  std::string work_;
};

constexpr const char* kNone = "file_not_found";

TEST_F(SessionFilesTest, AreListedByPathWithSizeAndTime) {
  std::filesystem::create_directories(inside("b/c"));
  std::filesystem::create_directories(inside("empty"));
  write_file(inside("b/c/deep.txt"), "12345");
  write_file(inside("b.txt"), "");
  write_file(inside(".hidden"), "1");
  write_file(inside("a"), "12");
  const timespec times[2] = {{1'700'000'000, 0}, {1'700'000'001, 999'999'999}};
  ASSERT_EQ(utimensat(AT_FDCWD, inside("a").c_str(), times, 0), 0);
  const auto listing = await(dirs_.list("s")).value();
  EXPECT_FALSE(listing.is_truncated);
  ASSERT_EQ(listing.files.size(), 4u);
  EXPECT_EQ(listing.files[0].path, ".hidden");
  EXPECT_EQ(listing.files[1].path, "a");
  EXPECT_EQ(listing.files[1].size, 2);
  EXPECT_EQ(listing.files[1].modified_at, TimePoint(std::chrono::milliseconds(1'700'000'001'999)));
  EXPECT_EQ(listing.files[2].path, "b.txt");
  EXPECT_EQ(listing.files[3].path, "b/c/deep.txt");
  EXPECT_EQ(listing.files[3].size, 5);
}

TEST_F(SessionFilesTest, ATimeThatCannotBeIsBroughtIntoRange) {
  write_file(inside("late"), "");
  write_file(inside("early"), "");
  const timespec late[2] = {{0, UTIME_OMIT}, {1'000'000'000'000, 0}};
  const timespec early[2] = {{0, UTIME_OMIT}, {-5'000'000'000, 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, inside("late").c_str(), late, 0), 0);
  ASSERT_EQ(utimensat(AT_FDCWD, inside("early").c_str(), early, 0), 0);
  for (const WorkFile& file : await(dirs_.list("s")).value().files) {
    EXPECT_GE(unix_seconds(file.modified_at), 0) << file.path;
    EXPECT_LE(unix_seconds(file.modified_at), 253'402'300'799) << file.path;
  }
}

TEST_F(SessionFilesTest, OnlyRegularFilesAreListedAndNoLinkIsFollowed) {
  std::filesystem::create_directories(path("outside"));
  write_file(path("outside/secret"), "x");
  std::filesystem::create_directories(inside("d"));
  write_file(inside("d/file"), "x");
  std::filesystem::create_symlink(path("outside"), inside("dir-link"));
  std::filesystem::create_symlink("/etc/passwd", inside("file-link"));
  std::filesystem::create_symlink("..", inside("d/up"));
  std::filesystem::create_symlink("d/file", inside("own-link"));
  ASSERT_EQ(mkfifo(inside("fifo").c_str(), 0600), 0);
  make_socket(inside("socket"));
  EXPECT_EQ(listed(), std::vector<std::string>{"d/file"});
}

TEST_F(SessionFilesTest, ASessionWithoutADirectoryHasNone) {
  EXPECT_TRUE(await(dirs_.list("never-made")).value().files.empty());
  EXPECT_EQ(await(dirs_.open("never-made", "a")).error().code, kNone);
  ASSERT_EQ(rmdir(work_.c_str()), 0);
  std::filesystem::create_directory(path("outside"));
  write_file(path("outside/secret"), "x");
  std::filesystem::create_symlink(path("outside"), work_);
  EXPECT_TRUE(listed().empty()) << "a link in the place of the whole directory";
  EXPECT_EQ(fetched("secret"), kNone);
}

TEST_F(SessionFilesTest, OddNamesAreListedAndOpenWhereTheyAreText) {
  const std::vector<std::string> odd = {" ", "-rf", "a\nb", "a\x01", "quo\"te", "ä/ö ü", "%2e%2e"};
  std::filesystem::create_directory(inside("ä"));
  for (const std::string& name : odd) write_file(inside(name), name);
  write_file(inside("not-\xff-text"), "x");
  std::filesystem::create_directory(inside("\xc3"));
  write_file(inside("\xc3/below"), "x");
  EXPECT_EQ(listed(),
            (std::vector<std::string>{" ", "%2e%2e", "-rf", "a\x01", "a\nb", "quo\"te", "ä/ö ü"}));
  for (const std::string& name : odd) EXPECT_EQ(fetched(name), name) << name;
}

TEST_F(SessionFilesTest, AFileIsReadPieceByPiece) {
  std::string text;
  for (int i = 0; i < 10'000; ++i) text += std::to_string(i);
  write_file(inside("file"), text);
  write_file(inside("empty"), "");
  for (const std::size_t bytes_max : {1'000u, 4'096u, 1'000'000u}) {
    EXPECT_EQ(fetched("file", bytes_max), text) << bytes_max;
  }
  EXPECT_EQ(fetched("empty"), "");
  auto opened = await(dirs_.open("s", "file")).value();
  EXPECT_EQ(opened->size(), static_cast<std::int64_t>(text.size()));
  EXPECT_EQ(await(opened->read(7)).value(), text.substr(0, 7));
}

TEST_F(SessionFilesTest, NoMoreIsReadThanWasSaidAlsoWhileTheFileGrows) {
  write_file(inside("log"), "12345");
  auto growing = await(dirs_.open("s", "log")).value();
  write_file(inside("log"), "1234567890");
  EXPECT_EQ(await(growing->read(100)).value(), "12345");
  EXPECT_EQ(await(growing->read(100)).value(), "");
  auto shrinking = await(dirs_.open("s", "log")).value();
  write_file(inside("log"), "123");
  EXPECT_EQ(await(shrinking->read(100)).value(), "123");
  EXPECT_EQ(await(shrinking->read(100)).value(), "");
}

TEST_F(SessionFilesTest, WhatIsOpenStaysReadableWhenItsSessionGoes) {
  write_file(inside("file"), "text");
  auto opened = await(dirs_.open("s", "file")).value();
  dirs_.remove("s");
  ASSERT_TRUE(await(dirs_.list("s")));
  EXPECT_EQ(await(opened->read(100)).value(), "text");
}

TEST_F(SessionFilesTest, NoPathLeadsOut) {
  write_file(path("secret"), "x");
  write_file(path("sessions/s/tmp/secret"), "x");
  write_file(inside("file"), "text");
  std::filesystem::create_directory(inside("d"));
  for (const std::string path :
       {"", "/", "/etc/passwd", "..", "../tmp/secret", "../../../secret", "d/../../tmp/secret",
        "./../tmp/secret", "//etc/passwd", "d/../..", ".", "./", "d", "d/", "file/", "file/x",
        "d/nothing", "\0", "nothing"}) {
    EXPECT_EQ(fetched(path), kNone) << path;
  }
  EXPECT_EQ(fetched(root_ + "/secret"), kNone);
  EXPECT_EQ(fetched(inside("file")), kNone) << "absolute, though inside";
  EXPECT_EQ(fetched(std::string("file\0", 5)), kNone);
  EXPECT_EQ(fetched(std::string("file\0/../x", 10)), kNone);
  EXPECT_EQ(fetched(std::string(5'000, 'a')), kNone);
  EXPECT_EQ(fetched(std::string(300, 'a')), kNone);
  EXPECT_EQ(fetched("d/../file"), "text") << "roundabout, but inside";
}

TEST_F(SessionFilesTest, NoLinkLeadsOut) {
  write_file(path("secret"), "x");
  std::filesystem::create_directories(inside("d"));
  write_file(inside("d/file"), "text");
  const std::vector<std::pair<std::string, std::string>> links = {
      {"/etc/passwd", "absolute"},
      {"../tmp", "sideways"},
      {"..", "up"},
      {"../..", "further-up"},
      {"/proc/self/root", "magic"},
      {"/proc/self/cwd", "cwd"},
      {"/proc/self/fd", "descriptors"},
      {path("secret"), "secret"},
      {"loop-b", "loop-a"},
      {"loop-a", "loop-b"},
      {inside("d/file"), "own-absolute"}};
  for (const auto& [target, name] : links) {
    std::filesystem::create_symlink(target, inside(name));
  }
  write_file(path("sessions/s/tmp/file"), "x");
  for (const char* path :
       {"absolute", "sideways/file", "up/tmp/file", "further-up", "secret", "further-up/s/tmp/file",
        "magic/etc/passwd", "cwd/x", "descriptors/0", "loop-a", "own-absolute"}) {
    EXPECT_EQ(fetched(path), kNone) << path;
  }
  std::filesystem::create_symlink("d/file", inside("own"));
  std::filesystem::create_symlink("../d", inside("d/back"));
  EXPECT_EQ(fetched("own"), "text") << "a link that stays inside is fine";
  EXPECT_EQ(fetched("d/back/file"), "text");
}

TEST_F(SessionFilesTest, OnlyRegularFilesOpenAndNothingElseIsTouched) {
  ASSERT_EQ(mkfifo(inside("fifo").c_str(), 0600), 0);
  make_socket(inside("socket"));
  std::filesystem::create_directory(inside("d"));
  std::filesystem::create_symlink("fifo", inside("link"));
  for (const char* path : {"fifo", "socket", "d", "link"}) EXPECT_EQ(fetched(path), kNone) << path;
  // The pipe's other end was not opened.
  EXPECT_EQ(open(inside("fifo").c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC), -1);
  EXPECT_EQ(errno, ENXIO);
}

TEST_F(SessionFilesTest, WhatMayNotBeReadIsNotThere) {
  if (geteuid() == 0) GTEST_SKIP() << "modes mean nothing to root; shown as an ordinary user";
  std::filesystem::create_directory(inside("d"));
  write_file(inside("d/file"), "x");
  write_file(inside("shut"), "x");
  ASSERT_EQ(chmod(inside("shut").c_str(), 0), 0);
  ASSERT_EQ(chmod(inside("d").c_str(), 0), 0);
  EXPECT_EQ(fetched("shut"), kNone);
  EXPECT_EQ(fetched("d/file"), kNone);
  EXPECT_EQ(listed(), std::vector<std::string>{"shut"});
}

TEST_F(SessionFilesTest, AListingIsBounded) {
  std::filesystem::create_directory(inside("d"));
  write_file(inside("top"), "text");
  const Descriptor directory(open(inside("d").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (int i = 0; i < 20'000; ++i) {  // links, because they are quickly made
    ASSERT_EQ(
        linkat(AT_FDCWD, inside("top").c_str(), directory.number(), std::to_string(i).c_str(), 0),
        0);
  }
  auto listing = await(dirs_.list("s")).value();
  EXPECT_TRUE(listing.is_truncated);
  EXPECT_EQ(listing.files.size(), kListedFilesMax);
  EXPECT_EQ(listing.files.back().path, "top") << "what lies deep is cut first";
  for (int i = 10'000 - 1; i < 20'000; ++i) {
    ASSERT_EQ(unlinkat(directory.number(), std::to_string(i).c_str(), 0), 0);
  }
  listing = await(dirs_.list("s")).value();
  EXPECT_FALSE(listing.is_truncated) << "as many as it may hold, and no more";
  EXPECT_EQ(listing.files.size(), kListedFilesMax);
}

TEST_F(SessionFilesTest, AListingLooksAtNoMoreThanItsLimit) {
  const Descriptor directory(open(work_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_EQ(symlinkat("nowhere", directory.number(), "0"), 0);
  for (std::size_t i = 1; i < kListedEntriesMax; ++i) {
    ASSERT_EQ(linkat(directory.number(), "0", directory.number(), std::to_string(i).c_str(), 0), 0);
  }
  EXPECT_FALSE(await(dirs_.list("s")).value().is_truncated);
  ASSERT_EQ(linkat(directory.number(), "0", directory.number(), "one-more", 0), 0);
  EXPECT_TRUE(await(dirs_.list("s")).value().is_truncated);
}

TEST_F(SessionFilesTest, ADeepTreeIsListedToALimit) {
  Descriptor at(open(work_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (int i = 0; i < 200; ++i) {
    const Descriptor file(openat(at.number(), "f", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    ASSERT_EQ(mkdirat(at.number(), "d", 0700), 0);
    at = Descriptor(openat(at.number(), "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ASSERT_TRUE(at.is_open());
  }
  const auto listing = await(dirs_.list("s")).value();
  EXPECT_TRUE(listing.is_truncated);
  EXPECT_EQ(listing.files.size(), kListedDepthMax + 1);
  std::string deep;
  for (int i = 0; i < 150; ++i) deep += "d/";
  EXPECT_EQ(fetched(deep + "f"), "") << "it opens all the same";
}

TEST_F(SessionFilesTest, PathsThatAreTooLongToAskForAreLeftOut) {
  Descriptor at(open(work_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const std::string step(250, 'd');
  for (int i = 0; i < 20; ++i) {
    const Descriptor file(openat(at.number(), "f", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    ASSERT_EQ(mkdirat(at.number(), step.c_str(), 0700), 0);
    at = Descriptor(openat(at.number(), step.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  const auto listing = await(dirs_.list("s")).value();
  EXPECT_TRUE(listing.is_truncated);
  EXPECT_EQ(listing.files.size(), 17u);
  for (const WorkFile& file : listing.files) EXPECT_EQ(fetched(file.path), "");
}

TEST_F(SessionFilesTest, ADirectoryThatIsSwappedForALinkLeadsNowhere) {
  std::filesystem::create_directory(path("outside"));
  write_file(path("outside/file"), "secret");
  std::filesystem::create_symlink(path("outside"), inside("evil"));
  std::filesystem::create_directory(inside("d"));
  write_file(inside("d/file"), "text");
  std::atomic<bool> is_ending = false;
  std::atomic<int> swaps = 0;
  std::thread agent([&] {
    for (; !is_ending; ++swaps) {
      renameat2(AT_FDCWD, inside("d").c_str(), AT_FDCWD, inside("evil").c_str(), RENAME_EXCHANGE);
    }
  });
  while (swaps < 10) std::this_thread::yield();
  int seen = 0;
  for (int i = 0; i < 20'000 && (i < 500 || seen < 50); ++i) {
    const std::string got = fetched("d/file");
    EXPECT_TRUE(got == "text" || got == kNone) << got;
    seen += got == "text" ? 1 : 0;
    for (const WorkFile& file : await(dirs_.list("s")).value().files) {
      EXPECT_EQ(file.size, 4) << "the file outside has 6 bytes";
    }
  }
  is_ending = true;
  agent.join();
  EXPECT_GE(seen, 50) << "the swapping did not keep the file from being seen";
}

}  // namespace
}  // namespace clawdforge
