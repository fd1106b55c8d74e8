#include "api/native/file_routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "api/core/problem.h"
#include "api/core/query.h"
#include "api/keys/keyed.h"
#include "base/json_text.h"
#include "http/message/multipart.h"
#include "model/limits/app_limits.h"

namespace clawdforge {
namespace {

// What a multipart body may hold besides the file: boundaries, headers, small fields.
constexpr std::size_t kMultipartFrameBytesMax = 1024 * 1024;
constexpr std::size_t kTtlFieldBytesMax = 64;
constexpr std::size_t kBlockBytes = 512 * 1024;  // handed to the disk at a time, at least

// Collects what the form says; the file's bytes only until they are taken away.
class UploadForm final : public MultipartSink {
 public:
  // `has_key`: the same file may come again, and has to be known.
  explicit UploadForm(bool has_key) {
    if (has_key) seen_.emplace();
  }

  void begin_part(MultipartPart part) override {
    into_ = nullptr;
    if (part.name == "file") {
      if (++files_ > 1) return;  // refused in the end
      filename_ = std::move(part.filename).value_or("");
      into_ = &bytes_;
    } else if (part.name == "ttl_secs") {
      ++ttls_;
      into_ = &ttl_;
    }
  }
  void take(std::string_view bytes) override {
    if (into_ == &ttl_) bytes = bytes.substr(0, kTtlFieldBytesMax + 1 - ttl_.size());
    if (into_ != nullptr) into_->append(bytes);
    if (into_ == &bytes_ && seen_) seen_->add(bytes);
  }
  void end_part() override {}

  int files() const { return files_; }
  const std::string& filename() const { return filename_; }
  std::size_t held_bytes() const { return bytes_.size(); }
  std::string take_bytes() { return std::exchange(bytes_, {}); }

  // Of what was sent, whatever the form's boundary was. Once, with a key, when all is read.
  Digest fingerprint(std::string_view query) {
    std::string text = seen_ ? to_hex(seen_->digest()) : "";
    for (const std::string_view part :
         {std::string_view(filename_), std::string_view(ttl_), query}) {
      text += fmt::format(" {}:{}", part.size(), part);
    }
    return sha256(text);
  }

  // The field of the form, else the query's. Wrong is noted.
  std::optional<std::int64_t> ttl_secs(Query& query) const {
    if (ttls_ > 1) query.wrong("ttl_secs", "must be given only once");
    if (ttls_ > 1) return std::nullopt;
    const auto text = ttls_ == 1 ? std::optional(ttl_) : query.text("ttl_secs");
    if (!text) return std::nullopt;
    // Any whole number is good and is clamped, however large.
    const std::string_view digits = std::string_view(*text).substr(text->starts_with('-') ? 1 : 0);
    if (digits.empty() || text->size() > kTtlFieldBytesMax ||
        digits.find_first_not_of("0123456789") != digits.npos) {
      query.wrong("ttl_secs", "must be a whole number of seconds");
      return std::nullopt;
    }
    std::int64_t number = 0;
    const auto parsed = std::from_chars(text->data(), text->data() + text->size(), number);
    if (parsed.ec == std::errc()) return number;
    return text->starts_with('-') ? 0 : std::numeric_limits<std::int64_t>::max();
  }

 private:
  std::string* into_ = nullptr;
  int files_ = 0;
  int ttls_ = 0;
  std::string filename_;
  std::string bytes_;
  std::string ttl_;
  std::optional<Sha256> seen_;  // the file's bytes; without a key nothing
};

// Where an upload goes, and whose it is.
struct Target {
  Uploads* uploads;
  const Apps* apps;
  std::size_t file_bytes_max;
  std::shared_ptr<const App> app;

  bool is_revoked() const { return !apps->is_current(*app); }
};

// What was pulled so far goes to the disk, where the file begins with its first block.
Async<void> write_block(Target to, UploadForm* form, std::unique_ptr<IncomingUpload>* incoming) {
  if (!*incoming) {
    auto begun = co_await to.uploads->begin(
        to.app->name, static_cast<std::int64_t>(to.file_bytes_max),
        to.app->limits ? to.app->limits->upload_bytes_max : std::nullopt);
    if (!begun) co_return std::unexpected(begun.error());
    *incoming = std::move(*begun);
  }
  if (form->held_bytes() == 0) co_return Result<void>{};
  co_return co_await (*incoming)->append(form->take_bytes());
}

// Reads the whole body. The file is on the disk then, whole, but not kept yet.
Async<std::unique_ptr<IncomingUpload>> read_form(Target to, Request* request, UploadForm* form) {
  auto boundary = multipart_boundary(request->header("Content-Type").value_or(""));
  if (!boundary) co_return std::unexpected(boundary.error());
  MultipartParser parser(*boundary);
  std::unique_ptr<IncomingUpload> incoming;
  for (;;) {
    auto pulled = co_await request->body_reader->next();
    if (to.is_revoked()) co_return token_revoked();
    if (!pulled) co_return std::unexpected(pulled.error());
    if (pulled->empty()) break;
    if (auto fed = parser.feed(*pulled, *form); !fed) co_return std::unexpected(fed.error());
    if (form->held_bytes() < kBlockBytes) continue;
    auto written = co_await write_block(to, form, &incoming);
    if (!written) co_return std::unexpected(written.error());
  }
  if (auto finished = parser.finish(); !finished) co_return std::unexpected(finished.error());
  if (form->files() == 1) {
    auto written = co_await write_block(to, form, &incoming);
    if (!written) co_return std::unexpected(written.error());
  }
  co_return incoming;
}

Response upload_response(const KeptUpload& kept) {
  std::string body = R"({"file_token":)";
  append_json_string(body, kept.token.reveal());
  body += fmt::format(R"(,"ttl_secs":{},"size":{}}})", kept.ttl_secs, kept.size);
  return json_response(std::move(body));
}

// A form that was read, and its file, which is not kept yet.
struct ReadForm {
  NewUpload upload;
  std::unique_ptr<IncomingUpload> file;
};

Task<Response> keep(Target to, std::shared_ptr<ReadForm> form, std::shared_ptr<KeyHold> key,
                    Request* request) {
  if (key) {
    form->upload.key = std::move(key);
    form->upload.answer_of = [id = request->id](const KeptUpload& kept) {
      return kept_answer(upload_response(kept), id);
    };
  }
  auto kept = co_await to.uploads->keep(std::move(form->file), std::move(form->upload));
  if (!kept) co_return problem(kept.error(), request->id);
  if (to.is_revoked()) {
    // Its row may have come after all others of the app were closed.
    const auto expired = co_await to.uploads->expire(std::move(kept->token));
    co_return problem(expired ? token_revoked().error() : expired.error(), request->id);
  }
  co_return upload_response(*kept);
}

Task<Response> receive(Target to, Keys* keys, Caller caller, Request* request) {
  if (has_key(*request)) {
    if (const auto key = key_of(*request); !key) co_return problem(key.error(), request->id);
  }
  UploadForm form(has_key(*request));
  auto incoming = co_await read_form(to, request, &form);
  if (!incoming) co_return problem(incoming.error(), request->id);
  Query query(request->query);
  if (form.files() == 0) query.wrong("file", "is required");
  if (form.files() > 1) query.wrong("file", "must be given only once");
  const auto ttl_secs = form.ttl_secs(query);
  if (auto checked = query.check(); !checked) co_return problem(checked.error(), request->id);
  const auto whole = std::make_shared<ReadForm>(
      ReadForm{{to.app->name, form.filename(), ttl_secs}, std::move(*incoming)});
  if (!has_key(*request)) co_return co_await keep(to, whole, nullptr, request);
  // Of a file that was kept for this key before, what has come now is dropped.
  co_return co_await answer_once(keys, form.fingerprint(request->query), std::move(caller), request,
                                 [to, whole](Caller first, Request* asked) {
                                   return keep(to, whole, std::move(first.key), asked);
                                 });
}

}  // namespace

void add_file_routes(Endpoints& endpoints, Uploads& uploads, const Apps& apps, Keys& keys,
                     std::size_t file_bytes_max) {
  endpoints.push_back({.method = "POST",
                       .pattern = "/files",
                       .permit = Permit::app,
                       .body = Body::multipart,
                       .answer =
                           [all = &uploads, known = &apps, kept = &keys, file_bytes_max](
                               Caller caller, Request* request) {
                             Target target{all, known, file_bytes_max, caller.app};
                             return receive(std::move(target), kept, std::move(caller), request);
                           },
                       .body_bytes_max = file_bytes_max + kMultipartFrameBytesMax});
}

}  // namespace clawdforge
