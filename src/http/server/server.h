// Server is the door: it listens, keeps connections within their limits, reads requests,
// asks `admit` what to do with each, and writes the answers. It knows no domain word.
// Io thread only. Its owner calls stop() and waits for it before it dies.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "base/async/async.h"
#include "base/telemetry/log.h"
#include "base/telemetry/metrics.h"
#include "http/message/admission.h"
#include "http/message/refusal.h"
#include "http/message/request_parser.h"

namespace clawdforge {

struct ServerOptions {
  RequestLimits request;
  std::size_t connections_max = 10'000;
  // Time from a request's first byte to its head's last.
  std::chrono::seconds head_read_max{10};
  // Time for a body, to which each `body_bytes_per_second_min` received adds a second.
  std::chrono::seconds body_read_max{30};
  std::size_t body_bytes_per_second_min = 8 * 1024;
  std::chrono::seconds idle_max{75};         // between two requests
  std::chrono::seconds write_stall_max{30};  // for one write to be taken by the caller
  std::string tls_cert;                      // PEM files; empty: plain HTTP
  std::string tls_key;
  std::string request_id_prefix;  // what new request ids start with: unique to this process
  RefusalRenderers refusals{render_plain_refusal};  // how what http itself refuses is written
};

class Server {
 public:
  Server(IoContext& io, ServerOptions options, Admit admit, Log& log, Metrics& metrics);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Binds and listens; connections wait in the kernel until start(). Gives the port.
  // Errc::internal: the address is taken or not ours, or the TLS files are no good.
  Result<std::uint16_t> listen(const std::string& host, std::uint16_t port);
  void start();

  // From now on each answer is the last of its connection, and idle ones end.
  void drain();
  // Requests between their first byte and the last byte of their answer.
  std::size_t busy() const;
  std::size_t connections() const;

  // Closes everything, whatever it is doing, and waits until it is gone.
  Task<void> stop();

 private:
  class Listener;

  std::unique_ptr<Listener> listener_;
};

}  // namespace clawdforge
