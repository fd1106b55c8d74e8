#include "launcher/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <linux/stat.h>

namespace launcher {

namespace {

// Newer than the headers that this is built with.
constexpr unsigned long kRefer = 1UL << 13;          // ABI 2
constexpr unsigned long kTruncate = 1UL << 14;       // ABI 3
constexpr unsigned long kDeviceControl = 1UL << 15;  // ABI 5
constexpr unsigned long kScopes = 3;                 // ABI 6: abstract sockets and signals
constexpr long kScopeVersion = 6;

// The kernel's own, which has grown; a kernel takes a longer one whose end is zero.
struct Ruleset {
  unsigned long files;
  unsigned long network;
  unsigned long scopes;
};

constexpr unsigned long kReading =
    LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
// What can be said of a file that is not a directory.
constexpr unsigned long kOfFiles = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE |
                                   LANDLOCK_ACCESS_FS_WRITE_FILE | kTruncate | kDeviceControl;

unsigned long all_rights(long version) {
  unsigned long rights = (1UL << 13) - 1;
  if (version >= 2) rights |= kRefer;
  if (version >= 3) rights |= kTruncate;
  if (version >= 5) rights |= kDeviceControl;
  return rights;
}

Answer allow(long ruleset, const Place& place, unsigned long rights) {
  const Answer file = call(SYS_openat, AT_FDCWD, place.path, O_PATH | O_CLOEXEC);
  if (file < 0) return place.kind == PlaceKind::read_if_there && file == -ENOENT ? 0 : file;
  struct statx found = {};
  Answer answer = call(SYS_statx, file, "", AT_EMPTY_PATH, STATX_TYPE, &found);
  if (answer >= 0) {
    if ((found.stx_mode & S_IFMT) != S_IFDIR) rights &= kOfFiles;
    landlock_path_beneath_attr rule = {};
    rule.allowed_access = rights;
    rule.parent_fd = static_cast<int>(file);
    answer = call(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0L);
  }
  call(SYS_close, file);
  return answer;
}

}  // namespace

Answer restrict_program(const Order& order) {
  if (!order.is_root_wanted && !order.are_rules_wanted) return 0;
  const long version =
      call(SYS_landlock_create_ruleset, nullptr, 0L, LANDLOCK_CREATE_RULESET_VERSION);
  if (!order.are_rules_wanted && version < kScopeVersion) return 0;
  if (version < 0) return version;
  Ruleset wanted = {};
  if (order.are_rules_wanted) wanted.files = all_rights(version);
  if (version >= kScopeVersion) wanted.scopes = kScopes;
  const Answer ruleset = call(SYS_landlock_create_ruleset, &wanted, sizeof wanted, 0L);
  if (ruleset < 0) return ruleset;
  for (int i = 0; order.are_rules_wanted && i < order.place_count; ++i) {
    const Place& place = order.places[i];
    if (place.kind > PlaceKind::write) continue;
    const unsigned long rights = place.kind == PlaceKind::write ? wanted.files : kReading;
    const Answer allowed = allow(ruleset, place, rights);
    if (allowed < 0) return allowed;
  }
  const Answer restricted = call(SYS_landlock_restrict_self, ruleset, 0L);
  call(SYS_close, ruleset);
  return restricted;
}

}  // namespace launcher
