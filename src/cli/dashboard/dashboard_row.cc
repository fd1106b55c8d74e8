#include "cli/dashboard/dashboard_row.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <unistd.h>

#include <cstdlib>

#include "cli/core/ask.h"

namespace clawdforge {
namespace json = boost::json;
namespace {

bool is_set(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

// A browser can be shown here, and a person sits before it.
bool has_display(const Screen& screen) {
  return screen.is_terminal && (is_set("DISPLAY") || is_set("WAYLAND_DISPLAY")) &&
         !is_set("SSH_CONNECTION");
}

// True: the desktop's program for links was started. It writes nothing to this terminal.
bool open_in_browser(const std::string& link) {
  posix_spawn_file_actions_t actions;
  if (::posix_spawn_file_actions_init(&actions) != 0) return false;
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    ::posix_spawn_file_actions_addopen(&actions, descriptor, "/dev/null", O_RDWR, 0);
  }
  std::string program = "xdg-open";
  std::string argument = link;
  char* const arguments[] = {program.data(), argument.data(), nullptr};
  pid_t pid = 0;
  const int spawned = ::posix_spawnp(&pid, program.c_str(), &actions, nullptr, arguments, environ);
  ::posix_spawn_file_actions_destroy(&actions);
  return spawned == 0;
}

Done dashboard(Invocation& invocation) {
  const auto to = find_destination(invocation, TokenKind::admin);
  if (!to) return std::unexpected(to.error());
  json::object body;
  if (const auto seconds = invocation.arguments.number("--seconds")) body["seconds"] = *seconds;
  ClientRequest request;
  request.method = "POST";
  request.target = "/admin/sign-in-codes";
  request.token = Secret(std::string(to->token.reveal()));
  request.body = json::serialize(body);
  const auto answer = ask(*to, std::move(request));
  if (!answer) return std::unexpected(answer.error());
  std::string base = to->url;
  while (base.ends_with('/')) base.pop_back();
  const std::string link = base + "/" + field_of(answer->body, "fragment");
  if (invocation.as_json()) {
    json::object told = answer->body;
    told["url"] = link;
    print_answer(json::serialize(told));
    return 0;
  }
  print_answer(link);
  if (invocation.arguments.has("--print") || !has_display(invocation.screen)) return 0;
  if (!open_in_browser(link)) {
    fmt::print(stderr, "No program opens links here; open it by hand. It works once.\n");
  }
  return 0;
}

}  // namespace

std::vector<Command> dashboard_commands() {
  return {{.name = "dashboard",
           .group = "Asking",
           .summary = "open the dashboard in a browser, signed in as the owner",
           .run = dashboard,
           .options = {{.name = "--print", .help = "print the link, and open nothing"},
                       {.name = "--seconds",
                        .value = "N",
                        .help = "how long the link works, 1 to 600; 120 by default",
                        .is_number = true}},
           .examples = {"clawdforge dashboard", "clawdforge dashboard --print"},
           .about = "The link signs in one browser, once, within two minutes, and is worth nothing "
                    "after that. It is "
                    "opened where there is a desktop and a terminal, and printed everywhere. For a "
                    "gateway on another "
                    "machine, forward its port first: ssh -L 8800:127.0.0.1:8800 HOST."}};
}

}  // namespace clawdforge
