// A small HTTP client for the command line: one request, one answer, one connection.
// Blocks the caller; not for the io thread of a gateway.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/secret.h"

namespace clawdforge {

// Where a gateway is.
struct ServerAddress {
  bool is_tls = false;
  std::string host;  // a name or an address, without brackets
  std::uint16_t port = 0;
  // For TLS: trust exactly this certificate file, whatever name it is for (a gateway on
  // the same machine). Empty: the system's authorities, and the name must fit.
  std::string pinned_cert;
};

// "http://host:port", "https://host"; no path. Errc::invalid.
Result<ServerAddress> parse_server_url(std::string_view url);

struct ClientRequest {
  std::string method;
  std::string target;
  Secret token;      // empty: none is sent
  std::string body;  // JSON; empty: none
};

struct ClientAnswer {
  int status = 0;
  std::string body;
};

// Errc::unavailable when no whole answer came back within `timeout`.
Result<ClientAnswer> call_server(const ServerAddress& address, const ClientRequest& request,
                                 std::chrono::seconds timeout);

}  // namespace clawdforge
