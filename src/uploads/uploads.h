// Uploads takes the files that apps bring and finds them again for runs. A file's token is
// made here and shown once; rows and file names hold its digest. A file is kept before its
// row is written, so that a row always has its file; one that gets no row goes again. Io
// thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/async/async.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/secret.h"
#include "base/strong_id.h"
#include "model/ask_key.h"
#include "quota/byte_tally.h"

namespace clawdforge {

class IncomingFile;
class UploadFiles;
class UploadRows;
struct Attachment;

// A file on its way in. Dropping it drops what has arrived.
class IncomingUpload {
 public:
  IncomingUpload(std::unique_ptr<IncomingFile> file, std::int64_t bytes_max, ByteTally& tally,
                 AppName app, std::optional<std::int64_t> app_bytes_max);
  ~IncomingUpload();
  IncomingUpload(const IncomingUpload&) = delete;
  IncomingUpload& operator=(const IncomingUpload&) = delete;

  // Errc::too_large "file_too_large" when it would grow over its limit, Errc::over_quota
  // "uploads_full" when the app's uploads together would; then nothing of `bytes` is written.
  // Errc::unavailable when the disk does not take it.
  Async<void> append(std::string bytes);

 private:
  friend class Uploads;

  std::unique_ptr<IncomingFile> file_;
  const std::int64_t bytes_max_;
  ByteReservation space_;
};

struct KeptUpload;

struct NewUpload {
  AppName app;
  std::string filename;                  // foreign: what is safe of it survives
  std::optional<std::int64_t> ttl_secs;  // clamped to what is allowed
  std::shared_ptr<KeyHold> key{};        // null: it came without one
  // With a key: what its caller is told, to be kept.
  std::function<KeptAnswer(const KeptUpload&)> answer_of{};
};

// The only moment at which a file's token can be seen.
struct KeptUpload {
  Secret token;
  std::int64_t ttl_secs = 0;
  std::int64_t size = 0;
};

class Uploads {
 public:
  Uploads(UploadRows& rows, UploadFiles& files, const Clock& clock, IdSource& ids,
          InstanceId instance_id, std::int64_t bytes_max_per_app);

  // Counts what apps have stored, in the ledger. At start, and after each sweep.
  Async<void> count_stored();
  std::int64_t bytes() const { return tally_.total(); }  // stored and under way

  // Errc::over_quota "uploads_full". Errc::unavailable when the disk does not take it.
  // `app_bytes_max`: the app's own limit; none: that of all.
  Async<std::unique_ptr<IncomingUpload>> begin(AppName app, std::int64_t bytes_max,
                                               std::optional<std::int64_t> app_bytes_max = {});
  // The file has arrived whole; its token works when this returns. An error leaves neither
  // the file nor a row: Errc::unavailable, of the disk or "ledger_unavailable".
  Async<KeptUpload> keep(std::unique_ptr<IncomingUpload> incoming, NewUpload upload);

  // Takes an upload back: its token does not work any more. The file goes, then the row.
  Async<void> expire(Secret token);

  // The files of these tokens, in their order. Errc::not_found "file_not_found" if any is
  // unknown, expired, another app's, or not a token at all.
  Async<std::vector<Attachment>> find(AppName app, std::vector<std::string> tokens);

 private:
  UploadRows& rows_;
  UploadFiles& files_;
  const Clock& clock_;
  IdSource& ids_;
  const InstanceId instance_id_;
  ByteTally tally_;
};

// A dot and what stands after the last dot, in lower case, if that is 1 to 16 letters or
// digits; else nothing.
std::string safe_extension(std::string_view filename);

}  // namespace clawdforge
