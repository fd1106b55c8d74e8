// One request as the handlers see it: the head, parsed and checked, and the body, whole or
// for pulling.
// Views point into the request's own copy of the head, so a request may be moved.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/async/async.h"
#include "base/async/hang_up.h"
#include "base/net.h"
#include "base/text.h"

namespace clawdforge {

struct Header {
  std::string_view name;
  std::string_view value;
};

// A body that its handler pulls, piece by piece.
class BodyReader {
 public:
  virtual ~BodyReader() = default;
  // The next bytes, valid until the next call; empty: the end. An error (too large, too
  // slow, badly chunked, the caller gone) means that there is no more to read; http answers
  // it itself, whatever the handler says. A handler may return before the end: then its
  // answer is the connection's last.
  virtual Async<std::string_view> next() = 0;
};

struct Request {
  explicit Request(IpAddress peer_address) : peer(peer_address) {}

  std::vector<char> head_bytes;
  std::string_view method;  // upper case
  std::string_view path;    // starts with '/', still percent-encoded
  std::string_view query;   // after the '?', still percent-encoded
  int version_minor = 1;    // of HTTP/1.x
  std::vector<Header> headers;

  std::string id;                     // the caller's X-Request-Id if it is sane, else a new one
  IpAddress peer;                     // of the connection; loopback for the Unix socket
  bool is_from_local_socket = false;  // it came over the server's Unix socket
  std::optional<IpAddress> origin;    // for the log, set at admission: another one than the peer
  std::vector<std::string> params;    // what the {placeholders} of the route stood for
  std::string who;                    // for the log line; set by the admission
  std::string body;                   // empty if the handler pulls it
  // What its handler wants to say in the answer's head, whatever the answer is.
  std::vector<std::pair<std::string_view, std::string>> answer_headers;  // names are literals
  BodyReader* body_reader = nullptr;  // set where the admission asked for it
  HangUp* hang_up = nullptr;          // likewise
  // When its last byte was here; its head's last byte if the handler pulls the body.
  std::chrono::steady_clock::time_point received;

  bool is_head() const { return method == "HEAD"; }
  // The first header of this name, in any case.
  std::optional<std::string_view> header(std::string_view name) const;
};

// Undoes %XX. None if an escape is broken or stands for NUL.
std::optional<std::string> percent_decoded(std::string_view text);

}  // namespace clawdforge
