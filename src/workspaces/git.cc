#include "workspaces/git.h"

#include <optional>
#include <utility>

#include "storage/trees/git_places.h"

namespace clawdforge {
namespace {

// Each turns off something that starts a program, or that reaches out. What is on a command line
// beats what a repository's configuration says.
constexpr const char* kSettings[] = {"core.hooksPath=/dev/null",
                                     "core.fsmonitor=false",
                                     "core.untrackedCache=false",
                                     "core.attributesFile=/dev/null",
                                     "core.excludesFile=/dev/null",
                                     "core.pager=cat",
                                     "core.editor=false",
                                     "core.sshCommand=false",
                                     "core.alternateRefsCommand=false",
                                     "credential.helper=",
                                     "commit.gpgSign=false",
                                     "gpg.program=false",
                                     "submodule.recurse=false",
                                     "protocol.allow=never",
                                     "branch.autoSetupMerge=false",
                                     "gc.auto=0",
                                     "maintenance.auto=false",
                                     "advice.detachedHead=false"};

std::map<std::string, std::string> git_environment() {
  return {{"PATH", "/usr/bin:/bin"},
          {"LC_ALL", "C.UTF-8"},
          {"GIT_TERMINAL_PROMPT", "0"},
          {"GIT_ASKPASS", "/bin/false"},
          {"GIT_CONFIG_GLOBAL", "/dev/null"},
          {"GIT_CONFIG_SYSTEM", "/dev/null"},
          {"GIT_CONFIG_NOSYSTEM", "1"},
          {"GIT_ATTR_NOSYSTEM", "1"},
          {"GIT_ALLOW_PROTOCOL", ""},
          {"GIT_OPTIONAL_LOCKS", "0"},
          {"GIT_AUTHOR_NAME", "clawdforge"},
          {"GIT_AUTHOR_EMAIL", "clawdforge@localhost"},
          {"GIT_COMMITTER_NAME", "clawdforge"},
          {"GIT_COMMITTER_EMAIL", "clawdforge@localhost"}};
}

}  // namespace

// What git needs to see: its repositories with all that these lead to, and where it works.
Async<JailPlan> Git::jail_of(GitOrder order) {
  auto places =
      co_await disk_.call(Lane(),
                          [git_dir = order.git_dir, directory = order.directory,
                           more = order.sees]() -> Result<std::vector<VisiblePath>> {
                            std::vector<VisiblePath> all;
                            const auto add = [&](const std::string& path, bool is_writable) {
                              for (const std::string& place : git_places(path))
                                all.push_back({place, is_writable});
                            };
                            if (!git_dir.empty()) add(git_dir, true);
                            if (git_dir.empty()) add(directory, false);
                            for (const VisiblePath& one : more) add(one.path, one.is_writable);
                            return all;
                          });
  if (!places) co_return std::unexpected(std::move(places.error()));
  if (!order.work_tree.empty()) places->push_back({order.work_tree, order.writes_work});
  co_return jail_(*places);
}

Async<ProgramEnd> Git::call(GitOrder order) {
  std::optional<JailPlan> jail;
  if (jail_) {
    auto planned = co_await jail_of(order);
    if (!planned) co_return std::unexpected(std::move(planned.error()));
    jail = std::move(*planned);
  }
  ProgramOrder program{.plan = {.argv = {"git", "--no-pager", "--literal-pathspecs"},
                                .environment = git_environment(),
                                .working_dir = std::move(order.directory),
                                .sees_hidden = true,
                                .jail = std::move(jail)},
                       .input = std::move(order.input),
                       .output_bytes_max = order.output_bytes_max,
                       .time_max = kGitTimeMax};
  std::vector<std::string>& argv = program.plan.argv;
  if (!order.git_dir.empty()) argv.push_back("--git-dir=" + order.git_dir);
  if (!order.work_tree.empty()) argv.push_back("--work-tree=" + order.work_tree);
  for (const char* const setting : kSettings) {
    argv.emplace_back("-c");
    argv.emplace_back(setting);
  }
  for (std::string& argument : order.arguments) argv.push_back(std::move(argument));
  for (auto& [name, value] : order.environment) {
    program.plan.environment.insert_or_assign(name, std::move(value));
  }
  co_return co_await programs_.run(std::move(program));
}

Async<std::string> Git::run(GitOrder order) {
  const std::string verb = order.arguments.empty() ? "" : order.arguments.front();
  auto end = co_await call(std::move(order));
  if (!end) co_return std::unexpected(std::move(end.error()));
  if (end->is_good()) co_return std::move(end->output);
  log_.warn("git has failed", {{"command", std::string_view(verb)},
                               {"late", end->is_late},
                               {"said", std::string_view(end->error_tail)}});
  co_return fail(Errc::unavailable, "git_failed",
                 "git could not do this in the workspace; the gateway's log has its words.",
                 end->error_tail);
}

}  // namespace clawdforge
