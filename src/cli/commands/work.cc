// `clawdforge workspace list`, and what a session has done in its directory: `session diff`,
// `archive`, `put` and `commit`.
#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>

#include "cli/commands/commands.h"
#include "cli/core/ask.h"
#include "cli/core/table.h"

namespace clawdforge {
namespace json = boost::json;
namespace {

constexpr std::string_view kWork = "Workspaces";

Done list_workspaces(Invocation& invocation) {
  const auto answer = ask(invocation, TokenKind::any, "GET", "/workspaces");
  if (!answer) return std::unexpected(answer.error());
  if (invocation.as_json()) {
    print_answer(answer->raw.body);
    return 0;
  }
  Table table({"WORKSPACE", "MODE", "PRESENT"});
  const json::array* const found = list_of(answer->body, "workspaces");
  for (const json::value& one : found == nullptr ? json::array() : *found) {
    if (!one.is_object()) continue;
    const json::object& row = one.get_object();
    table.add({field_of(row, "name"), field_of(row, "mode"), field_of(row, "present")});
  }
  print_answer(table.text(invocation.screen));
  return 0;
}

std::string work_path(const Invocation& invocation, std::string_view rest) {
  return fmt::format("/sessions/{}{}", path_part(invocation.arguments.word(0)), rest);
}

// The bytes of the answer, as they are.
Done print_bytes(Invocation& invocation, std::string target) {
  auto to = find_destination(invocation, TokenKind::app);
  if (!to) return std::unexpected(to.error());
  ClientRequest request;
  request.method = "GET";
  request.target = std::move(target);
  const auto answer = ask_raw(*to, std::move(request));
  if (!answer) return std::unexpected(answer.error());
  if (answer->status >= 400) return std::unexpected(complaint_of(*answer));
  std::fwrite(answer->body.data(), 1, answer->body.size(), stdout);
  return 0;
}

Done diff(Invocation& invocation) {
  if (!invocation.arguments.has("--stat") && !invocation.as_json()) {
    return print_bytes(invocation, work_path(invocation, "/diff"));
  }
  const auto answer = ask(invocation, TokenKind::app, "GET", work_path(invocation, "/diff?stat=1"));
  if (!answer) return std::unexpected(answer.error());
  if (invocation.as_json()) {
    print_answer(answer->raw.body);
    return 0;
  }
  Table table({"PATH", "ADDED", "REMOVED"});
  const json::array* const found = list_of(answer->body, "files");
  for (const json::value& one : found == nullptr ? json::array() : *found) {
    if (!one.is_object()) continue;
    const json::object& row = one.get_object();
    table.add({field_of(row, "path"), field_of(row, "added"), field_of(row, "removed")});
  }
  print_answer(table.text(invocation.screen));
  return 0;
}

Done archive(Invocation& invocation) {
  return print_bytes(invocation, work_path(invocation, "/archive"));
}

Asked<std::string> content_of(const std::string& path) {
  if (path == "-") {
    return std::string(std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>());
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) return complain(kExitUsage, fmt::format("{} cannot be read.", path));
  return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

Done put(Invocation& invocation) {
  auto to = find_destination(invocation, TokenKind::app);
  if (!to) return std::unexpected(to.error());
  const std::string file = invocation.arguments.word(1);
  auto content = content_of(file);
  if (!content) return std::unexpected(content.error());
  std::string as = invocation.arguments.text("--as");
  if (as.empty()) as = file.substr(file.rfind('/') + 1);
  if (as.empty() || as == "-") {
    return complain(kExitUsage, "--as PATH has to say where in the session it goes.");
  }
  std::string target = work_path(invocation, "/files");
  for (std::string_view rest = as; !rest.empty();) {
    const std::size_t end = std::min(rest.find('/'), rest.size());
    target += "/" + path_part(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  ClientRequest request;
  request.method = "PUT";
  request.target = std::move(target);
  request.content_type = "application/octet-stream";
  request.body = std::move(*content);
  const auto answer = ask(*to, std::move(request));
  if (!answer) return std::unexpected(answer.error());
  if (invocation.as_json()) print_answer(answer->raw.body);
  return 0;
}

Done commit(Invocation& invocation) {
  auto to = find_destination(invocation, TokenKind::app);
  if (!to) return std::unexpected(to.error());
  ClientRequest request;
  request.method = "POST";
  request.target = work_path(invocation, "/commit");
  request.body = json::serialize(json::object{{"message", invocation.arguments.text("--message")}});
  const auto answer = ask(*to, std::move(request));
  if (!answer) return std::unexpected(answer.error());
  print_answer(invocation.as_json() ? answer->raw.body : field_of(answer->body, "commit"));
  return 0;
}

}  // namespace

std::vector<Command> work_commands() {
  return {
      {.name = "workspace list",
       .group = kWork,
       .summary = "the workspaces that this app may use",
       .run = list_workspaces,
       .examples = {"clawdforge workspace list"}},
      {.name = "session diff",
       .arguments = "ID",
       .group = kWork,
       .summary = "what has changed in a session's directory since its beginning",
       .run = diff,
       .options = {{.name = "--stat", .help = "files and counts of lines instead of the diff"}},
       .examples = {"clawdforge session diff $id", "clawdforge session diff $id --stat"},
       .offers = Offers::sessions},
      {.name = "session archive",
       .arguments = "ID",
       .group = kWork,
       .summary = "a session's whole directory as a tar file, to standard output",
       .run = archive,
       .examples = {"clawdforge session archive $id > work.tar"},
       .offers = Offers::sessions},
      {.name = "session put",
       .arguments = "ID FILE",
       .group = kWork,
       .summary = "put a file into a session's directory; - is standard input",
       .run = put,
       .options = {{.name = "--as",
                    .value = "PATH",
                    .help = "where it goes in the session's directory (default: the file's name)"}},
       .examples = {"clawdforge session put $id notes.txt",
                    "date | clawdforge session put $id - --as now.txt"},
       .offers = Offers::sessions},
      {.name = "session commit",
       .arguments = "ID",
       .group = kWork,
       .summary = "commit what lies in a session's worktree; prints the commit",
       .run = commit,
       .options = {{.name = "--message", .value = "TEXT", .help = "of the commit"}},
       .examples = {"clawdforge session commit $id --message 'Fix the links'"},
       .offers = Offers::sessions},
  };
}

}  // namespace clawdforge
