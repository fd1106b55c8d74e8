#include "launcher/own_root.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/limits.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <linux/stat.h>

namespace launcher {

namespace {

constexpr long kDetach = 2;  // MNT_DETACH, of a header that does not go together with those above
constexpr const char* kEmptyFile = "/.empty";
constexpr unsigned long kUsual = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;

// Room for the places' own places, and no more: the tree could fill memory otherwise.
constexpr const char* kSkeletonBytes = "1m";
constexpr const char* kSkeletonInodes = "4096";
// /tmp and /dev/shm, which are in memory.
constexpr const char* kTemporaryBytes = "512m";
constexpr const char* kTemporaryInodes = "65536";

// How often a place is looked up again that another program replaces at this moment.
constexpr int kReplacedTriesMax = 64;

// The tree sees these of the machine's devices.
constexpr const char* kDevices[] = {"/dev/null",   "/dev/zero",    "/dev/full",
                                    "/dev/random", "/dev/urandom", "/dev/tty"};
constexpr int kDeviceCount = sizeof kDevices / sizeof kDevices[0];

struct Link {
  const char* path;
  const char* target;
};
constexpr Link kDeviceLinks[] = {{"/dev/fd", "/proc/self/fd"},
                                 {"/dev/stdin", "/proc/self/fd/0"},
                                 {"/dev/stdout", "/proc/self/fd/1"},
                                 {"/dev/stderr", "/proc/self/fd/2"},
                                 {"/dev/ptmx", "pts/ptmx"}};

Answer set_attributes(int mount, const char* path, long flags, unsigned long attributes) {
  mount_attr wanted = {};
  wanted.attr_set = attributes;
  return call(SYS_mount_setattr, mount, path, flags, &wanted, sizeof wanted);
}

// A second mount of what is at `path` below the root `old_root`, which is nowhere yet. The gateway
// has resolved all links; one that an agent has put there since is refused. Below zero: what the
// kernel answered.
Answer clone_of(int old_root, const char* path, unsigned long attributes) {
  open_how how = {};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_NO_SYMLINKS;
  const Answer found = call(SYS_openat2, old_root, path + 1, &how, sizeof how);
  if (found < 0) return found;
  const Answer clone = call(SYS_open_tree, found, "",
                            OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE | AT_EMPTY_PATH);
  call(SYS_close, found);
  if (clone < 0) return clone;
  const Answer set =
      set_attributes(static_cast<int>(clone), "", AT_EMPTY_PATH | AT_RECURSIVE, attributes);
  if (set < 0) call(SYS_close, clone);
  return set < 0 ? set : clone;
}

struct Setting {
  const char* key;
  const char* value;  // null: a flag
};

// A new file system, which is nowhere yet.
template <int Count>
int file_system(const char* type, unsigned long attributes, const Setting (&settings)[Count],
                const char* step) {
  const Answer made = call(SYS_fsopen, type, FSOPEN_CLOEXEC);
  if (made < 0) give_up(step, made);
  for (const Setting& setting : settings) {
    const long kind = setting.value == nullptr ? FSCONFIG_SET_FLAG : FSCONFIG_SET_STRING;
    const Answer set = call(SYS_fsconfig, made, kind, setting.key, setting.value, 0L);
    if (set < 0) give_up(step, set);
  }
  const Answer created = call(SYS_fsconfig, made, FSCONFIG_CMD_CREATE, nullptr, nullptr, 0L);
  if (created < 0) give_up(step, created);
  const Answer mount = call(SYS_fsmount, made, FSMOUNT_CLOEXEC, attributes);
  if (mount < 0) give_up(step, mount);
  call(SYS_close, made);
  return static_cast<int>(mount);
}

int memory(const char* bytes, const char* inodes, const char* mode) {
  const Setting settings[] = {{"size", bytes}, {"nr_inodes", inodes}, {"mode", mode}};
  return file_system("tmpfs", kUsual, settings, "tmpfs");
}

// The mount has its place, or is gone.
Answer try_put(int mount, const char* path) {
  const Answer moved = call(SYS_move_mount, mount, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH);
  call(SYS_close, mount);
  return moved;
}

void put(int mount, const char* path, const char* step) {
  const Answer moved = try_put(mount, path);
  if (moved < 0) give_up(step, moved);
}

// The directories of `path` that are missing, `path` itself not included.
void make_parents(const char* path) {
  char made[PATH_MAX];
  for (size_t size = 0; path[size] != '\0'; ++size) {
    if (size + 1 >= sizeof made) give_up("place-path", -ENAMETOOLONG);
    if (size > 0 && path[size] == '/') {
      made[size] = '\0';
      const Answer answer = call(SYS_mkdirat, AT_FDCWD, made, 0755);
      if (answer < 0 && answer != -EEXIST) give_up("parent", answer);
    }
    made[size] = path[size];
  }
}

void make_directory(const char* path) {
  make_parents(path);
  const Answer made = call(SYS_mkdirat, AT_FDCWD, path, 0755);
  if (made < 0 && made != -EEXIST) give_up("directory", made);
}

void make_link(const char* path, const char* target) {
  make_parents(path);
  const Answer made = call(SYS_symlinkat, target, AT_FDCWD, path);
  if (made < 0 && made != -EEXIST) give_up("link", made);
}

// The place for a mount: a directory or a file, as that is.
void make_place(int mount, const char* path) {
  struct statx found = {};
  const Answer looked = call(SYS_statx, mount, "", AT_EMPTY_PATH, STATX_TYPE, &found);
  if (looked < 0) give_up("place-type", looked);
  if ((found.stx_mode & S_IFMT) == S_IFDIR) return make_directory(path);
  make_parents(path);
  const Answer made = call(SYS_mknodat, AT_FDCWD, path, S_IFREG | 0444, 0L);
  if (made < 0 && made != -EEXIST) give_up("file", made);
}

// Mounts that are nowhere yet; -1: left out.
struct Clones {
  int devices[kDeviceCount];
  int proc;
};

void take_clones(int old_root, Clones& clones) {
  for (int i = 0; i < kDeviceCount; ++i) {
    // What a machine does not have, its agents do not have either.
    const Answer clone =
        clone_of(old_root, kDevices[i], MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_RDONLY);
    clones.devices[i] = clone < 0 ? -1 : static_cast<int>(clone);
  }
  // While the one of the machine is still in sight: without that the kernel allows none.
  const Setting none[] = {{"source", "proc"}};
  clones.proc = file_system("proc", kUsual | MOUNT_ATTR_NOEXEC, none, "mount-proc");
}

// An empty root in the place of the one that was, which comes to lie over the new one: paths do not
// lead there any more, its descriptor does until it is taken away.
void exchange_root() {
  const int root = memory(kSkeletonBytes, kSkeletonInodes, "0755");
  Answer done = call(SYS_move_mount, root, "", AT_FDCWD, "/tmp", MOVE_MOUNT_F_EMPTY_PATH);
  if (done < 0) give_up("root", done);
  done = call(SYS_fchdir, root);
  if (done < 0) give_up("root", done);
  call(SYS_close, root);
  done = call(SYS_pivot_root, ".", ".");
  if (done < 0) give_up("pivot-root", done);
}

void take_old_root_away(int old_root) {
  call(SYS_close, old_root);
  Answer done = call(SYS_umount2, ".", kDetach);
  if (done < 0) give_up("detach-root", done);
  done = call(SYS_chdir, "/");
  if (done < 0) give_up("root", done);
}

void make_devices(const Clones& clones) {
  make_directory("/dev");
  for (int i = 0; i < kDeviceCount; ++i) {
    if (clones.devices[i] < 0) continue;
    make_place(clones.devices[i], kDevices[i]);
    put(clones.devices[i], kDevices[i], "device");
  }
  for (const Link& link : kDeviceLinks) make_link(link.path, link.target);
  make_directory("/dev/pts");
  const Setting terminals[] = {{"newinstance", nullptr}, {"ptmxmode", "0666"}, {"mode", "0620"}};
  put(file_system("devpts", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, terminals, "devpts"), "/dev/pts",
      "devpts");
  make_directory("/dev/shm");
  put(memory(kTemporaryBytes, kTemporaryInodes, "1777"), "/dev/shm", "shm");
}

// Puts what the machine has at the place's path there. The kernel refuses to mount a file that
// another program replaced since it was looked up (an installation of packages replaces
// /etc/ld.so.cache): then it is looked up again.
void show_place(int old_root, const Place& place) {
  const unsigned long attributes =
      place.kind == PlaceKind::write ? kUsual : kUsual | MOUNT_ATTR_RDONLY;
  Answer last = -ENOENT;
  for (int tries = 0; tries < kReplacedTriesMax && last == -ENOENT; ++tries) {
    last = clone_of(old_root, place.path, attributes);
    if (last < 0) continue;
    make_place(static_cast<int>(last), place.path);
    last = try_put(static_cast<int>(last), place.path);
  }
  const bool is_absent = last == -ENOENT || last == -ENOTDIR || last == -ELOOP;
  if (last < 0 && !(is_absent && place.kind == PlaceKind::read_if_there)) give_up("place", last);
}

// By a file without content, which has no name any more.
void cover_file(const char* path) {
  const Answer made = call(SYS_mknodat, AT_FDCWD, kEmptyFile, S_IFREG | 0444, 0L);
  if (made < 0) give_up("cover-file", made);
  const Answer root = call(SYS_openat, AT_FDCWD, "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (root < 0) give_up("cover-file", root);
  const Answer clone = clone_of(static_cast<int>(root), kEmptyFile, kUsual | MOUNT_ATTR_RDONLY);
  if (clone < 0) give_up("cover-file", clone);
  call(SYS_close, root);
  put(static_cast<int>(clone), path, "cover-file");
  const Answer removed = call(SYS_unlinkat, AT_FDCWD, kEmptyFile, 0L);
  if (removed < 0) give_up("cover-file", removed);
}

// True: it is a directory, and now another one, in memory. What has gone since the plan was made
// needs no cover.
bool cover(const char* path) {
  struct statx found = {};
  const Answer looked = call(SYS_statx, AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &found);
  if (looked == -ENOENT) return false;
  if (looked < 0) give_up("cover", looked);
  if ((found.stx_mode & S_IFMT) != S_IFDIR) {
    cover_file(path);
    return false;
  }
  put(memory(kSkeletonBytes, kSkeletonInodes, "0755"), path, "cover");
  return true;
}

void fill_place(int old_root, const Place& place) {
  if (place.kind == PlaceKind::link) return make_link(place.path, place.target);
  if (place.kind == PlaceKind::temporary) {
    make_directory(place.path);
    return put(memory(kTemporaryBytes, kTemporaryInodes, "1777"), place.path, "tmp");
  }
  show_place(old_root, place);
}

void close_for_writing(const char* path) {
  const Answer closed = set_attributes(AT_FDCWD, path, 0, MOUNT_ATTR_RDONLY);
  if (closed < 0) give_up("read-only", closed);
}

}  // namespace

void make_root(const Order& order) {
  // What is mounted in here never shows outside, nor the reverse.
  const Answer is_private = call(SYS_mount, nullptr, "/", nullptr, MS_REC | MS_PRIVATE);
  if (is_private < 0) give_up("mount-private", is_private);
  const Answer old = call(SYS_openat, AT_FDCWD, "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (old < 0) give_up("root", old);
  const int old_root = static_cast<int>(old);
  Clones clones;
  take_clones(old_root, clones);
  exchange_root();
  make_directory("/proc");
  put(clones.proc, "/proc", "put-proc");
  make_devices(clones);
  bool is_covered[kPlacesMax];  // by a directory that can still be written
  for (int i = 0; i < order.place_count; ++i) {
    const bool is_cover = order.places[i].kind == PlaceKind::cover;
    is_covered[i] = is_cover && cover(order.places[i].path);
    if (!is_cover) fill_place(old_root, order.places[i]);
  }
  take_old_root_away(old_root);
  for (int i = 0; i < order.place_count; ++i) {
    if (is_covered[i]) close_for_writing(order.places[i].path);
  }
  close_for_writing("/");
}

}  // namespace launcher
