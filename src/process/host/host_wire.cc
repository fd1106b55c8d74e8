#include "process/host/host_wire.h"

#include <array>
#include <cstring>

namespace clawdforge {
namespace {

constexpr std::size_t kHeadBytes = 9;  // kind, operation, length

void append_number(std::string& out, std::uint32_t number) {
  std::array<char, sizeof number> bytes{};
  std::memcpy(bytes.data(), &number, sizeof number);
  out.append(bytes.data(), bytes.size());
}

std::uint32_t number_at(std::string_view bytes, std::size_t at) {
  std::uint32_t number = 0;
  std::memcpy(&number, bytes.data() + at, sizeof number);
  return number;
}

void append_text(std::string& out, std::string_view text) {
  append_number(out, static_cast<std::uint32_t>(text.size()));
  out.append(text);
}

void append_texts(std::string& out, const std::vector<std::string>& texts) {
  append_number(out, static_cast<std::uint32_t>(texts.size()));
  for (const std::string& text : texts) append_text(out, text);
}

// Takes what append_...() wrote from the front. After a mistake all is empty.
class Taker {
 public:
  explicit Taker(std::string_view bytes) : rest_(bytes) {}

  std::uint32_t number() {
    if (rest_.size() < sizeof(std::uint32_t)) return spoil();
    const std::uint32_t number = number_at(rest_, 0);
    rest_.remove_prefix(sizeof number);
    return number;
  }
  std::string text() {
    const std::uint32_t size = number();
    if (size > rest_.size()) return std::string(spoil(), ' ');
    std::string text(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return text;
  }
  std::vector<std::string> texts() {
    std::vector<std::string> texts;
    for (std::uint32_t left = number(); left > 0 && !is_spoilt_; --left) texts.push_back(text());
    return texts;
  }
  bool is_whole() const { return !is_spoilt_ && rest_.empty(); }

 private:
  std::uint32_t spoil() {
    is_spoilt_ = true;
    rest_ = {};
    return 0;
  }

  std::string_view rest_;
  bool is_spoilt_ = false;
};

// The kinds of an end. The other side may send any number.
constexpr std::uint32_t kExited = 1;
constexpr std::uint32_t kSignaled = 2;
constexpr std::uint32_t kNotStarted = 3;

}  // namespace

std::string host_frame(HostFrameKind kind, std::uint32_t operation, std::string_view bytes) {
  std::string frame;
  frame.reserve(kHeadBytes + bytes.size());
  frame += static_cast<char>(kind);
  append_number(frame, operation);
  append_text(frame, bytes);
  return frame;
}

std::string encode_order(const HostOrder& order) {
  std::string bytes;
  append_texts(bytes, order.argv);
  append_texts(bytes, order.environment);
  append_text(bytes, order.input);
  append_text(bytes, order.file);
  append_text(bytes, order.file_content);
  return bytes;
}

std::optional<HostOrder> decode_order(std::string_view bytes) {
  Taker taker(bytes);
  HostOrder order;
  order.argv = taker.texts();
  order.environment = taker.texts();
  order.input = taker.text();
  order.file = taker.text();
  order.file_content = taker.text();
  if (!taker.is_whole() || order.argv.empty()) return std::nullopt;
  return order;
}

std::string encode_end(const ExitStatus& status) {
  std::string bytes;
  const auto append = [&](std::uint32_t kind, int number) {
    append_number(bytes, kind);
    append_number(bytes, static_cast<std::uint32_t>(number));
  };
  if (const auto* exited = std::get_if<Exited>(&status)) {
    append(kExited, exited->code);
  } else if (const auto* signaled = std::get_if<Signaled>(&status)) {
    append(kSignaled, signaled->number);
  } else if (const auto* not_started = std::get_if<NotStarted>(&status)) {
    append(kNotStarted, not_started->error);
  }
  return bytes;
}

ExitStatus decode_end(std::string_view bytes) {
  Taker taker(bytes);
  const std::uint32_t kind = taker.number();
  const int number = static_cast<int>(taker.number());
  if (!taker.is_whole()) return Unknown{};
  if (kind == kExited) return Exited{number};
  if (kind == kSignaled) return Signaled{number};
  if (kind == kNotStarted) return NotStarted{number};
  return Unknown{};
}

void HostFrameReader::feed(std::string_view bytes) {
  if (is_broken_) return;
  buffer_.erase(0, begin_);
  begin_ = 0;
  buffer_.append(bytes);
}

std::optional<HostFrame> HostFrameReader::next() {
  const std::string_view rest = std::string_view(buffer_).substr(begin_);
  if (is_broken_ || rest.size() < kHeadBytes) return std::nullopt;
  const auto kind = static_cast<std::uint8_t>(rest[0]);
  const std::size_t size = number_at(rest, kHeadBytes - sizeof(std::uint32_t));
  if (kind < 1 || kind > 3 || size > kHostFrameBytesMax) {
    is_broken_ = true;
    return std::nullopt;
  }
  if (rest.size() - kHeadBytes < size) return std::nullopt;
  begin_ += kHeadBytes + size;
  return HostFrame{.kind = static_cast<HostFrameKind>(kind),
                   .operation = number_at(rest, 1),
                   .bytes = std::string(rest.substr(kHeadBytes, size))};
}

}  // namespace clawdforge
