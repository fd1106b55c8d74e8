#include "storage/work/dirs_removal.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "storage/disk/tree.h"

namespace clawdforge {

using Removal = NamedDirs::Removal;

void remove_dir(const NamedDirs& dirs, std::string id, Lane lane, Disk& disk, Log& log) {
  disk.post_in_steps(std::move(lane), [dirs, id = std::move(id), log = &log] {
    return dirs.remove_step(id, *log) == Removal::more;
  });
}

void remove_dirs_again(const NamedDirs& dirs, Disk& disk, Log& log) {
  disk.post_in_steps(
      Lane(), [dirs, log = &log, names = std::optional<std::vector<std::string>>()]() mutable {
        if (!names) names = dirs.unremoved_names();  // they belong to the disk's thread
        if (names->empty()) return false;
        if (dirs.remove_step(names->back(), *log) != Removal::more) names->pop_back();
        return !names->empty();
      });
}

Async<std::int64_t> keep_only_dirs(KeptDirs kept, Disk* disk, Log* log) {
  auto strays = co_await disk->call(Lane(), [kept]() -> Result<std::vector<std::string>> {
    for (const NamedDirs* dirs : {&kept.dirs, &kept.trash}) {
      if (auto made = dirs->make_root(); !made) return std::unexpected(std::move(made.error()));
    }
    return kept.dirs.strays(kept.ids);
  });
  if (!strays) co_return std::unexpected(std::move(strays.error()));
  const auto count = static_cast<std::int64_t>(strays->size());
  while (!strays->empty()) {
    const std::size_t left = strays->size() - std::min(strays->size(), kTreeStepEntriesMax);
    std::vector<std::string> names(strays->begin() + static_cast<std::ptrdiff_t>(left),
                                   strays->end());
    strays->resize(left);
    const auto unmoved = co_await disk->call(
        Lane(), [kept, names = std::move(names)]() -> Result<std::vector<std::string>> {
          std::vector<std::string> unmoved_names;
          for (const std::string& name : names) {
            if (!kept.dirs.move_to(kept.trash, name)) unmoved_names.push_back(name);
          }
          return unmoved_names;
        });
    if (!unmoved) co_return std::unexpected(unmoved.error());
    for (const std::string& name : *unmoved) remove_dir(kept.dirs, name, Lane(), *disk, *log);
  }
  co_return count;
}

}  // namespace clawdforge
