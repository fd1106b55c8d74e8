// Inside http/: one connection, and what all connections of a server share.
//
// A connection is one coroutine: wait, read a request, answer, again. While it waits
// for its next request it holds a few hundred bytes of buffer and a small coroutine
// frame, so that thousands of idle ones cost little. It has no timer: it notes until
// when its present phase may last, and the server's ticker looks at all of them once a
// second.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/intrusive/list.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/async/async.h"
#include "base/telemetry/log.h"
#include "http/server/exchange.h"
#include "http/server/request_metrics.h"
#include "http/server/server.h"

namespace clawdforge {

using TcpSocket = boost::asio::basic_stream_socket<boost::asio::ip::tcp, IoExecutor>;
using TlsStream = boost::asio::ssl::stream<TcpSocket>;

// For one write to be taken by the caller while the server drains.
inline constexpr std::chrono::seconds kDrainStallMax{5};

// What the ticker sees of a connection.
class Connection : public boost::intrusive::list_base_hook<
                       boost::intrusive::link_mode<boost::intrusive::auto_unlink>> {
 public:
  virtual ~Connection() = default;
  virtual Task<void> serve() = 0;

  // Ends what has lasted too long: silently, or with a 408 where a request has begun.
  void expire(SteadyTime now);
  void close_if_idle();
  // From now on, a caller that takes nothing of its answer has less time to do so.
  void hasten();
  void close();

 protected:
  enum class Phase { idle, reading, handling, writing, ending };
  void enter(Phase phase, SteadyTime until) {
    phase_ = phase;
    until_ = until;
  }
  virtual TcpSocket& socket() = 0;

  bool timed_out_ = false;  // the ticker has interrupted a read

 private:
  Phase phase_ = Phase::idle;
  SteadyTime until_ = SteadyTime::max();
};

using ConnectionList =
    boost::intrusive::list<Connection, boost::intrusive::constant_time_size<false>>;

// What the connections of a server share. Outlives them.
struct ConnectionContext {
  ServerOptions options;
  Admit admit;
  Log& log;
  RequestMetrics metrics;
  std::string date;  // the Date header's line, renewed each second
  // Where plain connections read to; what arrived is copied out at once, so one is
  // enough for all of them and an idle connection needs none.
  std::vector<char> read_buffer;
  std::uint64_t next_request = 1;
  bool draining = false;
  bool stopping = false;  // every coroutine is being cancelled
  std::size_t busy = 0;
};

// A request under way, as drain() counts them, however its coroutine ends.
class BusyMark {
 public:
  explicit BusyMark(std::size_t& count) : count_(count) { ++count_; }
  ~BusyMark() { --count_; }
  BusyMark(const BusyMark&) = delete;
  BusyMark& operator=(const BusyMark&) = delete;

 private:
  std::size_t& count_;
};

// What a new connection is, beside its socket.
struct Newcomer {
  Peer peer;
  std::shared_ptr<const void> hold;  // kept until the connection has ended
  const Fault* surplus = nullptr;    // every request is answered with this; null: it is welcome
};

std::unique_ptr<Connection> make_connection(TcpSocket socket, Newcomer newcomer,
                                            ConnectionContext& context);
std::unique_ptr<Connection> make_tls_connection(TcpSocket socket, Newcomer newcomer,
                                                boost::asio::ssl::context& tls,
                                                ConnectionContext& context);

}  // namespace clawdforge
