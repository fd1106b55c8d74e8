// A small HTTP client for the command line: one request, one answer, one connection.
// Blocks the caller; not for the io thread of a gateway.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/secret.h"

namespace clawdforge {

// Where a gateway is.
struct ServerAddress {
  bool is_tls = false;
  std::string host;  // a name or an address, without brackets
  std::uint16_t port = 0;
  // For TLS: trust exactly this certificate (PEM), whatever name it is for (a gateway on the same
  // machine). Empty: the authorities of `ca_file`, else the system's, and the name must fit.
  std::string pinned_pem{};
  std::string ca_file{};
  std::string socket_file{};  // not empty: over this Unix socket, and neither host nor port count
};

// "http://host:port", "https://host"; no path. Errc::invalid.
Result<ServerAddress> parse_server_url(std::string_view url);

// A file that is sent as it is read, so that its size does not matter.
struct ClientFile {
  int descriptor = -1;      // open for reading, at its beginning; stays the caller's
  std::uint64_t bytes = 0;  // it must have as many
  std::string suffix;       // of the body, after the file
};

struct ClientRequest {
  std::string method;
  std::string target;
  Secret token;      // empty: none is sent
  std::string body;  // empty: none
  std::string content_type = "application/json";
  std::optional<ClientFile> file;  // comes after `body`, as one body with it
  std::string accept = "application/json";
  std::string prefer{};  // what the caller would rather have, as the header Prefer
  std::optional<std::uint64_t> last_event_id{};  // of a stream that goes on
  std::string idempotency_key{};                 // empty: none is sent
};

struct ClientAnswer {
  int status = 0;
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;

  // The first header of this name, in any case; none is empty.
  std::string_view header(std::string_view name) const;
};

// Errc::unavailable when no whole answer came back within `timeout`, Errc::internal when
// the file cannot be read or is shorter than announced.
Result<ClientAnswer> call_server(const ServerAddress& address, const ClientRequest& request,
                                 std::chrono::milliseconds timeout);

// One answer that comes over time: a stream of server-sent events. Blocks the thread that runs it;
// another may stop it. One object for one run.
class StreamCall {
 public:
  using TakePiece = std::function<void(std::string_view)>;

  StreamCall();
  ~StreamCall();
  StreamCall(const StreamCall&) = delete;
  StreamCall& operator=(const StreamCall&) = delete;

  // Gives each piece of the stream to `take`, and returns when the stream has ended: status 200. An
  // answer that is not a stream is given as a whole, with its body. Errc::unavailable: there was no
  // answer, the connection was lost, nothing came for `silence_max`, or it was stopped.
  Result<ClientAnswer> run(const ServerAddress& address, const ClientRequest& request,
                           const TakePiece& take, std::chrono::seconds silence_max);
  // Also before run().
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace clawdforge
