// One answer. Its body is either a string, or a stream: a coroutine that writes over
// time and ends when it returns.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/async/async.h"

namespace clawdforge {

// Where a stream writes to. Lives as long as the stream's coroutine runs.
class BodyWriter {
 public:
  virtual ~BodyWriter() = default;
  // Returns when the bytes are with the operating system: a caller that does not read
  // slows its own stream, and is cut off after `write_stall_max`. An error means that
  // the caller has gone; the stream should return.
  virtual Async<void> write(std::string bytes) = 0;
  // The same without a copy, for large parts of something that others read as well. The bytes
  // must stay until the task has ended.
  virtual Async<void> write_slice(std::string_view bytes) = 0;
};

// Ok: the answer is whole. An error: the connection is cut, so that the caller can
// tell that the answer is not.
using StreamBody = std::move_only_function<Async<void>(BodyWriter* writer)>;

// Header lines that an answer has beside its own. What callers are told is for them alone; no
// browser may guess what kind of thing it is, or run it if it is opened as a page.
inline constexpr std::string_view kEveryAnswer =
    "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
    "Content-Security-Policy: sandbox; default-src 'none'\r\n";

struct Response {
  int status = 200;
  std::string_view content_type = "application/json";             // a literal
  std::vector<std::pair<std::string_view, std::string>> headers;  // names are literals
  std::string body;
  StreamBody stream;        // if set, `body` is not used
  bool close = false;       // end the connection after this answer
  std::string detail;       // for the log line alone: what went wrong
  std::string_view code{};  // of a refusal or a failure, as its body has it: a literal
  std::string_view fixed_lines = kEveryAnswer;  // a literal; each line ends in CR LF
};

// "Not Found"; for a status that has no name of its own, the name of its class.
std::string_view reason_phrase(int status);
// "404 Not Found". A number that is not a final status becomes 500.
void append_status(std::string& out, int status);
// 204 and 304 never have one.
bool has_body(int status);

void append_number(std::string& out, std::uint64_t number, int radix = 10);

}  // namespace clawdforge
