#include "process/host/program_host.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>

#include "base/descriptor.h"
#include "process/host/host_wire.h"

namespace clawdforge {
namespace {

constexpr int kPatienceMs = 20'000;

// The host in a process of its own, as the gateway has it.
class ProgramHostTest : public testing::Test {
 protected:
  void SetUp() override {
    std::signal(SIGPIPE, SIG_IGN);
    std::array<int, 2> in{};
    std::array<int, 2> out{};
    ASSERT_EQ(::pipe(in.data()), 0);
    ASSERT_EQ(::pipe(out.data()), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(in[0], STDIN_FILENO);
      ::dup2(out[1], STDOUT_FILENO);
      for (const int end : {in[0], in[1], out[0], out[1]}) ::close(end);
      ::_exit(host_programs());
    }
    ::close(in[0]);
    ::close(out[1]);
    input_ = Descriptor(in[1]);
    output_ = Descriptor(out[0]);
  }
  void TearDown() override {
    input_.close();
    EXPECT_EQ(exit_code(), 0);
  }

  int exit_code() {
    if (pid_ == 0) return 0;
    int status = 0;
    EXPECT_EQ(::waitpid(pid_, &status, 0), pid_);
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  void order(std::uint32_t operation, HostOrder order) {
    const std::string frame = host_frame(HostFrameKind::start, operation, encode_order(order));
    std::string_view rest = frame;
    while (!rest.empty()) {
      const ssize_t count = ::write(input_.number(), rest.data(), rest.size());
      ASSERT_GT(count, 0);
      rest.remove_prefix(static_cast<std::size_t>(count));
    }
  }
  void shell(std::uint32_t operation, const std::string& script, std::string input = "") {
    order(operation, {.argv = {"sh", "-c", script},
                      .environment = {},
                      .input = std::move(input),
                      .file = {},
                      .file_content = {}});
  }

  struct Outcome {
    std::string output;
    std::optional<ExitStatus> status;
  };
  // Reads until `operation` has ended, and what else comes meanwhile.
  const Outcome& outcome(std::uint32_t operation) {
    while (!outcomes_[operation].status) {
      pollfd news{output_.number(), POLLIN, 0};
      std::array<char, 65536> piece{};
      if (::poll(&news, 1, kPatienceMs) <= 0) break;
      const ssize_t count = ::read(output_.number(), piece.data(), piece.size());
      if (count <= 0) break;
      reader_.feed(std::string_view(piece.data(), static_cast<std::size_t>(count)));
      while (const auto frame = reader_.next()) {
        Outcome& found = outcomes_[frame->operation];
        EXPECT_FALSE(found.status) << "nothing follows an end";
        if (frame->kind == HostFrameKind::output) found.output += frame->bytes;
        if (frame->kind == HostFrameKind::ended) found.status = decode_end(frame->bytes);
      }
    }
    EXPECT_TRUE(outcomes_[operation].status) << "it did not end";
    return outcomes_[operation];
  }

  pid_t pid_ = 0;
  Descriptor input_;
  Descriptor output_;
  HostFrameReader reader_;
  std::map<std::uint32_t, Outcome> outcomes_;
};

TEST_F(ProgramHostTest, RunsAProgramAndTellsItsEnd) {
  shell(7, "cat; exit 5", "what it reads");
  EXPECT_EQ(outcome(7).output, "what it reads");
  EXPECT_EQ(outcome(7).status, ExitStatus(Exited{5}));
  shell(8, "kill -9 $$");
  EXPECT_EQ(outcome(8).status, ExitStatus(Signaled{9}));
}

TEST_F(ProgramHostTest, SaysThatAProgramIsNotThere) {
  order(1, {.argv = {"/nonexistent/program"},
            .environment = {},
            .input = "x",
            .file = {},
            .file_content = {}});
  EXPECT_EQ(outcome(1).status, ExitStatus(NotStarted{ENOENT}));
  shell(2, "exit 0");
  EXPECT_EQ(outcome(2).status, ExitStatus(Exited{0}));
}

TEST_F(ProgramHostTest, RunsTwoAtOnce) {
  const std::string pattern = std::filesystem::temp_directory_path() / "program-host-XXXXXX";
  std::string path = pattern;
  ASSERT_NE(mkdtemp(path.data()), nullptr);
  shell(1, "while [ ! -e " + path + "/go ]; do sleep 0.01; done; echo first");
  shell(2, "touch " + path + "/go; echo second");
  EXPECT_EQ(outcome(1).output, "first\n");
  EXPECT_EQ(outcome(2).output, "second\n");
  std::filesystem::remove_all(path);
}

TEST_F(ProgramHostTest, MuchGoesInAndOutWhole) {
  const std::string much(3'000'000, 'x');
  shell(1, "cat", much);
  EXPECT_EQ(outcome(1).output, much);
}

TEST_F(ProgramHostTest, AProgramThatDoesNotReadIsNoTrouble) {
  shell(1, "exit 3", std::string(1'000'000, 'x'));
  EXPECT_EQ(outcome(1).status, ExitStatus(Exited{3}));
}

TEST_F(ProgramHostTest, TheOrdersEnvironmentBeatsItsOwn) {
  order(1, {.argv = {"sh", "-c", "echo $PATH_X $HOME"},
            .environment = {"PATH_X=1", "HOME=/elsewhere"},
            .input = {},
            .file = {},
            .file_content = {}});
  EXPECT_EQ(outcome(1).output, "1 /elsewhere\n");
}

TEST_F(ProgramHostTest, WritesTheFileFirst) {
  const std::string path = std::filesystem::temp_directory_path() /
                           ("program-host-" + std::to_string(::getpid()) + ".json");
  std::filesystem::remove(path);
  order(1, {.argv = {"stat", "-c", "%a %s", path},
            .environment = {},
            .input = {},
            .file = path,
            .file_content = "secret"});
  EXPECT_EQ(outcome(1).output, "600 6\n");
  std::filesystem::remove(path);
  order(2, {.argv = {"true"},
            .environment = {},
            .input = {},
            .file = "/nonexistent/file",
            .file_content = "x"});
  EXPECT_EQ(outcome(2).status, ExitStatus(NotStarted{ENOENT}));
}

TEST_F(ProgramHostTest, DoesNotWaitForWhatHoldsTheOutputOpen) {
  shell(1, "sleep 30 & echo $!; exit 0");
  EXPECT_EQ(outcome(1).status, ExitStatus(Exited{0}));
  ::kill(std::stoi(outcome(1).output), SIGKILL);
}

TEST_F(ProgramHostTest, EndsWithItsInputThoughAProgramRuns) {
  shell(1, "echo $$; exec sleep 30");
  std::string text;
  std::array<char, 4096> piece{};
  while (!text.contains('\n')) {
    const ssize_t count = ::read(output_.number(), piece.data(), piece.size());
    ASSERT_GT(count, 0);
    text.append(piece.data(), static_cast<std::size_t>(count));
  }
  reader_.feed(text);
  const auto frame = reader_.next();
  ASSERT_TRUE(frame);
  input_.close();
  EXPECT_EQ(exit_code(), 0);
  ::kill(std::stoi(frame->bytes), SIGKILL);  // there is no launcher here to do it
}

TEST_F(ProgramHostTest, EndsWhenItIsToldNonsense) {
  ASSERT_GT(::write(input_.number(), "GET / HTTP/1.1\r\n\r\n", 18), 0);
  EXPECT_EQ(exit_code(), 0);
}

}  // namespace
}  // namespace clawdforge
