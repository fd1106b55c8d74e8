// Log writes one line per event to stderr, as text for a terminal or as JSON. A
// thread of its own does the writing, many lines at a time, from a bounded buffer: a
// reader of stderr that stalls costs lines (counted), never a request. May be called
// from any thread. One of the two files with a mutex.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <thread>
#include <variant>

#include "base/thread_annotations.h"

namespace clawdforge {

enum class LogLevel { debug, info, warn, error };
enum class LogFormat { text, json };

// One "key": value of a line. The key is a literal of ours. An empty text is left out.
struct LogField {
  std::string_view key;
  std::variant<std::string_view, std::int64_t, double, bool> value;
};

class Log {
 public:
  Log(LogLevel level, LogFormat format);
  ~Log();  // what was logged is written first, if stderr takes it within a second
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  bool is_on(LogLevel level) const { return level >= level_; }
  void write(LogLevel level, std::string_view message, std::initializer_list<LogField> fields = {});

  void debug(std::string_view message, std::initializer_list<LogField> fields = {}) {
    write(LogLevel::debug, message, fields);
  }
  void info(std::string_view message, std::initializer_list<LogField> fields = {}) {
    write(LogLevel::info, message, fields);
  }
  void warn(std::string_view message, std::initializer_list<LogField> fields = {}) {
    write(LogLevel::warn, message, fields);
  }
  void error(std::string_view message, std::initializer_list<LogField> fields = {}) {
    write(LogLevel::error, message, fields);
  }

  // Bytes that wait to be written, those in the writer's hands included.
  std::size_t waiting_bytes() const;
  // Lines given up because stderr was too slow.
  std::int64_t lines_dropped() const;

 private:
  void write_out();
  bool may_write();

  const LogLevel level_;
  const LogFormat format_;
  mutable Mutex mutex_;
  Condition filled_;
  std::string lines_ GUARDED_BY(mutex_);              // not yet written
  std::size_t writing_bytes_ GUARDED_BY(mutex_) = 0;  // taken out of lines_ by the writer
  std::int64_t lines_dropped_ GUARDED_BY(mutex_) = 0;
  bool is_ending_ GUARDED_BY(mutex_) = false;
  std::thread writer_;  // the last member: it uses all others
};

// The line itself, without its end; apart so that a test can read it.
std::string render_log_line(LogFormat format, LogLevel level, std::int64_t unix_milliseconds,
                            std::string_view message, std::initializer_list<LogField> fields);

}  // namespace clawdforge
