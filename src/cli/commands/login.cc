// `clawdforge login`, `logout` and `whoami`: the gateway that a user's commands talk to.
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "cli/commands/commands.h"
#include "cli/core/ask.h"
#include "cli/core/env_file.h"
#include "cli/core/table.h"
#include "cli/input/prompting.h"

namespace clawdforge {
namespace {

Asked<std::string> stored_path(const Invocation& invocation) {
  const std::string profile = invocation.arguments.text("--profile");
  if (invocation.arguments.has("--profile") && !is_profile_name(profile)) {
    return complain(kExitUsage, fmt::format("'{}' is not a profile's name; it has letters, digits, "
                                            "_ and -.",
                                            profile));
  }
  std::string path = env_file_path(profile);
  if (path.empty()) return complain(kExitUsage, "there is no home directory; set HOME.");
  return path;
}

// What is stored already and stays: the tokens for the same address.
Asked<EnvFile> kept_content(const std::string& path, const std::string& url) {
  auto stored = read_env_file(path);
  if (!stored) return std::unexpected(stored.error());
  std::optional<EnvFile> file = std::move(*stored);
  if (file && file->url == url) return std::move(*file);
  EnvFile content;
  content.url = url;
  return content;
}

Done login(Invocation& invocation) {
  const Arguments& arguments = invocation.arguments;
  Destination to;
  to.url = arguments.word(0);
  to.source = "login";
  auto address = parse_server_url(to.url);
  if (!address) return complain(kExitUsage, address.error().message);
  to.address = std::move(*address);
  const auto path = stored_path(invocation);
  if (!path) return std::unexpected(path.error());
  auto content = kept_content(*path, to.url);
  if (!content) return std::unexpected(content.error());
  if (arguments.has("--ca")) {
    std::error_code error;
    content->ca_file = std::filesystem::absolute(arguments.text("--ca"), error);
  }
  to.address.ca_file = content->ca_file;
  auto token = read_secret(invocation.screen, fmt::format("Token for {}: ", to.url));
  if (!token) return std::unexpected(token.error());
  to.token = std::move(*token);
  ClientRequest request;
  request.method = "GET";
  request.target = "/whoami";
  const auto answer = ask(to, std::move(request));
  if (!answer) return std::unexpected(answer.error());
  const bool is_admin = field_of(answer->body, "kind") == "admin";
  (is_admin ? content->admin_token : content->token) = std::move(to.token);
  if (auto written = write_env_file(*path, *content); !written) {
    return std::unexpected(written.error());
  }
  if (invocation.as_json()) print_answer(answer->raw.body);
  fmt::print(stderr, "Logged in to {} as {}; stored in {}.\n", to.url,
             is_admin ? "the admin" : "the app " + plain_line(field_of(answer->body, "name")),
             *path);
  return 0;
}

Done logout(Invocation& invocation) {
  const auto path = stored_path(invocation);
  if (!path) return std::unexpected(path.error());
  if (::unlink(path->c_str()) == 0) {
    fmt::print(stderr,
               "Removed {}. The token still works elsewhere; clawdforge token revoke NAME "
               "ends it.\n",
               *path);
    return 0;
  }
  if (errno == ENOENT) {
    fmt::print(stderr, "There was no login in {}.\n", *path);
    return 0;
  }
  return complain(kExitUsage, fmt::format("{} cannot be removed.", *path));
}

Done whoami(Invocation& invocation) {
  auto to = find_destination(invocation, TokenKind::any);
  if (!to) return std::unexpected(to.error());
  ClientRequest request;
  request.method = "GET";
  request.target = "/whoami";
  const auto answer = ask(*to, std::move(request));
  if (!answer) return std::unexpected(answer.error());
  if (invocation.as_json()) {
    print_answer(answer->raw.body);
    return 0;
  }
  std::vector<std::pair<std::string, std::string>> fields = {{"gateway", to->url},
                                                             {"named by", to->source}};
  for (auto& field : fields_of(answer->body, "ok")) fields.push_back(std::move(field));
  print_answer(fields_text(invocation.screen, fields));
  return 0;
}

const Option kStoredProfile = {.name = "--profile",
                               .value = "NAME",
                               .help =
                                   "store it under this name (default: the login that holds "
                                   "without a profile)",
                               .offers = Offers::profiles};

}  // namespace

std::vector<Command> login_commands() {
  return {
      {.name = "login",
       .arguments = "URL",
       .group = "Settings",
       .summary = "store a gateway's address and a token for it",
       .reach = Reach::local,
       .run = login,
       .options = {kStoredProfile,
                   {.name = "--ca",
                    .value = "FILE",
                    .help = "for https: the certificate, or its authority, to trust",
                    .offers = Offers::files}},
       .examples = {"clawdforge login http://127.0.0.1:8800",
                    "clawdforge login https://gateway.example --profile work < token-file"},
       .about =
           "The token is asked for without echo, or read from standard input; it is an app's or "
           "the admin's. It is tried, then stored for this user alone."},
      {.name = "logout",
       .group = "Settings",
       .summary = "remove what login has stored",
       .reach = Reach::local,
       .run = logout,
       .options = {kStoredProfile},
       .examples = {"clawdforge logout --profile work"}},
      {.name = "whoami",
       .group = "Settings",
       .summary = "which gateway, and as whom",
       .run = whoami,
       .examples = {"clawdforge whoami"}},
  };
}

}  // namespace clawdforge
