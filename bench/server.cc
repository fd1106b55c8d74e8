#include "server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "piped_program.h"
#include "raw_http.h"

namespace clawdforge {
namespace {

constexpr int kStartMsMax = 20'000;
constexpr int kEndMsMax = 40'000;
constexpr int kLookMs = 10;
constexpr std::string_view kAdminToken = "bench-admin-token-0123456789";

int loopback_socket(std::uint16_t port, sockaddr_in& address) {
  address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

bool is_listened_on(std::uint16_t port) {
  sockaddr_in address;
  const int probe = loopback_socket(port, address);
  const bool is_there = connect(probe, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  close(probe);
  return is_there;
}

std::vector<std::string> gateway_environment(const std::string& claude_bin,
                                             const std::string& directory,
                                             const std::vector<std::string>& more) {
  std::filesystem::create_directories(directory);
  std::vector<std::string> environment = {"PATH=/usr/bin:/bin",
                                          "HOME=" + directory,
                                          "CLAWDFORGE_CLAUDE_BIN=" + claude_bin,
                                          "ANTHROPIC_API_KEY=not-a-key",
                                          "CLAWDFORGE_METRICS_WITHOUT_TOKEN=true",
                                          fmt::format("CLAWDFORGE_ADMIN_TOKEN={}", kAdminToken)};
  // What no caller does to a gateway but a benchmark.
  environment.insert(environment.end(), {"CLAWDFORGE_MAX_REQUESTS_PER_SEC_PER_APP=100000000",
                                         "CLAWDFORGE_MAX_REQUESTS_PER_SEC_PER_ADDRESS=100000000",
                                         "CLAWDFORGE_MAX_BYTES_PER_SEC_PER_APP=1099511627776",
                                         "CLAWDFORGE_MAX_BYTES_PER_SEC_PER_ADDRESS=1099511627776"});
  environment.insert(environment.end(), more.begin(), more.end());
  return environment;
}

std::vector<std::string> standin_environment(const std::string& claude_bin,
                                             const std::string& directory) {
  std::filesystem::create_directories(directory);
  return {"PATH=/usr/bin:/bin",        "HOME=" + directory,        "TMPDIR=" + directory,
          "PYTHONDONTWRITEBYTECODE=1", "CLAUDE_BIN=" + claude_bin, "APP_TOKEN=cf_bench"};
}

std::string mint(std::uint16_t port) {
  Connection connection(port);
  const Answer answer =
      connection.ask(json_request("/admin/tokens", kAdminToken, R"({"name":"bench"})"));
  const auto begin = answer.body.find("cf_");
  const auto end = answer.body.find('"', begin);
  if (answer.status != 200 || end == std::string::npos) give_up("no token: " + answer.body);
  return answer.body.substr(begin, end - begin);
}

}  // namespace

void give_up(const std::string& reason) { throw std::runtime_error(reason); }

std::uint16_t free_port() {
  sockaddr_in address;
  const int listener = loopback_socket(0, address);
  socklen_t size = sizeof address;
  auto* plain = reinterpret_cast<sockaddr*>(&address);
  if (bind(listener, plain, size) != 0 || getsockname(listener, plain, &size) != 0) {
    give_up("no free port");
  }
  close(listener);
  return ntohs(address.sin_port);
}

Server::Server(std::vector<std::string> argv, std::vector<std::string> environment) : Server() {
  int output[2];
  if (pipe2(output, O_CLOEXEC) != 0) give_up("no pipe");
  start(argv, environment, output[1]);
  close(output[1]);
  read_address(output[0]);
  close(output[0]);
}

Server::Server(std::vector<std::string> argv, std::vector<std::string> environment,
               std::uint16_t port)
    : Server() {
  port_ = port;
  const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  start(argv, environment, nowhere);
  close(nowhere);
  for (int waited_ms = 0; !is_listened_on(port); waited_ms += kLookMs) {
    if (waited_ms > kStartMsMax) give_up("a server did not start: " + argv.front());
    poll(nullptr, 0, kLookMs);
  }
}

void Server::start(std::vector<std::string>& argv, std::vector<std::string>& environment,
                   int output) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  const int error = posix_spawn(&pid_, argv.front().c_str(), &actions, nullptr,
                                pointers(argv).data(), pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  if (error == 0) return;
  pid_ = -1;
  give_up("cannot start " + argv.front());
}

void Server::read_address(int output) {
  std::string line;
  while (!line.ends_with('\n')) {
    pollfd readable{output, POLLIN, 0};
    char piece[512];
    const ssize_t count =
        poll(&readable, 1, kStartMsMax) == 1 ? read(output, piece, sizeof piece) : 0;
    if (count <= 0) give_up("a server did not start");
    line.append(piece, static_cast<std::size_t>(count));
  }
  const char* digits = line.data() + line.rfind(':') + 1;
  std::from_chars(digits, line.data() + line.size(), port_);
}

Server::~Server() {
  if (pid_ <= 0) return;
  const int watch = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
  kill(pid_, SIGTERM);
  pollfd ended{watch, POLLIN, 0};
  if (poll(&ended, 1, kEndMsMax) != 1) {
    fmt::print(stderr, "bench: a server did not end and is killed\n");
    kill(pid_, SIGKILL);
  }
  waitpid(pid_, nullptr, 0);
  close(watch);
}

double Server::peak_mib() const {
  std::ifstream status(fmt::format("/proc/{}/status", pid_));
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::strtod(line.c_str() + 6, nullptr) / 1024;
  }
  return 0;
}

Gateway::Gateway(const std::string& program, const std::string& claude_bin,
                 const std::string& directory, const std::vector<std::string>& more,
                 std::string known_token)
    : server({program, "serve", "--listen", "127.0.0.1:0", "--data-dir", directory + "/data"},
             gateway_environment(claude_bin, directory, more)),
      token(std::move(known_token)) {}

Gateway::Gateway(const std::string& program, const std::string& claude_bin,
                 const std::string& directory, const std::vector<std::string>& more)
    : Gateway(program, claude_bin, directory, more, "") {
  token = mint(server.port());
}

Standin::Standin(const std::string& script, const std::string& claude_bin,
                 const std::string& directory)
    : server({"/usr/bin/python3", script, directory}, standin_environment(claude_bin, directory)) {}

}  // namespace clawdforge
