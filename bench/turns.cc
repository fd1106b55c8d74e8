#include "turns.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/async/run_to_end.h"
#include "base/telemetry/log.h"
#include "process/tree/spawner.h"
#include "raw_http.h"
#include "server.h"

namespace clawdforge {
namespace {

constexpr std::size_t kPromptBytes = 1000;
constexpr std::size_t kBlockBytes = 4096;
constexpr std::size_t kPieceBytes = 16 * 1024;

std::string prompt() { return std::string(kPromptBytes, 'p'); }

std::vector<std::string> arguments(const std::string& program) {
  return {program, "-p", "--output-format", "json", "--model", "sonnet"};
}

struct Pipe {
  Pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) give_up("no pipe");
    read_end = ends[0];
    write_end = ends[1];
  }
  int read_end;
  int write_end;
};

class BareTurn : public Turn {
 public:
  BareTurn(const std::string& program, Figures* to_end)
      : argv_(arguments(program)), to_end_(to_end) {
    for (std::string& text : argv_) pointers_.push_back(text.data());
    pointers_.push_back(nullptr);
  }

  double once() override {
    const auto begin = SteadyClock::now();
    const Pipe in;
    const Pipe out;
    const Pipe err;
    const pid_t pid = start(in, out, err);
    for (const int end : {in.read_end, out.write_end, err.write_end}) close(end);
    if (write(in.write_end, prompt_.data(), prompt_.size()) < 0) give_up("no prompt was taken");
    close(in.write_end);
    std::string line;
    while (!line.ends_with('\n')) {
      char piece[kPieceBytes];
      const ssize_t count = read(out.read_end, piece, sizeof piece);
      if (count <= 0) give_up("the stand-in gave no result line");
      line.append(piece, static_cast<std::size_t>(count));
    }
    const double taken = microseconds_since(begin);
    waitpid(pid, nullptr, 0);
    if (to_end_ != nullptr) to_end_->add_since(begin);
    close(out.read_end);
    close(err.read_end);
    return taken;
  }

 private:
  pid_t start(const Pipe& in, const Pipe& out, const Pipe& err) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in.read_end, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out.write_end, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, err.write_end, STDERR_FILENO);
    char path[] = "PATH=/usr/bin:/bin";
    char* environment[] = {path, nullptr};
    pid_t pid = -1;
    if (posix_spawn(&pid, pointers_[0], &actions, nullptr, pointers_.data(), environment) != 0) {
      give_up("the stand-in does not start");
    }
    posix_spawn_file_actions_destroy(&actions);
    return pid;
  }

  std::vector<std::string> argv_;
  std::vector<char*> pointers_;
  Figures* const to_end_;
  const std::string prompt_ = prompt();
};

Task<double> spawn_once(Spawner* spawner, const ChildPlan* plan) {
  const auto begin = SteadyClock::now();
  auto child = spawner->spawn(*plan);
  if (!child) give_up(child.error().message);
  const auto written = co_await (*child)->write(prompt());
  if (!written) give_up(written.error().message);
  (*child)->close_input();
  std::string line;
  while (!line.ends_with('\n')) {
    const auto piece = co_await (*child)->read(kPieceBytes);
    if (!piece || piece->empty()) give_up("the stand-in gave no result line");
    line += *piece;
  }
  const double taken = microseconds_since(begin);
  co_await (*child)->gone();
  co_return taken;
}

Task<bool> stop_spawner(Spawner* spawner) {
  co_await spawner->stop();
  co_return true;
}

class LauncherTurn : public Turn {
 public:
  LauncherTurn(const std::string& program, std::string directory, bool with_namespace)
      : plan_{.argv = arguments(program),
              .environment = {{"PATH", "/usr/bin:/bin"}},
              .working_dir = std::move(directory)} {
    Spawner::Options options;
    options.pid_namespace = with_namespace ? PidNamespace::on : PidNamespace::off;
    auto made = Spawner::make(io_.get_executor(), options, log_);
    if (made) spawner_ = std::move(*made);
  }
  ~LauncherTurn() override {
    if (spawner_) run_to_end(io_, stop_spawner(spawner_.get()));
  }

  bool is_possible() const { return spawner_ != nullptr; }
  double once() override { return run_to_end(io_, spawn_once(spawner_.get(), &plan_)); }

 private:
  const ChildPlan plan_;
  IoContext io_;
  Log log_{LogLevel::error, LogFormat::text};
  std::unique_ptr<Spawner> spawner_;
};

class RequestTurn : public Turn {
 public:
  RequestTurn(std::uint16_t port, const std::string& token)
      : connection_(port),
        request_(json_request("/run", token, fmt::format(R"({{"prompt":"{}"}})", prompt()))) {}

  double once() override {
    const auto begin = SteadyClock::now();
    const Answer answer = connection_.ask(request_);
    const double taken = microseconds_since(begin);
    if (answer.status != 200 || !answer.body.contains("end_turn")) {
      give_up(fmt::format("POST /run answered {}: {}", answer.status, answer.body));
    }
    return taken;
  }

 private:
  Connection connection_;
  const std::string request_;
};

class DiskTurn : public Turn {
 public:
  explicit DiskTurn(const std::string& directory)
      : path_(directory + "/block"),
        file_(open(path_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)) {
    once();
  }
  ~DiskTurn() override {
    close(file_);
    unlink(path_.c_str());
  }

  double once() override {
    const auto begin = SteadyClock::now();
    if (pwrite(file_, block_.data(), block_.size(), 0) < 0 || fdatasync(file_) != 0) {
      give_up("the disk does not take a block");
    }
    return microseconds_since(begin);
  }

 private:
  const std::string path_;
  const int file_;
  const std::string block_ = std::string(kBlockBytes, 'x');
};

}  // namespace

std::unique_ptr<Turn> bare_turn(std::string program, Figures* to_end) {
  return std::make_unique<BareTurn>(program, to_end);
}

std::unique_ptr<Turn> launcher_turn(std::string program, std::string directory,
                                    bool with_namespace) {
  auto turn = std::make_unique<LauncherTurn>(program, std::move(directory), with_namespace);
  if (!turn->is_possible()) return nullptr;
  return turn;
}

std::unique_ptr<Turn> request_turn(std::uint16_t port, const std::string& token) {
  return std::make_unique<RequestTurn>(port, token);
}

std::unique_ptr<Turn> disk_turn(const std::string& directory) {
  return std::make_unique<DiskTurn>(directory);
}

}  // namespace clawdforge
