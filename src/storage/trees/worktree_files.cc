#include "storage/trees/worktree_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>

#include "base/descriptor.h"
#include "storage/disk/file_error.h"
#include "storage/disk/tree.h"

namespace clawdforge {
namespace {

constexpr std::size_t kPointerBytesMax = 8 * 1024;  // of a file of git's that names another place
constexpr int kForgetStepsMax = 1'000;              // each of kTreeStepEntriesMax entries
constexpr std::string_view kDuring = "working on the files of a git worktree";

// The first line; empty: there is none.
std::string first_line_of(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!file.is_open()) return {};
  std::string text(kPointerBytesMax, '\0');
  const ssize_t count = ::read(file.number(), text.data(), text.size());
  if (count <= 0) return {};
  text.resize(static_cast<std::size_t>(count));
  text.resize(std::min(text.find('\n'), text.size()));
  return text;
}

Result<void> write_new(const std::string& path, std::string_view text) {
  const Descriptor file(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.is_open()) return file_failure(errno, kDuring);
  while (!text.empty()) {
    const ssize_t written = ::write(file.number(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return file_failure(errno, kDuring);
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

Result<void> remove_all(const std::string& parent, const std::string& name) {
  const Descriptor in(::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!in.is_open()) return file_failure(errno, kDuring);
  for (int i = 0; i < kForgetStepsMax; ++i) {
    auto step = remove_tree_step(in.number(), name, kTreeStepEntriesMax);
    if (!step) return std::unexpected(std::move(step.error()));
    if (*step == TreeStep::done) return {};
  }
  return file_failure(ENOTEMPTY, kDuring);
}

}  // namespace

Result<std::string> worktree_dir_of(const std::string& work, const std::string& repository) {
  constexpr std::string_view kMark = "gitdir: ";
  const std::string line = first_line_of(work + "/.git");
  const std::string list = repository + "/worktrees/";
  if (!line.starts_with(kMark) || !std::string_view(line).substr(kMark.size()).starts_with(list)) {
    return file_failure(EINVAL, kDuring);
  }
  return line.substr(kMark.size());
}

Result<void> make_work_dir(const std::string& work) {
  if (::mkdir(work.c_str(), 0700) == 0 || errno == EEXIST) return {};
  return file_failure(errno, kDuring);
}

bool is_repository_there(const std::string& repository) {
  struct stat found{};
  return ::stat((repository + "/HEAD").c_str(), &found) == 0;
}

Result<void> forget_worktree(const std::string& repository, const std::string& work) {
  const std::string list = repository + "/worktrees";
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(list, error)) {
    if (first_line_of(entry.path().string() + "/gitdir") != work + "/.git") continue;
    auto removed = remove_all(list, entry.path().filename().string());
    if (!removed) return removed;
    break;
  }
  if (error && error != std::errc::no_such_file_or_directory &&
      error != std::errc::not_a_directory) {
    return file_failure(error.value(), kDuring);
  }
  ::rmdir(list.c_str());  // as git does it after the last one; it stays while there are others
  return {};
}

Result<void> make_snapshot(const std::string& path, const std::string& alternate, bool is_sha256) {
  for (const char* const inside : {"", "/objects", "/objects/info", "/refs", "/refs/heads"}) {
    if (::mkdir((path + inside).c_str(), 0700) != 0 && errno != EEXIST) {
      return file_failure(errno, kDuring);
    }
  }
  auto written = write_new(path + "/config", is_sha256 ? "[core]\n\trepositoryformatversion = 1\n"
                                                         "[extensions]\n\tobjectformat = sha256\n"
                                                       : "[core]\n\trepositoryformatversion = 0\n");
  if (written && !alternate.empty()) {
    written = write_new(path + "/objects/info/alternates", alternate + "\n");
  }
  if (written) written = write_new(path + "/HEAD", "ref: refs/heads/none\n");
  return written;
}

Result<void> copy_index(const std::string& from, const std::string& into) {
  const std::string fresh = into + ".clawdforge";
  std::error_code error;
  std::filesystem::copy_file(from, fresh, std::filesystem::copy_options::overwrite_existing, error);
  if (!error) std::filesystem::rename(fresh, into, error);
  if (error) return file_failure(error.value(), kDuring);
  return {};
}

}  // namespace clawdforge
