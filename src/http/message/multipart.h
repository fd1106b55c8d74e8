// Multipart bodies (RFC 7578 on RFC 2046), read as they arrive. The parser is pushed: it is
// fed pieces of any size, cut anywhere, and tells a sink what they mean; it holds no more
// than one part's headers. It is strict: lines end in CRLF, the last boundary must come,
// and what two programs could read differently is refused. Belongs to the reader of
// the body; no thread, no I/O.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace clawdforge {

// The boundary of a Content-Type. Errc::unsupported_type "unsupported_content_type" when it
// is not multipart/form-data, Errc::malformed "bad_multipart" when its boundary is missing
// or not 1 to 70 of the characters that RFC 2046 allows.
Result<std::string> multipart_boundary(std::string_view content_type);

struct MultipartPart {
  std::string name;
  std::optional<std::string> filename;  // foreign text: no path, maybe no UTF-8 either
  std::string content_type;             // empty: none was sent
};

class MultipartSink {
 public:
  virtual ~MultipartSink() = default;
  virtual void begin_part(MultipartPart part) = 0;
  // Never empty; valid during the call.
  virtual void take(std::string_view bytes) = 0;
  virtual void end_part() = 0;
};

class MultipartParser {
 public:
  explicit MultipartParser(std::string_view boundary);

  // Errc::malformed "bad_multipart"; after an error there is no going on.
  Result<void> feed(std::string_view bytes, MultipartSink& sink);
  // The body has ended. The same error if its last boundary did not come.
  Result<void> finish() const;

 private:
  enum class State { preamble, boundary_end, headers, bytes, epilogue };

  Result<std::size_t> search(std::string_view bytes, MultipartSink& sink);
  Result<void> pass_on(std::string_view bytes, MultipartSink& sink);
  Result<std::size_t> read_boundary_end(std::string_view bytes);
  Result<std::size_t> read_headers(std::string_view bytes, MultipartSink& sink);

  const std::string delimiter_;  // CRLF, two dashes, the boundary
  State state_ = State::preamble;
  // How much of the delimiter the input so far ends with; held back until it is clear. The
  // body's first line may be the boundary, as if a line had ended before it.
  std::size_t matched_ = 2;
  std::string line_end_;  // what has come after a boundary
  std::string headers_;   // of the part that begins, and the CRLF before them
  std::size_t preamble_bytes_ = 0;
  std::size_t parts_ = 0;
};

}  // namespace clawdforge
