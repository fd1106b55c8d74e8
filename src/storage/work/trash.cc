#include "storage/work/trash.h"

#include <cstdint>
#include <optional>
#include <vector>

#include "storage/work/dirs_removal.h"

namespace clawdforge {

NamedDirs trash_in(const std::string& data_dir) {
  return {data_dir + "/trash", "name",
          "something in the trash cannot be removed; the next sweep tries again"};
}

void Trash::empty() {
  disk_.post_in_steps(Lane(), [dirs = dirs_, log = &log_, removed = std::int64_t{0},
                               names = std::optional<std::vector<std::string>>()]() mutable {
    if (!names) names = dirs.strays({}).value_or(std::vector<std::string>());
    if (names->empty()) {
      if (removed > 0) log->info("the trash was emptied", {{"entries", removed}});
      return false;
    }
    const NamedDirs::Removal step = dirs.remove_step(names->back(), *log);
    if (step == NamedDirs::Removal::done) ++removed;
    if (step != NamedDirs::Removal::more) names->pop_back();
    return true;
  });
}

void Trash::remove_again() { remove_dirs_again(dirs_, disk_, log_); }

}  // namespace clawdforge
