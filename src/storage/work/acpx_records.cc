#include "storage/work/acpx_records.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <utility>
#include <vector>

#include "base/secret.h"
#include "storage/disk/directory.h"
#include "storage/disk/file_error.h"

namespace clawdforge {
namespace {

constexpr std::string_view kPrefix = "acpx:";  // as agent/acpx_command.h has it
constexpr std::size_t kRecordIdBytesMax = 200;
constexpr std::size_t kHomeDigits = 10;
constexpr std::size_t kQueueDigits = 24;

// As acpx makes file names of ids, which are an agent's own words.
std::string file_name_of(std::string_view id) {
  constexpr std::string_view kPlain = "-_.!~*'()";
  std::string name;
  for (const char c : id) {
    const bool is_plain = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                          (c >= '0' && c <= '9') || kPlain.contains(c);
    name += is_plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return name;
}

std::string digits_of(std::string_view text, std::size_t count) {
  return to_hex(sha256(text)).substr(0, count);
}

using Matcher = std::function<bool(std::string_view name)>;

// Files in the directory itself: a directory is never removed.
Result<void> remove_files(const std::string& directory, const Matcher& is_ours) {
  Descriptor opened(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened.is_open() && errno == ENOENT) return {};
  if (!opened.is_open()) return file_failure(errno, "opening a directory of acpx");
  Directory listed(std::move(opened));
  if (!listed.is_open()) return file_failure(errno, "listing a directory of acpx");
  std::vector<std::string> names;
  while (const dirent* entry = listed.next()) {
    if (is_ours(entry->d_name)) names.emplace_back(entry->d_name);
  }
  for (const std::string& name : names) {
    if (::unlinkat(listed.number(), name.c_str(), 0) == 0 || errno == ENOENT) continue;
    return file_failure(errno, "removing a file of acpx");
  }
  return {};
}

Result<void> remove_record(const std::string& home, const std::string& socket_root,
                           const std::string& id) {
  const std::string name = file_name_of(id);
  const std::string key = digits_of(id, kQueueDigits);
  const auto is_record = [&](std::string_view file) {
    return file == name + ".json" || file.starts_with(name + ".stream.");
  };
  const auto is_queue = [&](std::string_view file) { return file.starts_with(key + "."); };
  const std::string sockets = fmt::format("{}/acpx-{}", socket_root, digits_of(home, kHomeDigits));
  auto removed = remove_files(home + "/.acpx/sessions", is_record);
  for (const std::string& directory : {home + "/.acpx/queues", sockets}) {
    auto more = remove_files(directory, is_queue);
    if (removed) removed = std::move(more);
  }
  return removed;
}

}  // namespace

AcpxRecords::AcpxRecords(std::string home, Disk& disk, std::string socket_root)
    : home_(std::move(home)), socket_root_(std::move(socket_root)), disk_(disk) {}

Async<void> AcpxRecords::remove(std::string agent_session_id) {
  if (home_.empty() || !agent_session_id.starts_with(kPrefix)) co_return Result<void>{};
  std::string id = agent_session_id.substr(kPrefix.size());
  if (id.empty() || id.size() > kRecordIdBytesMax) co_return Result<void>{};
  co_return co_await disk_.call([home = home_, socket_root = socket_root_, id = std::move(id)] {
    return remove_record(home, socket_root, id);
  });
}

}  // namespace clawdforge
