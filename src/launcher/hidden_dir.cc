#include "launcher/hidden_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/limits.h>
#include <linux/mount.h>
#include <stddef.h>

namespace launcher {

namespace {

constexpr long kFlags = MS_NOSUID | MS_NODEV | MS_NOEXEC;

// What `path` has behind the directory `above`, which begins with a slash. Null: it is not below.
const char* rest_below(const char* above, const char* path) {
  while (*above != '\0' && *above == *path) {
    ++above;
    ++path;
  }
  return *above == '\0' && *path == '/' && path[1] != '\0' ? path : nullptr;
}

// The directories of `path` that are missing below `above`, `path` itself included.
void make_directories(const char* above, const char* path) {
  const char* rest = rest_below(above, path);
  if (rest == nullptr) give_up("kept-elsewhere", -EINVAL);
  char made[PATH_MAX];
  size_t size = 0;
  for (; path[size] != '\0'; ++size) {
    if (size + 1 >= sizeof made) give_up("kept-path", -ENAMETOOLONG);
    made[size] = path[size];
    const bool is_whole = path[size + 1] == '\0' || path[size + 1] == '/';
    if (path + size <= rest || !is_whole) continue;
    made[size + 1] = '\0';
    const Answer answer = call(SYS_mkdirat, AT_FDCWD, made, 0755);
    if (answer < 0 && answer != -EEXIST) give_up("kept-place", answer);
  }
}

}  // namespace

void hide_directory(const Order& order) {
  // A second mount of each kept directory, which is nowhere yet.
  int kept[kKeptDirsMax];
  for (int i = 0; i < order.kept_count; ++i) {
    const Answer opened = call(SYS_open_tree, AT_FDCWD, order.kept[i],
                               OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
    if (opened < 0) give_up("kept", opened);
    kept[i] = static_cast<int>(opened);
  }
  const char* hidden = order.hidden_dir;
  // Room for the places of the kept ones, and no more.
  Answer done = call(SYS_mount, "tmpfs", hidden, "tmpfs", kFlags, "mode=0755,size=4k,nr_inodes=64");
  if (done < 0) give_up("hide", done);
  for (int i = 0; i < order.kept_count; ++i) {
    make_directories(hidden, order.kept[i]);
    done = call(SYS_move_mount, kept[i], "", AT_FDCWD, order.kept[i], MOVE_MOUNT_F_EMPTY_PATH);
    if (done < 0) give_up("keep", done);
    call(SYS_close, kept[i]);
  }
  done = call(SYS_mount, nullptr, hidden, nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY | kFlags);
  if (done < 0) give_up("hide-read-only", done);
}

}  // namespace launcher
