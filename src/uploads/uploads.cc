#include "uploads/uploads.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "base/refusals.h"
#include "ledger/rows/upload_rows.h"
#include "storage/work/attachments.h"
#include "storage/work/incoming_file.h"
#include "storage/work/upload_files.h"

namespace clawdforge {
namespace {

constexpr std::string_view kTokenPrefix = "ff_";
constexpr std::size_t kExtensionBytesMax = 16;
constexpr std::int64_t kTtlSecsMin = 60;
constexpr std::int64_t kTtlSecsMax = 86'400;
constexpr std::int64_t kTtlSecsDefault = 3'600;
// What each upload counts for beside its bytes: a row, a name and a block of the disk.
constexpr std::int64_t kUploadOverheadBytes = 4'096;

// A file that has its name but no row yet. It goes again, also when the coroutine that
// waits for the row is cancelled.
class UnlistedFile {
 public:
  UnlistedFile(UploadFiles& files, const Digest& digest, Lane lane)
      : files_(&files), digest_(digest), lane_(std::move(lane)) {}
  ~UnlistedFile() {
    if (files_ != nullptr) files_->remove({digest_}, lane_);
  }
  UnlistedFile(const UnlistedFile&) = delete;
  UnlistedFile& operator=(const UnlistedFile&) = delete;

  void release() { files_ = nullptr; }

 private:
  UploadFiles* files_;
  const Digest digest_;
  const Lane lane_;
};

std::unexpected<Failure> uploads_full(const ByteReservation& space) {
  auto refused =
      fail_for_now(Errc::over_quota, "uploads_full",
                   "This app's uploads take as much space as they may; wait until some expire.",
                   std::chrono::seconds(60));
  refused.error().limit = standing_limit("bytes", space.bytes_max(), space.held_by_app());
  return refused;
}

}  // namespace

IncomingUpload::IncomingUpload(std::unique_ptr<IncomingFile> file, std::int64_t bytes_max,
                               ByteTally& tally, AppName app,
                               std::optional<std::int64_t> app_bytes_max)
    : file_(std::move(file)), bytes_max_(bytes_max), space_(tally, std::move(app), app_bytes_max) {}

IncomingUpload::~IncomingUpload() = default;

std::string safe_extension(std::string_view filename) {
  const std::size_t dot = filename.rfind('.');
  if (dot == filename.npos) return {};
  const std::string_view ending = filename.substr(dot + 1);
  if (ending.empty() || ending.size() > kExtensionBytesMax) return {};
  std::string extension = ".";
  for (const char c : ending) {
    const char lower = c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
    if (!(lower >= 'a' && lower <= 'z') && !(lower >= '0' && lower <= '9')) return {};
    extension += lower;
  }
  return extension;
}

Async<void> IncomingUpload::append(std::string bytes) {
  if (static_cast<std::int64_t>(bytes.size()) > bytes_max_ - file_->size()) {
    co_return fail(Errc::too_large, "file_too_large",
                   fmt::format("The file is larger than the {} bytes allowed.", bytes_max_));
  }
  if (!space_.add(static_cast<std::int64_t>(bytes.size()))) co_return uploads_full(space_);
  co_return co_await file_->append(std::move(bytes));
}

Uploads::Uploads(UploadRows& rows, UploadFiles& files, const Clock& clock, IdSource& ids,
                 InstanceId instance_id, std::int64_t bytes_max_per_app)
    : rows_(rows),
      files_(files),
      clock_(clock),
      ids_(ids),
      instance_id_(std::move(instance_id)),
      tally_(bytes_max_per_app) {}

Async<void> Uploads::count_stored() {
  tally_.begin_count();
  auto stored = co_await rows_.bytes_by_app(kUploadOverheadBytes);
  if (!stored) co_return std::unexpected(std::move(stored.error()));
  tally_.end_count(std::move(*stored));
  co_return Result<void>{};
}

Async<std::unique_ptr<IncomingUpload>> Uploads::begin(AppName app, std::int64_t bytes_max,
                                                      std::optional<std::int64_t> app_bytes_max) {
  auto file = co_await files_.begin(Lane(app));
  if (!file) co_return std::unexpected(file.error());
  auto incoming = std::make_unique<IncomingUpload>(std::move(*file), bytes_max, tally_,
                                                   std::move(app), app_bytes_max);
  if (!incoming->space_.add(kUploadOverheadBytes)) co_return uploads_full(incoming->space_);
  co_return incoming;
}

Async<KeptUpload> Uploads::keep(std::unique_ptr<IncomingUpload> incoming, NewUpload upload) {
  KeptUpload kept{
      .token = ids_.token(kTokenPrefix),
      .ttl_secs = std::clamp(upload.ttl_secs.value_or(kTtlSecsDefault), kTtlSecsMin, kTtlSecsMax),
      .size = incoming->file_->size()};
  const Digest digest = sha256(kept.token.reveal());
  // From before the file has its name: a cancelled wait may still end in one.
  UnlistedFile unlisted(files_, digest, Lane(upload.app));
  auto named = co_await incoming->file_->keep(digest);
  if (!named) {
    if (!was_begun(named.error())) unlisted.release();
    co_return std::unexpected(named.error());
  }
  const TimePoint now = clock_.now();
  std::optional<KeyWrite> answer;
  if (upload.key) answer = upload.key->keep(upload.answer_of(kept), now);
  auto added = co_await rows_.add({.token_digest = digest,
                                   .app = std::move(upload.app),
                                   .size = kept.size,
                                   .extension = safe_extension(upload.filename),
                                   .created_at = now,
                                   .expires_at = now + std::chrono::seconds(kept.ttl_secs),
                                   .instance_id = instance_id_,
                                   .name = safe_file_name(upload.filename)},
                                  std::move(answer));
  if (upload.key) (added ? upload.key->is_settled : upload.key->is_undone) = true;
  if (!added) co_return std::unexpected(added.error());
  unlisted.release();
  incoming->space_.keep();
  co_return kept;
}

Async<void> Uploads::expire(Secret token) {
  const Digest digest = sha256(token.reveal());
  const auto removal = co_await files_.remove_and_tell({digest});
  if (!removal) co_return std::unexpected(removal.error());
  co_return co_await rows_.remove({digest});
}

Async<std::vector<Attachment>> Uploads::find(AppName app, std::vector<std::string> tokens) {
  std::vector<Attachment> attachments;
  if (tokens.empty()) co_return attachments;
  std::vector<Digest> digests;
  for (const std::string& token : tokens) {
    if (!token.starts_with(kTokenPrefix)) {
      co_return fail(Errc::not_found, "file_not_found",
                     "There is no such file, or it has expired.");
    }
    digests.push_back(sha256(token));
  }
  auto uploads = co_await rows_.find(std::move(app), std::move(digests), clock_.now());
  if (!uploads) co_return std::unexpected(uploads.error());
  for (const Upload& upload : *uploads) {
    // Other programs may write rows, so what a row says is as foreign as a file's name.
    attachments.push_back({.path = files_.path_of(upload.token_digest),
                           .extension = safe_extension(upload.extension),
                           .name = safe_file_name(upload.name)});
  }
  co_return attachments;
}

}  // namespace clawdforge
