// Server is the door: it listens, keeps connections within their limits, reads requests,
// asks `admit` what to do with each, and writes the answers. It knows no domain word.
// Io thread only. Its owner calls stop() and waits for it before it dies.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/async/async.h"
#include "base/descriptor.h"
#include "base/net.h"
#include "base/telemetry/log.h"
#include "base/telemetry/metrics.h"
#include "http/message/admission.h"
#include "http/message/cross_origin.h"
#include "http/message/refusal.h"
#include "http/message/request_parser.h"
#include "http/server/tls_context.h"

namespace clawdforge {

// How long a caller with an open connection may take for its next request before the connection is
// closed, when connections are left to the next process. A busy one asks sooner; a request that
// crosses the close is lost, so that it must not be too short.
inline constexpr std::chrono::seconds kHandoverIdleMax{1};

// A process at the other end of the Unix socket.
struct LocalPeer {
  std::int64_t pid = 0;
  std::int64_t uid = 0;
};
// What an address holds for one of its connections. None: it has as many as it may have.
using AdmitPeer = std::function<std::optional<std::shared_ptr<const void>>(const IpAddress& peer)>;

struct ServerOptions {
  RequestLimits request;
  std::size_t connections_max = 10'000;
  AdmitPeer admit_peer;  // empty: addresses have no limit
  // Time from a request's first byte to its head's last.
  std::chrono::seconds head_read_max{10};
  // Time for a body, to which each `body_bytes_per_second_min` received adds a second, up to what
  // it was: so it is also the longest silence.
  std::chrono::seconds body_read_max{30};
  std::size_t body_bytes_per_second_min = 8 * 1024;
  std::chrono::seconds idle_max{75};         // between two requests
  std::chrono::seconds write_stall_max{30};  // for one write to be taken by the caller
  TlsContext tls;                            // none: plain HTTP
  std::string request_id_prefix;  // what new request ids start with: unique to this process
  RefusalRenderers refusals{render_plain_refusal};  // how what http itself refuses is written
  CrossOrigin cross_origin;                         // which web pages may use the answers
  // Whether a process may use the Unix socket; the connections of others are closed.
  std::function<bool(const LocalPeer&)> admits_local = [](const LocalPeer&) { return true; };
};

class Server {
 public:
  Server(IoContext& io, ServerOptions options, Admit admit, Log& log, Metrics& metrics);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Binds and listens; connections wait in the kernel until start(). Gives the port.
  // Errc::internal: the address is taken or not ours.
  Result<std::uint16_t> listen(const std::string& host, std::uint16_t port);
  // The same on a TCP socket that listens already.
  Result<std::uint16_t> listen_on(Descriptor listening);
  // Listens on a Unix socket too, always without TLS; stop() removes its file. Its requests are as
  // those of TCP, but for Request::is_from_local_socket. Errc::invalid: the path is too long,
  // Errc::unavailable: the file cannot be made.
  Result<void> listen_local(const std::string& path);
  void start();
  // For connections from now on; those that are open keep what they have.
  void replace_tls(TlsContext tls);

  // The socket outlives this process. From drain() on no connection is accepted any more: those
  // that come wait in its backlog for the next process. Callers that are here are served, and idle
  // ones have kHandoverIdleMax to ask once more.
  void keep_backlog();
  bool keeps_backlog() const;
  int listening() const;  // the descriptor

  // From now on each answer is the last of its connection, and idle ones end.
  void drain();
  // Requests between their first byte and the last byte of their answer; and one more while
  // callers that are idle may still ask.
  std::size_t busy() const;
  std::size_t connections() const;

  // Closes everything, whatever it is doing, and waits until it is gone.
  Task<void> stop();

 private:
  class Listener;

  std::unique_ptr<Listener> listener_;
};

}  // namespace clawdforge
