#include "agent/core/line_reader.h"

#include <utility>

#include "base/free_memory.h"

namespace clawdforge {

void LineReader::feed(std::string piece) {
  if (is_too_long_) return;
  if (begin_ == buffer_.size()) {
    buffer_ = std::move(piece);
    begin_ = 0;
    searched_ = 0;
    return;
  }
  // What is moved to the front is the begin of one line, once: it is at the front then.
  buffer_.erase(0, begin_);
  searched_ -= begin_;
  begin_ = 0;
  buffer_.append(piece);
}

std::optional<std::string_view> LineReader::next() {
  if (is_too_long_) return std::nullopt;
  std::size_t end = buffer_.find('\n', searched_);
  const bool is_rest = end == std::string::npos;
  if (is_rest) end = buffer_.size();
  if (end - begin_ > bytes_max_) {
    is_too_long_ = true;
    free_memory(buffer_);
    return std::nullopt;
  }
  if (is_rest && (!is_finished_ || begin_ == end)) {
    searched_ = end;
    if (begin_ == end) {
      free_memory(buffer_);
      begin_ = 0;
      searched_ = 0;
    }
    return std::nullopt;
  }
  const std::string_view line = std::string_view(buffer_).substr(begin_, end - begin_);
  begin_ = is_rest ? end : end + 1;
  searched_ = begin_;
  return line;
}

std::string LineReader::extract(std::string_view line) {
  const auto at = static_cast<std::size_t>(line.data() - buffer_.data());
  const std::size_t size = line.size();
  std::string rest(buffer_, begin_);
  std::string own = std::move(buffer_);
  own.resize(at + size);
  own.erase(0, at);
  buffer_ = std::move(rest);
  begin_ = 0;
  searched_ = 0;
  return own;
}

}  // namespace clawdforge
