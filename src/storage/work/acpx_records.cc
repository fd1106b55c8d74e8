#include "storage/work/acpx_records.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/secret.h"
#include "storage/disk/directory.h"
#include "storage/disk/file_error.h"
#include "storage/disk/tree.h"

namespace clawdforge {
namespace {

constexpr std::string_view kPrefix = "acpx:";  // as agent/acpx_command.h has it
constexpr std::size_t kRecordIdBytesMax = 200;
constexpr std::size_t kRecordEntriesMax = 200'000;  // looked at for one record
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

// The removal of one record, in steps: agents can write to these directories, too, and leave there
// as much as they like. The disk's thread.
class RecordRemoval {
 public:
  RecordRemoval(const std::string& home, const std::string& socket_root, const std::string& id) {
    const std::string record = file_name_of(id);
    const std::string queue = digits_of(id, kQueueDigits) + ".";
    places_.push_back({home + "/.acpx/sessions", record + ".json", record + ".stream."});
    places_.push_back({home + "/.acpx/queues", {}, queue});
    places_.push_back(
        {fmt::format("{}/acpx-{}", socket_root, digits_of(home, kHomeDigits)), {}, queue});
  }

  // Looks at the next entries. True: there are more.
  Result<bool> step() {
    for (std::size_t looked = 0; looked < kTreeStepEntriesMax; ++looked) {
      if (!listed_.is_open() && !open_next()) return ended();
      const dirent* const entry = listed_.next();
      if (entry == nullptr) {
        listed_ = Directory();
        continue;
      }
      if (++entries_ > kRecordEntriesMax) {
        return file_failure(EOVERFLOW, "looking for a record of acpx among too many files");
      }
      if (here_->has(entry->d_name)) remove(entry->d_name);
    }
    return true;
  }

 private:
  struct Place {
    std::string directory;
    std::string name;
    std::string prefix;

    bool has(std::string_view file) const { return file == name || file.starts_with(prefix); }
  };

  bool open_next() {
    while (next_ < places_.size()) {
      here_ = &places_[next_++];
      Descriptor opened(::open(here_->directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
      if (opened.is_open()) listed_ = Directory(std::move(opened));
      if (listed_.is_open()) return true;
      if (errno != ENOENT) note(file_failure(errno, "opening a directory of acpx").error());
    }
    return false;
  }

  // Files in the directory itself: a directory is never removed.
  void remove(const char* name) {
    if (::unlinkat(listed_.number(), name, 0) == 0 || errno == ENOENT) return;
    note(file_failure(errno, "removing a file of acpx").error());
  }

  // The first failure is told when all has been tried.
  void note(Failure failure) {
    if (!failure_) failure_ = std::move(failure);
  }
  Result<bool> ended() const {
    if (failure_) return std::unexpected(*failure_);
    return false;
  }

  std::vector<Place> places_;
  std::size_t next_ = 0;
  const Place* here_ = nullptr;
  Directory listed_;
  std::size_t entries_ = 0;
  std::optional<Failure> failure_;
};

}  // namespace

AcpxRecords::AcpxRecords(std::string home, Disk& disk, std::string socket_root)
    : home_(std::move(home)), socket_root_(std::move(socket_root)), disk_(disk) {}

Async<void> AcpxRecords::remove(std::string agent_session_id, Lane lane) {
  if (home_.empty() || !agent_session_id.starts_with(kPrefix)) co_return Result<void>{};
  const std::string id = agent_session_id.substr(kPrefix.size());
  if (id.empty() || id.size() > kRecordIdBytesMax) co_return Result<void>{};
  const auto removal = std::make_shared<RecordRemoval>(home_, socket_root_, id);
  for (;;) {
    auto step = co_await disk_.call(lane, [removal] { return removal->step(); });
    if (!step) co_return std::unexpected(std::move(step.error()));
    if (!*step) co_return Result<void>{};
  }
}

}  // namespace clawdforge
