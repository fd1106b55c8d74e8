#include "client/event_parser.h"

#include <charconv>

namespace clawdforge {

bool EventParser::feed(std::string_view piece, const TakeEvent& take) {
  while (!piece.empty()) {
    const std::size_t end = piece.find('\n');
    if (end == std::string_view::npos) {
      rest_ += piece;
      return rest_.size() + data_.size() <= kEventBytesMax;
    }
    std::string_view line = piece.substr(0, end);
    if (!rest_.empty()) {
      rest_ += line;
      line = rest_;
    }
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!take_line(line, take)) return false;
    rest_.clear();
    piece.remove_prefix(end + 1);
  }
  return true;
}

bool EventParser::take_line(std::string_view line, const TakeEvent& take) {
  if (line.empty()) {
    if (!data_.empty()) {
      take({id_, name_.empty() ? std::string_view("message") : name_,
            std::string_view(data_).substr(0, data_.size() - 1)});
    }
    name_.clear();
    data_.clear();
    id_.reset();
    return true;
  }
  const std::size_t colon = line.find(':');
  const std::string_view field = line.substr(0, colon);
  std::string_view value = colon == std::string_view::npos ? "" : line.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (field == "event") name_ = value;
  if (field == "data") data_.append(value).append("\n");
  if (field == "id") {
    std::uint64_t id = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), id);
    if (error != std::errc() || end != value.data() + value.size()) return false;
    id_ = id;
  }
  return data_.size() <= kEventBytesMax;
}

}  // namespace clawdforge
