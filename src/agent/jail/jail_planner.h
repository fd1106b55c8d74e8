// JailPlanner knows what every jailed agent of this gateway sees, and makes the plan for one of
// them. Owned by the daemon; io thread only. A plan takes some tenths of a millisecond.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/policy.h"
#include "model/workspace.h"
#include "process/launch/child_plan.h"

namespace clawdforge {

// Covered of what lies beside a login. A directory with more is not shown.
inline constexpr std::size_t kCoveredBesideLoginMax = 100;

// What one agent needs to see, beside what all do.
struct JailNeeds {
  std::vector<std::vector<std::string>> commands = {};  // whose installations it needs
  std::vector<std::string> files = {};                  // that it can read, where they are there
  std::string own_dir = {};                             // can be written; empty: none
  std::string home_dir = {};                            // likewise
  std::vector<VisiblePath> visible = {};
  // A directory that it can read, of which it sees only the file of this name; empty: all of it.
  std::string login_dir = {};
  std::string login_file = {};
};

class JailPlanner {
 public:
  struct Options {
    std::string data_dir;
    std::string own_program;
    std::map<std::string, std::string> environment;       // ours
    std::vector<std::vector<std::string>> commands = {};  // that every agent may start
    bool is_own_root = true;  // else by rules: what is shared with the machine is named as it is
    bool is_off = false;      // `auto` means off, because the owner's own settings shall apply
  };

  explicit JailPlanner(Options options);

  // `policy` is the effective one. The mode that counts.
  JailMode mode_of(const Policy& policy) const;
  // Where a program is tried; none: it will not be jailed. Its agents may have homes of their own.
  std::optional<JailPlan> trial_plan(const std::string& program, const Policy& policy,
                                     bool sees_home) const;
  const std::string& home() const { return home_; }  // of the gateway's user
  JailPlan plan(const JailNeeds& needs, const Policy& policy, std::string_view search_path) const;

 private:
  std::string expanded(const std::string& path) const;

  const Options options_;
  const std::string home_;
};

}  // namespace clawdforge
