#include "cli/input/terminal_token.h"

#include <fmt/format.h>

#include "cli/core/ask.h"
#include "cli/core/env_file.h"
#include "cli/input/prompting.h"

namespace clawdforge {
namespace {

constexpr int kTerminalNamesMax = 9;  // this-terminal, this-terminal-2, …

// Another user of the gateway may have the name already; their token must go on.
Asked<Secret> mint_for_terminal(const Destination& admin) {
  for (int number = 1;; ++number) {
    const auto name =
        number == 1 ? std::string("this-terminal") : fmt::format("this-terminal-{}", number);
    ClientRequest request;
    request.method = "POST";
    request.target = "/admin/tokens";
    request.body = fmt::format(R"({{"name":"{}"}})", name);
    auto answer = ask(admin, std::move(request));
    if (answer) {
      fmt::print(stderr, "The app {} was made; clawdforge token revoke {} takes it back.\n", name,
                 name);
      return Secret(field_of(answer->body, "token"));
    }
    const bool is_taken = answer.error().details.find("name_taken") != std::string::npos;
    if (!is_taken || number == kTerminalNamesMax) return std::unexpected(answer.error());
  }
}

}  // namespace

Asked<Destination> find_app_destination(const Invocation& invocation) {
  auto found = find_destination(invocation, TokenKind::app);
  if (found || found.error().exit_code != kExitNoToken) return found;
  const Screen& screen = invocation.screen;
  if (!screen.is_input_terminal || !screen.is_error_terminal) return found;
  const auto admin = find_destination(invocation, TokenKind::admin);
  const std::string path = env_file_path({});
  auto read = read_env_file(path);
  // A file for another gateway must not get the token of this one.
  if (!admin || !admin->is_local || path.empty() || !read) return found;
  std::optional<EnvFile> stored = std::move(*read);
  if (stored && !stored->url.empty()) return found;
  const auto question =
      fmt::format("There is no token for this terminal yet. Make one and store it in {}?", path);
  if (!is_yes(screen, question)) return found;
  auto token = mint_for_terminal(*admin);
  if (!token) return std::unexpected(token.error());
  EnvFile content;
  if (stored) content = std::move(*stored);
  content.token = std::move(*token);
  if (auto written = write_env_file(path, content); !written) {
    return std::unexpected(written.error());
  }
  return find_destination(invocation, TokenKind::app);
}

}  // namespace clawdforge
