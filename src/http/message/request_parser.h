// RequestParser turns the bytes of one request into a Request. It stands on Beast's
// parser and refuses what that one lets through: every shape that two programs in a
// row could read as different requests (request smuggling).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "http/message/request.h"

namespace clawdforge {

// Why a request cannot be served: answered by http itself, the domain never hears of it.
struct Fault {
  int status;
  std::string_view code;
  std::string_view message;
};

struct RequestLimits {
  std::size_t head_bytes_max = 16 * 1024;
  std::size_t header_count_max = 100;
  std::size_t target_bytes_max = 8 * 1024;
};

// Where the head at the start of `bytes` ends (after its empty line), if it is all
// there. A fault as soon as it is clear that no good head can come of it.
struct HeadEnd {
  std::size_t size = 0;  // zero: more bytes are needed
  std::optional<Fault> fault;
};
HeadEnd find_head_end(std::string_view bytes, const RequestLimits& limits);

class RequestParser {
 public:
  explicit RequestParser(const RequestLimits& limits);
  RequestParser(RequestParser&& other) noexcept;
  ~RequestParser();

  // Parses `request.head_bytes`, which holds a whole head, into the request.
  [[nodiscard]] std::optional<Fault> parse_head(Request& request);

  bool keep_alive() const;        // what the caller wishes
  bool expects_continue() const;  // Expect: 100-continue
  bool is_chunked() const;
  std::optional<std::uint64_t> content_length() const;
  bool is_done() const;  // nothing (more) of this request is to come

  struct BodyStep {
    std::size_t consumed = 0;
    std::optional<Fault> fault;
  };
  // Appends what `bytes` hold of the body to `body`; 413 when all that was found so far
  // would grow over `body_bytes_max`, which is the same in every call.
  BodyStep parse_body(std::string_view bytes, std::string& body, std::size_t body_bytes_max);

 private:
  class BeastParser;

  std::unique_ptr<BeastParser> parser_;
};

}  // namespace clawdforge
