#include "offline/backup_note.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <fstream>

#include "base/descriptor.h"

namespace clawdforge {
namespace {

std::string note_path(const std::string& data_dir) { return data_dir + "/last-backup"; }

}  // namespace

void note_backup(const std::string& data_dir, std::int64_t unix_seconds) {
  const Descriptor file(::open(note_path(data_dir).c_str(),
                               O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (file.number() < 0) return;
  const std::string text = fmt::format("{}\n", unix_seconds);
  if (::write(file.number(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    ::unlink(note_path(data_dir).c_str());
  }
}

std::optional<std::int64_t> last_backup(const std::string& data_dir) {
  std::ifstream in(note_path(data_dir));
  std::int64_t at = 0;
  if (in >> at) return at;
  return std::nullopt;
}

}  // namespace clawdforge
