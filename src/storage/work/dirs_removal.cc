#include "storage/work/dirs_removal.h"

#include <optional>
#include <utility>
#include <vector>

namespace clawdforge {

using Removal = NamedDirs::Removal;

void remove_dir(const NamedDirs& dirs, std::string id, Disk& disk, Log& log) {
  disk.post_in_steps([dirs, id = std::move(id), log = &log] {
    return dirs.remove_step(id, *log) == Removal::more;
  });
}

void remove_dirs_again(const NamedDirs& dirs, Disk& disk, Log& log) {
  disk.post_in_steps(
      [dirs, log = &log, names = std::optional<std::vector<std::string>>()]() mutable {
        if (!names) names = dirs.unremoved_names();  // they belong to the disk's thread
        if (names->empty()) return false;
        if (dirs.remove_step(names->back(), *log) != Removal::more) names->pop_back();
        return !names->empty();
      });
}

Async<std::int64_t> keep_only_dirs(NamedDirs dirs, std::set<std::string> ids, Disk* disk,
                                   Log* log) {
  auto strays =
      co_await disk->call([dirs, ids = std::move(ids)]() -> Result<std::vector<std::string>> {
        if (auto made = dirs.make_root(); !made) return std::unexpected(std::move(made.error()));
        return dirs.strays(ids);
      });
  if (!strays) co_return std::unexpected(std::move(strays.error()));
  std::int64_t removed = 0;
  for (const std::string& name : *strays) {
    Removal last = Removal::more;
    while (last == Removal::more) {
      auto step = co_await disk->call(
          [dirs, name, log] { return Result<Removal>(dirs.remove_step(name, *log)); });
      if (!step) co_return std::unexpected(std::move(step.error()));
      last = *step;
    }
    if (last == Removal::done) ++removed;
  }
  co_return removed;
}

}  // namespace clawdforge
