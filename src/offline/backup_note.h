// The file `last-backup` in the data directory: when `clawdforge backup` last copied its ledger. It
// is for the doctor, and for people.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace clawdforge {

// Does nothing where the directory cannot be written: the backup is made all the same.
void note_backup(const std::string& data_dir, std::int64_t unix_seconds);
// None: no backup is known.
std::optional<std::int64_t> last_backup(const std::string& data_dir);

}  // namespace clawdforge
