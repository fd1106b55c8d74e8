// Inside http/: a request's body as its handler pulls it, read in large pieces. Lives on
// the connection's coroutine while the handler runs; its buffers go with it.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "http/message/request.h"
#include "http/message/request_parser.h"
#include "http/server/whole_body.h"

namespace clawdforge {

// What a body is pulled from: the connection.
class BodySource {
 public:
  virtual ~BodySource() = default;
  // How many bytes came into `room`. Zero: the caller is gone, or nothing came within
  // `allowed`; has_timed_out() tells which.
  virtual Task<std::size_t> read_into(std::span<char> room,
                                      std::chrono::steady_clock::duration allowed) = 0;
  virtual bool has_timed_out() const = 0;
  // "100 Continue". False: the caller is gone.
  virtual Task<bool> send_continue() = 0;
};

class PulledBody final : public BodyReader {
 public:
  struct Limits {
    std::size_t body_bytes_max;
    // Time to wait for the caller, to which each `bytes_per_second_min` adds a second, up to what
    // it was. The handler's own time does not count.
    std::chrono::seconds read_max;
    std::size_t bytes_per_second_min;
    std::size_t chunk_head_bytes_max;
  };

  // `read` is what the connection has read after the head.
  PulledBody(BodySource& source, RequestParser& parser, std::string read, const Limits& limits,
             const ByteMeter& meter, bool must_say_continue);

  Async<std::string_view> next() override;

  // Why there is no more to read, if it is not the end; the answer, whatever the handler
  // makes of it.
  const std::optional<Fault>& fault() const { return fault_; }
  // What has been read after the body: the next request.
  std::string take_rest();

 private:
  Task<std::optional<Fault>> read_more();
  std::unexpected<Failure> refuse(const Fault& fault);

  BodySource& source_;
  RequestParser& parser_;
  const Limits limits_;
  bool must_say_continue_;
  std::vector<char> buffer_;  // its memory comes with the first pull
  std::size_t begin_ = 0;     // of what is in the buffer and not parsed yet
  std::size_t end_ = 0;
  std::string piece_;
  const ByteMeter meter_;
  BodyPace pace_;
  std::optional<Fault> fault_;
};

}  // namespace clawdforge
