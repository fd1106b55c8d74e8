#include "event_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "server.h"

namespace clawdforge {
namespace {

constexpr std::string_view kLineEnd = "\r\n";

}  // namespace

EventStream::EventStream(Connection& connection) : connection_(connection) {
  const int status = connection.receive_head();
  if (status != 200) {
    give_up(fmt::format("a stream was answered with {}: {}", status, connection.take_some()));
  }
}

// Moves what has come of the body from `raw_`, which has the chunks' sizes in it, to `body_`.
void EventStream::take_chunks() {
  body_.erase(0, place_);
  place_ = 0;
  raw_.erase(0, raw_place_);
  raw_place_ = 0;
  raw_ += connection_.take_some();
  while (!is_at_end_) {
    if (chunk_left_ == 0) {
      const auto end = raw_.find(kLineEnd, raw_place_);
      if (end == std::string::npos) return;
      std::from_chars(raw_.data() + raw_place_, raw_.data() + end, chunk_left_, 16);
      is_at_end_ = chunk_left_ == 0;
      const std::size_t next = end + kLineEnd.size();
      if (is_at_end_ && raw_.size() < next + kLineEnd.size()) {
        is_at_end_ = false;  // the last line's end is still to come
        return;
      }
      raw_place_ = next + (is_at_end_ ? kLineEnd.size() : 0);
      chunk_left_ += is_at_end_ ? 0 : kLineEnd.size();
      continue;
    }
    const std::size_t count = std::min(chunk_left_, raw_.size() - raw_place_);
    if (count == 0) return;
    const std::size_t text = chunk_left_ > kLineEnd.size() ? chunk_left_ - kLineEnd.size() : 0;
    body_.append(raw_, raw_place_, std::min(count, text));
    raw_place_ += count;
    chunk_left_ -= count;
  }
  connection_.put_back(std::string_view(raw_).substr(raw_place_));
}

void EventStream::read_fields(std::string_view event) {
  id_ = 0;
  name_ = {};
  data_ = {};
  while (!event.empty()) {
    const std::string_view line = event.substr(0, event.find('\n'));
    event.remove_prefix(std::min(line.size() + 1, event.size()));
    if (line.starts_with("id: ")) {
      std::from_chars(line.data() + 4, line.data() + line.size(), id_);
    } else if (line.starts_with("event: ")) {
      name_ = line.substr(7);
    } else if (line.starts_with("data: ")) {
      data_ = line.substr(6);
    }
  }
}

bool EventStream::next() {
  for (;;) {
    const auto end = body_.find("\n\n", place_);
    if (end == std::string::npos) {
      if (is_at_end_) return false;
      take_chunks();
      continue;
    }
    read_fields(std::string_view(body_).substr(place_, end - place_));
    place_ = end + 2;
    if (!name_.empty()) return true;  // else a comment
  }
}

std::size_t EventStream::read_to(std::int64_t last_id) {
  std::size_t count = 0;
  while (next()) {
    ++count;
    if (id_ == last_id) break;
  }
  return count;
}

}  // namespace clawdforge
