#include "http/server/server.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <cerrno>

#include "base/async/async_tokens.h"
#include "base/async/task_group.h"
#include "base/async/timer.h"
#include "http/server/connection.h"
#include "http/server/local_socket.h"

namespace clawdforge {
namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

constexpr std::chrono::seconds kTick{1};
// Beyond the limit so many more are let in to be told so; the rest is just closed.
constexpr std::size_t kSurplusConnectionsMax = 64;
constexpr std::chrono::milliseconds kAcceptPause{100};  // when descriptors have run out
constexpr int kBacklogMax = 4096;
// Kept back for callers who come when there are no descriptors left: to be told so.
constexpr std::size_t kSpareDescriptorsMax = 4;
constexpr std::size_t kReadBytes = 64 * 1024;
// Connections of addresses that have too many, in a second: so many are told, the rest is closed.
constexpr std::size_t kToldConnectionsMax = 64;

constexpr Fault kFull{503, "too_many_connections",
                      "The gateway has all the connections it takes; try again shortly."};
constexpr Fault kAddressFull{429, "too_many_address_connections",
                             "This address has as many connections open as it may have, or opens "
                             "them too fast; close some first."};

// Connections of the Unix socket, beside those of TCP: when all of those are taken, its owner can
// still get in.
constexpr std::size_t kLocalConnectionsMax = 16;

using Acceptor = asio::basic_socket_acceptor<tcp, IoExecutor>;
using LocalAcceptor = asio::basic_socket_acceptor<asio::local::stream_protocol, IoExecutor>;

std::string date_line() {
  static constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                            "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const time_t now = time(nullptr);
  tm utc{};
  gmtime_r(&now, &utc);
  return fmt::format("Date: {}, {:02} {} {:04} {:02}:{:02}:{:02} GMT\r\n", kDays[utc.tm_wday],
                     utc.tm_mday, kMonths[utc.tm_mon], utc.tm_year + 1900, utc.tm_hour, utc.tm_min,
                     utc.tm_sec);
}

// Descriptors that stand for nothing: giving one up makes room for a connection.
class Spares {
 public:
  Spares() { refill(); }
  ~Spares() {
    while (give_one()) {
    }
  }
  Spares(const Spares&) = delete;
  Spares& operator=(const Spares&) = delete;

  bool give_one() {
    if (held_.empty()) return false;
    ::close(held_.back());
    held_.pop_back();
    return true;
  }
  void refill() {
    while (held_.size() < kSpareDescriptorsMax) {
      const int made = ::eventfd(0, EFD_CLOEXEC);
      if (made < 0) return;
      held_.push_back(made);
    }
  }

 private:
  std::vector<int> held_;
};

bool is_exhaustion(const error_code& error) {
  return error == asio::error::no_descriptors ||
         error == boost::system::errc::too_many_files_open_in_system;
}

IpAddress address_of(const asio::ip::address& address) {
  return address.is_v4() ? IpAddress::from_v4(address.to_v4().to_bytes())
                         : IpAddress::from_v6(address.to_v6().to_bytes());
}

}  // namespace

class Server::Listener {
 public:
  Listener(IoContext& io, ServerOptions options, Admit admit, Log& log, Metrics& metrics)
      : acceptor_(io.get_executor()),
        local_acceptor_(io.get_executor()),
        ticks_(io.get_executor()),
        tasks_(io.get_executor()),
        context_{.options = std::move(options),
                 .admit = std::move(admit),
                 .log = log,
                 .metrics = RequestMetrics(metrics),
                 .date = date_line(),
                 .read_buffer = std::vector<char>(kReadBytes)},
        open_gauge_(metrics.gauge("clawdforge_http_connections", "Open connections.")),
        refused_(metrics.counter("clawdforge_http_connections_refused_total",
                                 "Connections over the limit.")) {}

  Result<std::uint16_t> listen(const std::string& host, std::uint16_t port);
  Result<std::uint16_t> listen_on(Descriptor listening);
  Result<void> listen_local(const std::string& path);
  void keep_backlog() { keeps_backlog_ = true; }
  bool keeps_backlog() const { return keeps_backlog_; }
  int listening() { return acceptor_.native_handle(); }
  void replace_tls(TlsContext tls) { context_.options.tls = std::move(tls); }
  void start() {
    tasks_.spawn(accept());
    if (local_acceptor_.is_open()) tasks_.spawn(accept_local());
    tasks_.spawn(tick());
  }
  void drain() {
    context_.draining = true;
    if (keeps_backlog_) {
      error_code ignored;
      acceptor_.close(ignored);  // not the socket: another process has that, too
      is_handing_over_ = true;
      tasks_.spawn(end_handover());
    } else {
      for_each(&Connection::close_if_idle);
    }
    for_each(&Connection::hasten);
  }
  Task<void> stop();

  std::size_t busy() const {
    return context_.busy + (is_handing_over_ && connection_count_ > 0 ? 1 : 0);
  }
  std::size_t connections() const { return connection_count_; }

 private:
  Task<void> accept();
  Task<void> accept_local();
  Task<void> tick();
  Task<void> end_handover();
  bool accept_to_refuse();
  void admit_connection(TcpSocket socket, const Fault* surplus);
  void admit_local(Descriptor accepted);
  Task<void> serve(std::unique_ptr<Connection> connection, std::size_t* count);

  void show_count() {
    open_gauge_.set(static_cast<std::int64_t>(connection_count_ + local_count_));
  }

  // `act` may make a connection leave the list.
  void for_each(void (Connection::*act)()) {
    for (auto next = open_.begin(); next != open_.end();) ((*next++).*act)();
  }

  Acceptor acceptor_;
  LocalAcceptor local_acceptor_;
  std::string local_path_;  // of the Unix socket; empty: there is none
  std::size_t local_count_ = 0;
  bool keeps_backlog_ = false;
  bool is_handing_over_ = false;  // callers that are idle may still ask
  Timer ticks_;
  TaskGroup tasks_;
  ConnectionContext context_;
  ConnectionList open_;
  std::size_t connection_count_ = 0;
  std::size_t told_ = 0;  // of kToldConnectionsMax, in this second
  Spares spares_;
  Gauge& open_gauge_;
  Counter& refused_;
};

Result<std::uint16_t> Server::Listener::listen(const std::string& host, std::uint16_t port) {
  error_code error;
  const auto address = asio::ip::make_address(host, error);
  const tcp::endpoint endpoint(address, port);
  if (!error) acceptor_.open(endpoint.protocol(), error);
  if (!error) acceptor_.set_option(Acceptor::reuse_address(true), error);
  if (!error) acceptor_.bind(endpoint, error);
  if (!error) acceptor_.listen(kBacklogMax, error);
  if (!error) acceptor_.non_blocking(true, error);
  if (error) {
    return fail(Errc::internal, "listen",
                fmt::format("Cannot listen on {} port {}: {}.", host, port, error.message()));
  }
  return acceptor_.local_endpoint().port();
}

Result<std::uint16_t> Server::Listener::listen_on(Descriptor listening) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  error_code error;
  if (::getsockname(listening.number(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    error.assign(errno, boost::system::system_category());
  }
  const bool is_v6 = address.ss_family == AF_INET6;
  if (!error) acceptor_.assign(is_v6 ? tcp::v6() : tcp::v4(), listening.number(), error);
  if (!error) listening.release();
  if (!error) acceptor_.non_blocking(true, error);
  if (error) {
    return fail(
        Errc::internal, "listen",
        fmt::format("The socket that was handed over cannot be used: {}.", error.message()));
  }
  return acceptor_.local_endpoint().port();
}

Result<void> Server::Listener::listen_local(const std::string& path) {
  auto listening = listen_on_file(path);
  if (!listening) return std::unexpected(std::move(listening.error()));
  local_path_ = path;
  error_code error;
  local_acceptor_.assign(asio::local::stream_protocol(), listening->number(), error);
  if (error) {
    return fail(Errc::unavailable, "listen",
                fmt::format("The socket {} cannot be listened on: {}.", path, error.message()));
  }
  listening->release();
  return {};
}

Task<void> Server::Listener::accept_local() {
  while (local_acceptor_.is_open()) {
    auto [error, socket] = co_await local_acceptor_.async_accept(kAwait);
    if (!local_acceptor_.is_open() || context_.stopping) co_return;
    if (!error) {
      try {
        admit_local(Descriptor(socket.release()));
      } catch (const std::bad_alloc&) {
        refused_.increment();  // it is closed: there is no memory to tell it more
      }
      continue;
    }
    Timer pause(local_acceptor_.get_executor(), kAcceptPause);
    co_await pause.async_wait(kAwait);
  }
}

// A connection reads and writes bytes, and asks its socket for nothing that only TCP has. So it is
// the same for both, although asio calls its socket one of TCP.
void Server::Listener::admit_local(Descriptor accepted) {
  const auto peer = local_peer_of(accepted.number());
  if (!peer || !context_.options.admits_local(*peer)) {
    context_.log.warn("a process may not use the local socket",
                      {{"pid", peer ? peer->pid : 0}, {"uid", peer ? peer->uid : -1}});
    return;  // closes it
  }
  if (local_count_ >= kLocalConnectionsMax) {
    refused_.increment();
    return;
  }
  error_code error;
  TcpSocket socket(local_acceptor_.get_executor());
  socket.assign(tcp::v4(), accepted.number(), error);
  if (error) return;
  accepted.release();
  socket.non_blocking(true, error);
  if (error) return;
  const IpAddress loopback = IpAddress::from_v4({127, 0, 0, 1});
  Newcomer newcomer{.peer = {loopback, true}, .hold = {}, .surplus = nullptr};
  tasks_.spawn(
      serve(make_connection(std::move(socket), std::move(newcomer), context_), &local_count_));
}

Task<void> Server::Listener::accept() {
  bool is_failing = false;
  while (acceptor_.is_open()) {
    auto [error, socket] = co_await acceptor_.async_accept(kAwait);
    // One that was accepted before the acceptor was closed is served: no other process has it.
    if (context_.stopping || (error && !acceptor_.is_open())) co_return;
    if (!error) {
      is_failing = false;
      try {
        const bool is_full = connection_count_ >= context_.options.connections_max;
        admit_connection(std::move(socket), is_full ? &kFull : nullptr);
      } catch (const std::bad_alloc&) {
        refused_.increment();  // it is closed: there is no memory to tell it more
      }
      continue;
    }
    if (error == asio::error::connection_aborted) continue;
    if (is_exhaustion(error) && accept_to_refuse()) continue;
    const std::string why = error.message();
    if (!is_failing) {
      context_.log.warn("cannot accept connections", {{"why", std::string_view(why)}});
    }
    is_failing = true;  // said once is enough
    Timer pause(acceptor_.get_executor(), kAcceptPause);
    co_await pause.async_wait(kAwait);
  }
}

// The next caller, in the place of a spare descriptor. False: no caller waits, or there is no
// spare.
bool Server::Listener::accept_to_refuse() {
  if (!spares_.give_one()) return false;
  error_code error;
  TcpSocket socket = acceptor_.accept(acceptor_.get_executor(), error);
  if (error) {
    spares_.refill();
    return false;
  }
  admit_connection(std::move(socket), &kFull);
  return true;
}

void Server::Listener::admit_connection(TcpSocket socket, const Fault* surplus) {
  if (surplus != nullptr) refused_.increment();
  if (connection_count_ >= context_.options.connections_max + kSurplusConnectionsMax) {
    return;  // closes it
  }
  error_code error;
  const auto remote = socket.remote_endpoint(error);
  if (error) return;  // gone already
  socket.non_blocking(true, error);
  if (!error) socket.set_option(tcp::no_delay(true), error);
  if (!error) socket.set_option(asio::socket_base::keep_alive(true), error);
  if (error) return;
  Newcomer newcomer{
      .peer = {.address = address_of(remote.address())}, .hold = {}, .surplus = surplus};
  if (surplus == nullptr && context_.options.admit_peer) {
    auto hold = context_.options.admit_peer(newcomer.peer.address);
    if (!hold && ++told_ > kToldConnectionsMax) return;  // closes it
    if (hold) {
      newcomer.hold = std::move(*hold);
    } else {
      newcomer.surplus = &kAddressFull;
    }
  }
  const TlsContext& tls = context_.options.tls;
  auto connection =
      tls ? make_tls_connection(std::move(socket), std::move(newcomer), *tls, context_)
          : make_connection(std::move(socket), std::move(newcomer), context_);
  tasks_.spawn(serve(std::move(connection), &connection_count_));
}

// `count` is that of the connections of its kind.
Task<void> Server::Listener::serve(std::unique_ptr<Connection> connection, std::size_t* count) {
  open_.push_back(*connection);
  ++*count;
  show_count();
  if (!context_.stopping) {
    try {
      co_await connection->serve();
    } catch (const std::exception& exception) {
      // Out of memory, say. It costs this connection, not the others.
      if (!context_.stopping) {
        context_.log.error("a connection failed", {{"what", std::string_view(exception.what())}});
      }
    }
  }
  connection.reset();  // leaves the list by itself
  spares_.refill();
  --*count;
  show_count();
}

Task<void> Server::Listener::tick() {
  while (!context_.stopping) {
    ticks_.expires_after(kTick);
    co_await ticks_.async_wait(kAwait);
    context_.date = date_line();
    told_ = 0;
    const auto now = std::chrono::steady_clock::now();
    for (auto next = open_.begin(); next != open_.end();) (*next++).expire(now);
  }
}

Task<void> Server::Listener::end_handover() {
  Timer pause(ticks_.get_executor(), kHandoverIdleMax);
  co_await pause.async_wait(kAwait);
  is_handing_over_ = false;
  for_each(&Connection::close_if_idle);
}

Task<void> Server::Listener::stop() {
  context_.stopping = true;
  error_code ignored;
  acceptor_.close(ignored);
  local_acceptor_.close(ignored);
  if (!local_path_.empty()) ::unlink(local_path_.c_str());
  ticks_.cancel();
  for_each(&Connection::close);
  tasks_.cancel();  // a stream may be waiting for something else than its caller
  co_await tasks_.join();
}

Server::Server(IoContext& io, ServerOptions options, Admit admit, Log& log, Metrics& metrics)
    : listener_(
          std::make_unique<Listener>(io, std::move(options), std::move(admit), log, metrics)) {}
Server::~Server() = default;

Result<std::uint16_t> Server::listen(const std::string& host, std::uint16_t port) {
  return listener_->listen(host, port);
}
Result<std::uint16_t> Server::listen_on(Descriptor listening) {
  return listener_->listen_on(std::move(listening));
}
void Server::keep_backlog() { listener_->keep_backlog(); }
bool Server::keeps_backlog() const { return listener_->keeps_backlog(); }
int Server::listening() const { return listener_->listening(); }
Result<void> Server::listen_local(const std::string& path) { return listener_->listen_local(path); }
void Server::start() { listener_->start(); }
void Server::replace_tls(TlsContext tls) { listener_->replace_tls(std::move(tls)); }
void Server::drain() { listener_->drain(); }
std::size_t Server::busy() const { return listener_->busy(); }
std::size_t Server::connections() const { return listener_->connections(); }
Task<void> Server::stop() { return listener_->stop(); }

}  // namespace clawdforge
