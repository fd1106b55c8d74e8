#include "workspaces/snapshots.h"

#include <charconv>
#include <set>
#include <string_view>
#include <utility>

#include "storage/trees/worktree_files.h"
#include "storage/work/dirs_removal.h"
#include "storage/work/trash.h"

namespace clawdforge {
namespace {

constexpr std::size_t kDiffBytesMax = 8 * 1024 * 1024;

std::string first_line(std::string text) {
  text.resize(std::min(text.find('\n'), text.size()));
  return text;
}

// The paths of a list that ends each with a zero byte, each once and as such a list again. A name
// with a slash at its end is a repository inside, of which git would ask its own configuration.
std::string paths_to_take_in(std::string_view listed) {
  std::set<std::string_view> paths;
  while (!listed.empty()) {
    const std::size_t end = std::min(listed.find('\0'), listed.size());
    const std::string_view path = listed.substr(0, end);
    if (!path.empty() && !path.ends_with('/')) paths.insert(path);
    listed.remove_prefix(std::min(end + 1, listed.size()));
  }
  std::string text;
  for (const std::string_view path : paths) text.append(path).push_back('\0');
  return text;
}

std::int64_t number_in(std::string_view text) {
  std::int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// "3\t1\tpath" of --numstat; a binary file has dashes.
ChangedFile changed_file_in(std::string_view line) {
  const std::size_t first = std::min(line.find('\t'), line.size());
  const std::size_t second = std::min(line.find('\t', first + 1), line.size());
  const std::string_view added = line.substr(0, first);
  ChangedFile file{.path = std::string(line.substr(std::min(second + 1, line.size()))),
                   .added = number_in(added),
                   .removed = number_in(line.substr(std::min(first + 1, line.size()))),
                   .is_binary = added == "-"};
  return file;
}

std::vector<std::string> diff_arguments(std::string tree, std::vector<std::string> shape) {
  std::vector<std::string> arguments = {"diff-index",    "--cached",   "--no-ext-diff",
                                        "--no-textconv", "--no-color", "--ignore-submodules=dirty"};
  for (std::string& one : shape) arguments.push_back(std::move(one));
  arguments.push_back(std::move(tree));
  arguments.emplace_back("--");
  return arguments;
}

}  // namespace

Snapshots::Snapshots(const std::string& data_dir, Disk& disk, Git& git, Log& log)
    : dirs_{data_dir + "/snapshots", "session_id",
            "a session's snapshot cannot be removed; the next sweep tries again"},
      trash_(trash_in(data_dir)),
      disk_(disk),
      git_(git),
      log_(log) {}

GitOrder Snapshots::order_of(const std::string& id) const {
  return {.git_dir = path_of(id), .directory = dirs_.root, .arguments = {}};
}

Async<void> Snapshots::make(std::string id, std::string alternate, bool is_sha256, Lane lane) {
  co_return co_await disk_.call(
      std::move(lane),
      [dirs = dirs_, id, path = path_of(id), alternate, is_sha256]() -> Result<void> {
        if (auto made = dirs.make(id); !made) return std::unexpected(std::move(made.error()));
        return make_snapshot(path, alternate, is_sha256);
      });
}

Async<void> Snapshots::read_tree(std::string id, std::string work, std::string tree,
                                 bool fills_work) {
  GitOrder order = order_of(id);
  order.work_tree = std::move(work);
  order.writes_work = fills_work;
  order.arguments = {"read-tree", "--reset"};
  if (fills_work) order.arguments.emplace_back("-u");
  order.arguments.push_back(std::move(tree));
  const auto done = co_await git_.run(std::move(order));
  if (!done) co_return std::unexpected(done.error());
  co_return Result<void>{};
}

// Not by `git add`, which starts a git in each repository that lies inside, with the configuration
// of that one.
Async<void> Snapshots::take_in(std::string id, std::string work) {
  GitOrder list = order_of(id);
  list.work_tree = work;
  list.directory = work;
  list.arguments = {"ls-files", "-z", "--others", "--modified", "--deleted", "--exclude-standard"};
  const auto listed = co_await git_.run(std::move(list));
  if (!listed) co_return std::unexpected(listed.error());
  GitOrder update = order_of(id);
  update.work_tree = work;
  update.directory = std::move(work);
  update.arguments = {"update-index", "-z", "--add", "--remove", "--replace", "--stdin"};
  update.input = paths_to_take_in(*listed);
  if (update.input.empty()) co_return Result<void>{};
  const auto updated = co_await git_.run(std::move(update));
  if (!updated) co_return std::unexpected(updated.error());
  co_return Result<void>{};
}

Async<std::string> Snapshots::tree(std::string id) {
  GitOrder order = order_of(id);
  order.arguments = {"write-tree"};
  auto written = co_await git_.run(std::move(order));
  if (!written) co_return written;
  co_return first_line(std::move(*written));
}

Async<WorkDiff> Snapshots::diff(std::string id, std::string base) {
  GitOrder order = order_of(id);
  order.arguments = diff_arguments(std::move(base), {"-p", "--find-renames"});
  order.output_bytes_max = kDiffBytesMax;
  auto end = co_await git_.call(std::move(order));
  if (!end) co_return std::unexpected(std::move(end.error()));
  if (!end->is_cut && !end->is_good()) {
    co_return fail(Errc::unavailable, "git_failed",
                   "git could not compare the session's directory.", end->error_tail);
  }
  co_return WorkDiff{.text = std::move(end->output), .is_cut = end->is_cut};
}

Async<std::vector<ChangedFile>> Snapshots::changed_files(std::string id, std::string base) {
  GitOrder order = order_of(id);
  order.arguments = diff_arguments(std::move(base), {"--numstat", "-z", "--no-renames"});
  const auto listed = co_await git_.run(std::move(order));
  if (!listed) co_return std::unexpected(listed.error());
  std::vector<ChangedFile> files;
  for (std::string_view rest = *listed; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\0'), rest.size());
    if (end > 0) files.push_back(changed_file_in(rest.substr(0, end)));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  co_return files;
}

void Snapshots::remove(std::string id, Lane lane) {
  remove_dir(dirs_, std::move(id), std::move(lane), disk_, log_);
}

Async<std::int64_t> Snapshots::keep_only(std::vector<std::string> ids) {
  return keep_only_dirs({dirs_, trash_, std::set<std::string>(ids.begin(), ids.end())}, &disk_,
                        &log_);
}

void Snapshots::remove_again() { remove_dirs_again(dirs_, disk_, log_); }

}  // namespace clawdforge
