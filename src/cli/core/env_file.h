// The files in which a user keeps where a gateway is and the tokens for it: lines of NAME=VALUE,
// as the original's `cf` has them. ~/.config/clawdforge/cf.env is the default one, and a profile
// is one of the same kind in the folder `profiles` beside it. Blocks.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/secret.h"
#include "cli/core/complaint.h"

namespace clawdforge {

struct EnvFile {
  std::string url{};      // CLAWDFORGE_URL; empty: the gateway of this machine
  std::string ca_file{};  // CLAWDFORGE_CA: whom to trust for it; empty: the system's authorities
  Secret token{};         // CLAWDFORGE_TOKEN
  Secret admin_token{};   // CLAWDFORGE_ADMIN_TOKEN
};

// Where the file of a profile is; of no profile: cf.env. Empty: there is no home directory.
std::string env_file_path(const std::string& profile);
// 1 to 64 of a-z, A-Z, 0-9, _, - and not a dot first.
bool is_profile_name(std::string_view name);
std::vector<std::string> profile_names();

// None when there is no file. kExitUsage when others may read or write it, when it is not the
// caller's own, or when it is too large.
Asked<std::optional<EnvFile>> read_env_file(const std::string& path);

// Writes it whole or not at all, 0600, in a folder that is made 0700.
Asked<void> write_env_file(const std::string& path, const EnvFile& content);

}  // namespace clawdforge
