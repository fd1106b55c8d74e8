#include "process/host/program_host.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <list>
#include <string>
#include <utility>

#include "base/descriptor.h"
#include "process/host/host_wire.h"

extern char** environ;  // NOLINT(readability-redundant-declaration): by POSIX, ours to declare

namespace clawdforge {
namespace {

constexpr std::size_t kPieceBytes = 64 * 1024;

struct Pipe {
  Descriptor reader;
  Descriptor writer;
};

bool open_pipe(Pipe& pipe) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return false;
  pipe = {Descriptor(ends[0]), Descriptor(ends[1])};
  return true;
}

void make_nonblocking(const Descriptor& descriptor) {
  ::fcntl(descriptor.number(), F_SETFL, O_NONBLOCK);
}

// False: not all could be written; errno says why.
bool write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

// Zero, or the errno.
int write_file(const std::string& path, std::string_view content) {
  const Descriptor file(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  return file.is_open() && write_all(file.number(), content) ? 0 : errno;
}

// The host's environment with these in it, as posix_spawn() wants it; they must live on.
std::vector<char*> environment_with(std::vector<std::string>& more) {
  std::vector<char*> all;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view given(*variable);
    const std::string_view name = given.substr(0, given.find('=') + 1);
    const bool is_beaten = std::ranges::any_of(
        more, [&](const std::string& other) { return other.starts_with(name); });
    if (!is_beaten) all.push_back(*variable);
  }
  for (std::string& variable : more) all.push_back(variable.data());
  all.push_back(nullptr);
  return all;
}

struct Program {
  std::uint32_t operation = 0;
  pid_t pid = 0;
  Descriptor pidfd;
  Descriptor input;  // closed when all has been written
  Descriptor output;
  std::string to_read;      // all of its input
  std::size_t written = 0;  // of that; nothing is moved: a prompt may be large
};

// Zero, or the errno with which it was not started.
int start(HostOrder order, Program& program) {
  if (!order.file.empty()) {
    if (const int error = write_file(order.file, order.file_content)) return error;
  }
  Pipe input;
  Pipe output;
  if (!open_pipe(input) || !open_pipe(output)) return errno;
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_adddup2(&actions, input.reader.number(), STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, output.writer.number(), STDOUT_FILENO);
  sigset_t usual;
  ::sigemptyset(&usual);
  ::sigaddset(&usual, SIGPIPE);
  ::posix_spawnattr_setsigdefault(&attributes, &usual);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  std::vector<char*> argv;
  for (std::string& argument : order.argv) argv.push_back(argument.data());
  argv.push_back(nullptr);
  std::vector<char*> environment = environment_with(order.environment);
  const int error =
      ::posix_spawnp(&program.pid, argv[0], &actions, &attributes, argv.data(), environment.data());
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  if (error != 0) return error;
  program.pidfd = Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, program.pid, 0)));
  program.input = std::move(input.writer);
  program.output = std::move(output.reader);
  program.to_read = std::move(order.input);
  make_nonblocking(program.input);
  make_nonblocking(program.output);
  return 0;
}

class Host {
 public:
  int run();

 private:
  bool take_orders();
  void begin(const HostFrame& frame);
  void attend(Program& program);
  void feed(Program& program);
  bool drain(Program& program);
  bool has_ended(Program& program);
  void tell(HostFrameKind kind, std::uint32_t operation, std::string_view bytes);

  HostFrameReader orders_;
  std::list<Program> programs_;
  bool is_heard_ = true;  // the gateway still reads our output
};

// Each has its place in `news`: what we are told, then three for each program.
int Host::run() {
  while (is_heard_) {
    std::vector<pollfd> news = {{STDIN_FILENO, POLLIN, 0}};
    for (const Program& program : programs_) {
      news.push_back({program.input.number(), POLLOUT, 0});  // a negative one is passed over
      news.push_back({program.output.number(), POLLIN, 0});
      news.push_back({program.pidfd.number(), POLLIN, 0});
    }
    if (::poll(news.data(), news.size(), -1) < 0 && errno != EINTR) return 1;
    // Before new ones are added: what was polled is theirs.
    for (Program& program : programs_) attend(program);
    std::erase_if(programs_, [this](Program& program) { return has_ended(program); });
    if (news[0].revents != 0 && !take_orders()) return 0;
  }
  return 0;
}

// False: there will be no more.
bool Host::take_orders() {
  std::array<char, kPieceBytes> piece{};
  const ssize_t count = ::read(STDIN_FILENO, piece.data(), piece.size());
  if (count < 0 && errno == EINTR) return true;
  if (count <= 0) return false;
  orders_.feed(std::string_view(piece.data(), static_cast<std::size_t>(count)));
  while (const auto frame = orders_.next()) {
    if (frame->kind == HostFrameKind::start) begin(*frame);
  }
  return !orders_.is_broken();
}

void Host::begin(const HostFrame& frame) {
  auto order = decode_order(frame.bytes);
  Program program;
  program.operation = frame.operation;
  const int error = order ? start(std::move(*order), program) : EINVAL;
  if (error != 0) {
    tell(HostFrameKind::ended, frame.operation, encode_end(NotStarted{error}));
    return;
  }
  feed(program);
  programs_.push_back(std::move(program));
}

void Host::attend(Program& program) {
  feed(program);
  drain(program);
}

void Host::feed(Program& program) {
  while (program.input.is_open() && program.written < program.to_read.size()) {
    const std::string_view rest = std::string_view(program.to_read).substr(program.written);
    const ssize_t count = ::write(program.input.number(), rest.data(), rest.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return;
    // A program that does not read any more says by its end what that means.
    program.written += count < 0 ? rest.size() : static_cast<std::size_t>(count);
  }
  program.input.close();
  program.to_read = {};
  program.written = 0;
}

// One piece, so that two programs that talk at once take turns. False: there is nothing.
bool Host::drain(Program& program) {
  if (!program.output.is_open()) return false;
  std::array<char, kPieceBytes> piece{};
  const ssize_t count = ::read(program.output.number(), piece.data(), piece.size());
  if (count < 0) return errno == EINTR;
  if (count == 0) {
    program.output.close();
    return false;
  }
  tell(HostFrameKind::output, program.operation,
       std::string_view(piece.data(), static_cast<std::size_t>(count)));
  return true;
}

bool Host::has_ended(Program& program) {
  int status = 0;
  const pid_t found = ::waitpid(program.pid, &status, WNOHANG);
  if (found == 0 || (found < 0 && errno == EINTR)) return false;
  // What it has written is all there. What still holds its output open is not it.
  while (drain(program)) {
  }
  ExitStatus end = Unknown{};
  if (found > 0 && WIFEXITED(status)) end = Exited{WEXITSTATUS(status)};
  if (found > 0 && WIFSIGNALED(status)) end = Signaled{WTERMSIG(status)};
  tell(HostFrameKind::ended, program.operation, encode_end(end));
  return true;
}

// Waits while the gateway does not read: then the programs wait as well.
void Host::tell(HostFrameKind kind, std::uint32_t operation, std::string_view bytes) {
  if (is_heard_) is_heard_ = write_all(STDOUT_FILENO, host_frame(kind, operation, bytes));
}

}  // namespace

int host_programs() {
  std::signal(SIGPIPE, SIG_IGN);
  return Host().run();
}

}  // namespace clawdforge
