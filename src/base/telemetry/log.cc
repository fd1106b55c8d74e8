#include "base/telemetry/log.h"

#include <fmt/format.h>
#include <poll.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <iterator>

#include "base/json_text.h"

namespace clawdforge {
namespace {

// So long the writer lets lines gather before it writes them: being woken for each
// costs more than the line itself.
constexpr std::chrono::milliseconds kGather{5};
constexpr std::size_t kPipeBytes = 4096;  // a pipe that is ready takes so many without waiting
constexpr std::chrono::milliseconds kStallLook{100};
constexpr std::chrono::milliseconds kLastWordsMax{1000};  // for a stalled reader, at the end
constexpr std::size_t kLogBytesMax = 1024 * 1024;         // waiting to be written

std::string_view name_of(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return "debug";
    case LogLevel::info:
      return "info";
    case LogLevel::warn:
      return "warn";
    case LogLevel::error:
      return "error";
  }
  return "error";
}

void append_digits(std::string& line, int number, int width) {
  std::array<char, 4> digits;
  for (int i = width - 1; i >= 0; --i, number /= 10) {
    digits[static_cast<std::size_t>(i)] = static_cast<char>('0' + number % 10);
  }
  line.append(digits.data(), static_cast<std::size_t>(width));
}

void append_time(std::string& line, std::int64_t unix_milliseconds) {
  const time_t seconds = unix_milliseconds / 1000;
  tm utc{};
  gmtime_r(&seconds, &utc);
  append_digits(line, utc.tm_year + 1900, 4);
  append_digits(line += '-', utc.tm_mon + 1, 2);
  append_digits(line += '-', utc.tm_mday, 2);
  append_digits(line += 'T', utc.tm_hour, 2);
  append_digits(line += ':', utc.tm_min, 2);
  append_digits(line += ':', utc.tm_sec, 2);
  append_digits(line += '.', static_cast<int>(unix_milliseconds % 1000), 3);
  line += 'Z';
}

// A character that a terminal obeys or that changes the order of what it shows: the second control
// set, marks of writing direction, separators of lines. Its length in UTF-8, zero if the text has
// something else at `at`.
std::size_t hidden_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t offset) {
    return at + offset < text.size() ? static_cast<unsigned char>(text[at + offset]) : 0U;
  };
  if (byte(0) == 0xc2) return byte(1) >= 0x80 && byte(1) <= 0x9f ? 2 : 0;  // U+0080 to U+009F
  if (byte(0) == 0xd8) return byte(1) == 0x9c ? 2 : 0;                     // U+061C
  if (byte(0) != 0xe2) return 0;
  const bool is_mark = byte(1) == 0x80 && (byte(2) == 0x8e || byte(2) == 0x8f);   // U+200E, F
  const bool is_order = byte(1) == 0x80 && byte(2) >= 0xa8 && byte(2) <= 0xae;    // U+2028 to E
  const bool is_isolate = byte(1) == 0x81 && byte(2) >= 0xa6 && byte(2) <= 0xa9;  // U+2066 to 9
  return is_mark || is_order || is_isolate ? 3 : 0;
}

std::size_t find_hidden(std::string_view text, std::size_t from) {
  while (from < text.size() && hidden_length(text, from) == 0) ++from;
  return from;
}

// Writes them as \uXXXX in what the line has from `begin` on.
void escape_hidden(std::string& line, std::size_t begin) {
  if (find_hidden(line, begin) == line.size()) return;
  const std::string tail = line.substr(begin);
  line.resize(begin);
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(tail[i]); };
  for (std::size_t i = 0; i < tail.size();) {
    const std::size_t length = hidden_length(tail, i);
    if (length == 0) {
      line += tail[i++];
      continue;
    }
    const unsigned code = length == 2 ? ((byte(i) & 0x1fU) << 6U) | (byte(i + 1) & 0x3fU)
                                      : ((byte(i) & 0x0fU) << 12U) | ((byte(i + 1) & 0x3fU) << 6U) |
                                            (byte(i + 2) & 0x3fU);
    fmt::format_to(std::back_inserter(line), "\\u{:04x}", code);
    i += length;
  }
}

void append_value(std::string& line, const LogField& field, bool quoted) {
  std::array<char, 512> digits;  // room for any double in plain notation
  char* const first = digits.data();
  char* const last = first + digits.size();
  if (const auto* text = std::get_if<std::string_view>(&field.value)) {
    const bool has_hidden = find_hidden(*text, 0) < text->size();
    if (quoted || has_hidden || text->find_first_of(" \"=\n\r\t\\") != text->npos) {
      const std::size_t begin = line.size();
      append_json_string(line, *text);
      if (has_hidden) escape_hidden(line, begin);
    } else {
      append_printable(line, *text);
    }
  } else if (const auto* number = std::get_if<std::int64_t>(&field.value)) {
    line.append(first, std::to_chars(first, last, *number).ptr);
  } else if (const auto* real = std::get_if<double>(&field.value)) {
    line.append(first, std::to_chars(first, last, *real, std::chars_format::fixed, 3).ptr);
  } else {
    line += std::get<bool>(field.value) ? "true" : "false";
  }
}

bool is_empty(const LogField& field) {
  const auto* text = std::get_if<std::string_view>(&field.value);
  return text != nullptr && text->empty();
}

}  // namespace

std::string render_log_line(LogFormat format, LogLevel level, std::int64_t unix_milliseconds,
                            std::string_view message, std::initializer_list<LogField> fields) {
  std::string line;
  line.reserve(256);
  if (format == LogFormat::json) {
    line += R"({"time":")";
    append_time(line, unix_milliseconds);
    line.append(R"(","level":")").append(name_of(level)).append(R"(","message":)");
    const std::size_t begin = line.size();
    append_json_string(line, message);
    escape_hidden(line, begin);
    for (const LogField& field : fields) {
      if (is_empty(field)) continue;
      line.append(",\"").append(field.key).append("\":");
      append_value(line, field, true);
    }
    line += '}';
    return line;
  }
  append_time(line, unix_milliseconds);
  constexpr std::size_t kLevelWidth = 5;
  line.append(" ").append(name_of(level));
  line.append(kLevelWidth + 1 - name_of(level).size(), ' ');
  const std::size_t begin = line.size();
  append_printable(line, message);
  escape_hidden(line, begin);
  for (const LogField& field : fields) {
    if (is_empty(field)) continue;
    line.append(" ").append(field.key).append("=");
    append_value(line, field, false);
  }
  return line;
}

Log::Log(LogLevel level, LogFormat format)
    : level_(level), format_(format), writer_([this] { write_out(); }) {}

Log::~Log() {
  {
    const Lock lock(mutex_);
    is_ending_ = true;
  }
  filled_.notify_one();
  writer_.join();
}

void Log::write(LogLevel level, std::string_view message, std::initializer_list<LogField> fields) {
  if (!is_on(level)) return;
  const auto now = std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  std::string line =
      render_log_line(format_, level, now.time_since_epoch().count(), message, fields);
  line += '\n';
  bool was_empty = false;
  {
    const Lock lock(mutex_);
    if (lines_.size() + line.size() > kLogBytesMax) {
      ++lines_dropped_;
      return;
    }
    was_empty = lines_.empty();
    lines_ += line;
  }
  if (was_empty) filled_.notify_one();  // else the writer is busy, and looks again
}

void Log::write_out() {
  std::string lines;
  for (;;) {
    {
      Lock lock(mutex_);
      writing_bytes_ = 0;
      while (lines_.empty() && !is_ending_) filled_.wait(mutex_);
      if (lines_.empty()) return;
      if (!is_ending_) filled_.wait_for(mutex_, kGather);
      lines.clear();
      lines.swap(lines_);
      writing_bytes_ = lines.size();
    }
    std::string_view rest = lines;
    while (!rest.empty() && may_write()) {
      // No more than a pipe takes at once, and no half line if it can be helped.
      std::string_view piece = rest.substr(0, kPipeBytes);
      if (piece.size() < rest.size() && piece.rfind('\n') != piece.npos) {
        piece = piece.substr(0, piece.rfind('\n') + 1);
      }
      const ssize_t count = ::write(STDERR_FILENO, piece.data(), piece.size());
      if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (count <= 0) break;  // the log has no reader; there is no other place to complain
      rest.remove_prefix(static_cast<std::size_t>(count));
      const Lock lock(mutex_);
      writing_bytes_ = rest.size();
    }
    if (!rest.empty()) {
      const Lock lock(mutex_);
      lines_dropped_ += std::ranges::count(rest, '\n');
    }
  }
}

// Waits until stderr takes something. False: we are ending, and it has not for too long.
bool Log::may_write() {
  for (std::chrono::milliseconds waited{0}; waited < kLastWordsMax;) {
    pollfd stderr_ready{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
    if (::poll(&stderr_ready, 1, static_cast<int>(kStallLook.count())) != 0) return true;
    const Lock lock(mutex_);
    if (is_ending_) waited += kStallLook;
  }
  return false;
}

std::size_t Log::waiting_bytes() const {
  const Lock lock(mutex_);
  return lines_.size() + writing_bytes_;
}

std::int64_t Log::lines_dropped() const {
  const Lock lock(mutex_);
  return lines_dropped_;
}

}  // namespace clawdforge
