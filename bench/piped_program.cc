#include "piped_program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server.h"

namespace clawdforge {
namespace {

constexpr int kReadMsMax = 60'000;
constexpr int kEndMsMax = 20'000;
constexpr std::size_t kPieceBytes = 64 * 1024;

double microseconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_usec);
}

}  // namespace

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

PipedProgram::PipedProgram(std::vector<std::string> argv, std::vector<std::string> environment) {
  int in[2];
  int out[2];
  if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) give_up("no pipe");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  const int error = posix_spawn(&pid_, argv.front().c_str(), &actions, nullptr,
                                pointers(argv).data(), pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  close(in[0]);
  close(out[1]);
  input_ = in[1];
  output_ = out[0];
  if (error == 0) return;
  close(input_);
  close(output_);
  give_up("cannot start " + argv.front());
}

PipedProgram::~PipedProgram() {
  end();
  close(output_);
}

void PipedProgram::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(input_, bytes.data(), bytes.size());
    if (count <= 0) give_up("a program takes no input");
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
}

void PipedProgram::close_input() {
  if (input_ >= 0) close(input_);
  input_ = -1;
}

void PipedProgram::fill() {
  unread_.erase(0, place_);
  place_ = 0;
  pollfd readable{output_, POLLIN, 0};
  char piece[kPieceBytes];
  const ssize_t count =
      poll(&readable, 1, kReadMsMax) == 1 ? read(output_, piece, sizeof piece) : 0;
  if (count <= 0) give_up("a program said nothing more");
  unread_.append(piece, static_cast<std::size_t>(count));
}

std::string_view PipedProgram::line() {
  auto end = unread_.find('\n', place_);
  while (end == std::string::npos) {
    const std::size_t known = unread_.size() - place_;
    fill();
    end = unread_.find('\n', known);
  }
  const std::string_view text = std::string_view(unread_).substr(place_, end - place_);
  place_ = end + 1;
  return text;
}

double PipedProgram::end() {
  if (pid_ <= 0) return 0;
  close_input();
  const int watch = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
  pollfd ended{watch, POLLIN, 0};
  if (poll(&ended, 1, kEndMsMax) != 1) {
    fmt::print(stderr, "bench: a program did not end and is killed\n");
    kill(pid_, SIGKILL);
  }
  rusage used{};
  wait4(pid_, nullptr, 0, &used);
  close(watch);
  pid_ = -1;
  return microseconds(used.ru_utime) + microseconds(used.ru_stime);
}

}  // namespace clawdforge
