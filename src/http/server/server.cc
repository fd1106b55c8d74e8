#include "http/server/server.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>

#include "base/async/async_tokens.h"
#include "base/async/task_group.h"
#include "base/async/timer.h"
#include "http/server/connection.h"

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

using Acceptor = asio::basic_socket_acceptor<tcp, IoExecutor>;

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
  Result<void> load_tls();
  void start() {
    tasks_.spawn(accept());
    tasks_.spawn(tick());
  }
  void drain() {
    context_.draining = true;
    for_each(&Connection::close_if_idle);
    for_each(&Connection::hasten);
  }
  Task<void> stop();

  std::size_t busy() const { return context_.busy; }
  std::size_t connections() const { return connection_count_; }

 private:
  Task<void> accept();
  Task<void> tick();
  bool accept_to_refuse();
  void admit_connection(TcpSocket socket, bool surplus);
  Task<void> serve(std::unique_ptr<Connection> connection);

  // `act` may make a connection leave the list.
  void for_each(void (Connection::*act)()) {
    for (auto next = open_.begin(); next != open_.end();) ((*next++).*act)();
  }

  Acceptor acceptor_;
  Timer ticks_;
  TaskGroup tasks_;
  ConnectionContext context_;
  std::optional<asio::ssl::context> tls_;
  ConnectionList open_;
  std::size_t connection_count_ = 0;
  Spares spares_;
  Gauge& open_gauge_;
  Counter& refused_;
};

Result<void> Server::Listener::load_tls() {
  const ServerOptions& options = context_.options;
  if (options.tls_cert.empty()) return {};
  error_code error;
  tls_.emplace(asio::ssl::context::tls_server);
  SSL_CTX_set_min_proto_version(tls_->native_handle(), TLS1_2_VERSION);
  SSL_CTX_set_mode(tls_->native_handle(), SSL_MODE_RELEASE_BUFFERS);
  tls_->use_certificate_chain_file(options.tls_cert, error);
  if (error) {
    return fail(Errc::internal, "tls",
                fmt::format("The TLS certificate {} cannot be used: {}.", options.tls_cert,
                            error.message()));
  }
  tls_->use_private_key_file(options.tls_key, asio::ssl::context::pem, error);
  if (error) {
    return fail(
        Errc::internal, "tls",
        fmt::format("The TLS key {} cannot be used: {}.", options.tls_key, error.message()));
  }
  return {};
}

Result<std::uint16_t> Server::Listener::listen(const std::string& host, std::uint16_t port) {
  if (auto loaded = load_tls(); !loaded) return std::unexpected(loaded.error());
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

Task<void> Server::Listener::accept() {
  bool is_failing = false;
  while (acceptor_.is_open()) {
    auto [error, socket] = co_await acceptor_.async_accept(kAwait);
    if (!acceptor_.is_open() || context_.stopping) co_return;
    if (!error) {
      is_failing = false;
      try {
        admit_connection(std::move(socket), connection_count_ >= context_.options.connections_max);
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
  admit_connection(std::move(socket), true);
  return true;
}

void Server::Listener::admit_connection(TcpSocket socket, bool surplus) {
  if (surplus) refused_.increment();
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
  const IpAddress peer = address_of(remote.address());
  auto connection = tls_ ? make_tls_connection(std::move(socket), peer, *tls_, context_, surplus)
                         : make_connection(std::move(socket), peer, context_, surplus);
  tasks_.spawn(serve(std::move(connection)));
}

Task<void> Server::Listener::serve(std::unique_ptr<Connection> connection) {
  open_.push_back(*connection);
  open_gauge_.set(static_cast<std::int64_t>(++connection_count_));
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
  open_gauge_.set(static_cast<std::int64_t>(--connection_count_));
}

Task<void> Server::Listener::tick() {
  while (!context_.stopping) {
    ticks_.expires_after(kTick);
    co_await ticks_.async_wait(kAwait);
    context_.date = date_line();
    const auto now = std::chrono::steady_clock::now();
    for (auto next = open_.begin(); next != open_.end();) (*next++).expire(now);
  }
}

Task<void> Server::Listener::stop() {
  context_.stopping = true;
  error_code ignored;
  acceptor_.close(ignored);
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
void Server::start() { listener_->start(); }
void Server::drain() { listener_->drain(); }
std::size_t Server::busy() const { return listener_->busy(); }
std::size_t Server::connections() const { return listener_->connections(); }
Task<void> Server::stop() { return listener_->stop(); }

}  // namespace clawdforge
