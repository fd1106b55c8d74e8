#include "http/message/multipart.h"

#include <string.h>

#include <algorithm>
#include <utility>

#include "http/message/multipart_head.h"

namespace clawdforge {
namespace {

constexpr std::size_t kPreambleBytesMax = 8 * 1024;
constexpr std::size_t kPartHeaderBytesMax = 8 * 1024;
constexpr std::size_t kPartsMax = 64;
constexpr std::size_t kBoundaryPaddingMax = 64;  // blanks after a boundary

// How many of its last bytes may be the beginning of the delimiter, which begins with its
// only CR.
std::size_t match_at_end(std::string_view bytes, std::string_view delimiter) {
  const std::string_view end =
      bytes.substr(bytes.size() - std::min(bytes.size(), delimiter.size()));
  const std::size_t last = end.rfind('\r');
  if (last == end.npos || !delimiter.starts_with(end.substr(last))) return 0;
  return end.size() - last;
}

}  // namespace

MultipartParser::MultipartParser(std::string_view boundary)
    : delimiter_("\r\n--" + std::string(boundary)) {}

Result<void> MultipartParser::feed(std::string_view bytes, MultipartSink& sink) {
  while (!bytes.empty() && state_ != State::epilogue) {
    Result<std::size_t> used = 0;
    if (state_ == State::preamble || state_ == State::bytes) {
      used = search(bytes, sink);
    } else if (state_ == State::boundary_end) {
      used = read_boundary_end(bytes);
    } else {
      used = read_headers(bytes, sink);
    }
    if (!used) return std::unexpected(used.error());
    bytes.remove_prefix(*used);
  }
  return {};
}

Result<void> MultipartParser::finish() const {
  if (state_ == State::epilogue) return {};
  if (state_ == State::preamble)
    return bad_multipart("The body does not have the announced boundary.");
  return bad_multipart("The multipart body ends before its last boundary.");
}

// Looks for the delimiter. What cannot belong to one goes to the sink.
Result<std::size_t> MultipartParser::search(std::string_view bytes, MultipartSink& sink) {
  std::size_t used = 0;
  // Goes on with what the last piece ended in. A CR stands in the delimiter only as its
  // first byte, so a match that fails cannot hide another one in what was held back.
  while (matched_ > 0 && matched_ < delimiter_.size() && used < bytes.size()) {
    if (bytes[used] == delimiter_[matched_]) {
      ++matched_;
      ++used;
      continue;
    }
    const std::size_t held = std::exchange(matched_, 0);
    auto passed = pass_on(std::string_view(delimiter_).substr(0, held), sink);
    if (!passed) return std::unexpected(passed.error());
  }
  if (matched_ == 0) {
    const std::string_view rest = bytes.substr(used);
    const auto* found = static_cast<const char*>(
        ::memmem(rest.data(), rest.size(), delimiter_.data(), delimiter_.size()));
    std::size_t size = rest.size();
    if (found != nullptr) {
      size = static_cast<std::size_t>(found - rest.data());
      matched_ = delimiter_.size();
    } else {
      matched_ = match_at_end(rest, delimiter_);
      size -= matched_;
    }
    if (auto passed = pass_on(rest.substr(0, size), sink); !passed) {
      return std::unexpected(passed.error());
    }
    used += size + matched_;
  }
  if (matched_ == delimiter_.size()) {
    matched_ = 0;
    if (state_ == State::bytes) sink.end_part();
    state_ = State::boundary_end;
    line_end_.clear();
  }
  return used;
}

Result<void> MultipartParser::pass_on(std::string_view bytes, MultipartSink& sink) {
  if (bytes.empty()) return {};
  if (state_ == State::bytes) {
    sink.take(bytes);
    return {};
  }
  preamble_bytes_ += bytes.size();
  if (preamble_bytes_ <= kPreambleBytesMax) return {};
  return bad_multipart("The body does not begin with the announced boundary.");
}

// After a boundary: two dashes end the body, else blanks and CRLF end the line.
Result<std::size_t> MultipartParser::read_boundary_end(std::string_view bytes) {
  std::size_t used = 0;
  while (used < bytes.size()) {
    line_end_ += bytes[used++];
    if (line_end_ == "--") {
      state_ = State::epilogue;
      return used;
    }
    if (line_end_.ends_with("\r\n")) {
      state_ = State::headers;
      headers_ = "\r\n";
      if (++parts_ > kPartsMax) return bad_multipart("The multipart body has too many parts.");
      return used;
    }
    const char last = line_end_.back();
    const char before = line_end_.size() > 1 ? line_end_[line_end_.size() - 2] : ' ';
    const bool is_blank = before == ' ' || before == '\t';
    if (last == '\n') return bad_multipart("Lines of a multipart body must end in CRLF.");
    const bool goes_on = is_blank && (last == ' ' || last == '\t' || last == '\r');
    if (!goes_on && line_end_ != "-") {
      return bad_multipart(
          "A line of the multipart body begins with the boundary but goes on after it.");
    }
    if (line_end_.size() > kBoundaryPaddingMax)
      return bad_multipart("Too many blanks after a boundary.");
  }
  return used;
}

Result<std::size_t> MultipartParser::read_headers(std::string_view bytes, MultipartSink& sink) {
  const std::size_t held = headers_.size();
  // On top of them come the CRLF before and the empty line after.
  constexpr std::size_t most = kPartHeaderBytesMax + 6;
  headers_.append(bytes.substr(0, most - held));
  const std::size_t end = headers_.find("\r\n\r\n", held < 3 ? 0 : held - 3);
  if (end == headers_.npos) {
    if (headers_.size() < most) return headers_.size() - held;
    if (has_bare_line_end(headers_))
      return bad_multipart("Lines of a multipart body must end in CRLF.");
    return bad_multipart("A part's headers are too long.");
  }
  const std::size_t begin = std::min<std::size_t>(end, 2);
  auto part = parse_part_headers(std::string_view(headers_).substr(begin, end - begin));
  if (!part) return std::unexpected(part.error());
  sink.begin_part(std::move(*part));
  state_ = State::bytes;
  return end + 4 - held;
}

}  // namespace clawdforge
