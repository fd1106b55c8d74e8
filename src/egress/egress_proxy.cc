#include "egress/egress_proxy.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <array>
#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <boost/asio/write.hpp>
#include <cstring>
#include <list>
#include <set>

#include "base/async/async_tokens.h"
#include "base/async/timer.h"
#include "egress/net_target.h"

namespace clawdforge {
namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

using Socket = asio::basic_stream_socket<tcp, IoExecutor>;

constexpr std::size_t kCarryBytes = 16 * 1024;  // at once, in each direction
constexpr std::string_view kHeadEnd = "\r\n\r\n";

// What the launcher has sent; not open: it gave up before.
Descriptor received_from(int outlet) {
  char byte = 0;
  iovec part{&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  if (::recvmsg(outlet, &message, MSG_CMSG_CLOEXEC) <= 0) return {};
  const cmsghdr* const head = CMSG_FIRSTHDR(&message);
  if (head == nullptr || head->cmsg_type != SCM_RIGHTS) return {};
  int descriptor = -1;
  std::memcpy(&descriptor, CMSG_DATA(head), sizeof descriptor);
  return Descriptor(descriptor);
}

std::string refusal(std::string_view status, std::string_view sentence) {
  return fmt::format(
      "HTTP/1.1 {}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: "
      "close\r\n\r\n{}\n",
      status, sentence.size() + 1, sentence);
}

void close_socket(Socket& socket) {
  error_code ignored;  // it is given up in any case
  socket.close(ignored);
}

}  // namespace

struct EgressProxy::Tree {
  Tree(IoExecutor executor, EgressRules its_rules)
      : rules(std::move(its_rules)), outlet(executor), acceptor(executor) {}

  const EgressRules rules;
  asio::posix::basic_stream_descriptor<IoExecutor> outlet;
  asio::basic_socket_acceptor<tcp, IoExecutor> acceptor;
  std::set<std::shared_ptr<Tunnel>> tunnels;
  std::set<std::string> refused;  // targets that were told
};

struct EgressProxy::Tunnel {
  explicit Tunnel(IoExecutor executor) : inside(executor), outside(executor), timer(executor) {}

  void close() {
    close_socket(inside);
    close_socket(outside);
    timer.cancel();
  }

  Socket inside;   // to the agent
  Socket outside;  // to its target
  Timer timer;     // of what is waited for now
  std::string head;
  std::size_t carried = 0;  // bytes, in both directions
};

EgressProxy::EgressProxy(IoExecutor executor, Metrics& metrics, Log& log, OnRefused on_refused)
    : executor_(executor),
      log_(log),
      on_refused_(std::move(on_refused)),
      tunnels_(metrics.gauge("clawdforge_net_tunnels", "Connections of agents through the proxy.")),
      refused_(metrics.counter("clawdforge_net_refused_total",
                               "Connections that agents were refused by the proxy.")),
      names_(executor),
      tasks_(executor) {}

EgressProxy::~EgressProxy() = default;

void EgressProxy::serve(Descriptor outlet, EgressRules rules) {
  if (!outlet.is_open()) return;
  const auto tree = std::make_shared<Tree>(executor_, std::move(rules));
  error_code error;
  tree->outlet.assign(outlet.number(), error);
  if (error) return;  // the system cannot watch one more: the agent reaches nothing
  outlet.release();
  tasks_.spawn(serve_tree(tree));
}

Task<void> EgressProxy::serve_tree(std::shared_ptr<Tree> tree) {
  using Wait = asio::posix::descriptor_base;
  const auto [wait_error] = co_await tree->outlet.async_wait(Wait::wait_read, kAwait);
  Descriptor listener = wait_error ? Descriptor() : received_from(tree->outlet.native_handle());
  if (!listener.is_open()) co_return;
  error_code error;
  tree->acceptor.assign(tcp::v4(), listener.number(), error);
  if (error) co_return;
  listener.release();
  tasks_.spawn(accept(tree));
  // Nothing more comes but the end.
  co_await tree->outlet.async_wait(Wait::wait_read, kAwait);
  tree->acceptor.close(error);
  for (const auto& tunnel : tree->tunnels) tunnel->close();
}

Task<void> EgressProxy::accept(std::shared_ptr<Tree> tree) {
  while (tree->acceptor.is_open()) {
    const auto tunnel = std::make_shared<Tunnel>(executor_);
    const auto [error] = co_await tree->acceptor.async_accept(tunnel->inside, kAwait);
    if (error == asio::error::operation_aborted || !tree->acceptor.is_open()) co_return;
    if (error) {
      // No more descriptors, or a caller that has gone: not at once again.
      tunnel->timer.expires_after(std::chrono::milliseconds(100));
      co_await tunnel->timer.async_wait(kAwait);
      continue;
    }
    if (tree->tunnels.size() >= kTunnelsMaxPerTree || tunnel_count_ >= kTunnelsMax) continue;
    tree->tunnels.insert(tunnel);
    ++tunnel_count_;
    tunnels_.add(1);
    tasks_.spawn(open(tree, tunnel));
  }
}

// One connection from its begin to its end.
Task<void> EgressProxy::open(std::shared_ptr<Tree> tree, std::shared_ptr<Tunnel> tunnel) {
  tunnel->timer.expires_after(kTunnelOpenMax);
  tunnel->timer.async_wait([weak = std::weak_ptr(tunnel)](error_code error) {
    const auto late = weak.lock();
    if (late && !error) late->close();
  });
  const std::string refused = co_await connect(tree, tunnel);
  tunnel->timer.cancel();
  const std::string answer =
      refused.empty() ? "HTTP/1.1 200 Connection established\r\n\r\n" : refused;
  const auto [error, written] =
      co_await asio::async_write(tunnel->inside, asio::buffer(answer), kAwait);
  if (refused.empty() && !error) {
    tasks_.spawn(watch_idle(tunnel));
    tasks_.spawn(carry(tunnel, true));
    co_await carry(tunnel, false);
  }
  tunnel->close();
  tree->tunnels.erase(tunnel);
  --tunnel_count_;
  tunnels_.add(-1);
}

// Empty: it is connected. Else what the agent is told.
Task<std::string> EgressProxy::connect(std::shared_ptr<Tree> tree, std::shared_ptr<Tunnel> tunnel) {
  std::string& head = tunnel->head;
  while (!head.contains(kHeadEnd)) {
    if (head.size() >= kTunnelHeadBytesMax) {
      co_return refusal("431 Request Header Fields Too Large", "The request's head is too large.");
    }
    std::array<char, 2048> piece{};
    const auto [error, count] =
        co_await tunnel->inside.async_read_some(asio::buffer(piece), kAwait);
    if (error) co_return refusal("400 Bad Request", "The request did not end.");
    head.append(piece.data(), count);
  }
  const auto target = connect_target(head);
  if (!target) {
    note_refused(*tree, "http");
    co_return refusal("405 Method Not Allowed",
                      "This proxy takes CONNECT HOST:PORT only: use https.");
  }
  if (!is_allowed(*target, tree->rules.allowed)) {
    note_refused(*tree, target->text());
    co_return refusal("403 Forbidden",
                      fmt::format("The gateway's owner does not allow agents to reach {}: "
                                  "net_allow names what they may.",
                                  target->text()));
  }
  NameLookups::Addresses addresses;
  error_code parse_error;
  const auto literal = asio::ip::make_address(target->host, parse_error);
  if (!parse_error) {
    addresses.push_back(literal);
  } else {
    auto found =
        co_await names_.find(target->host, std::chrono::steady_clock::now() + kTunnelOpenMax);
    if (!found) co_return refusal("502 Bad Gateway", found.error().message);
    addresses = std::move(*found);
  }
  std::vector<tcp::endpoint> endpoints;
  for (const auto& address : addresses) endpoints.emplace_back(address, target->port);
  const auto [error, endpoint] = co_await asio::async_connect(tunnel->outside, endpoints, kAwait);
  if (error) co_return refusal("502 Bad Gateway", error.message());
  const std::string rest = head.substr(head.find(kHeadEnd) + kHeadEnd.size());
  head.clear();
  if (!rest.empty()) co_await asio::async_write(tunnel->outside, asio::buffer(rest), kAwait);
  co_return std::string();
}

Task<void> EgressProxy::carry(std::shared_ptr<Tunnel> tunnel, bool is_outward) {
  Socket& from = is_outward ? tunnel->inside : tunnel->outside;
  Socket& into = is_outward ? tunnel->outside : tunnel->inside;
  std::vector<char> piece(kCarryBytes);
  while (true) {
    const auto [error, count] = co_await from.async_read_some(asio::buffer(piece), kAwait);
    if (error) break;
    tunnel->carried += count;
    const auto [write_error, written] =
        co_await asio::async_write(into, asio::buffer(piece.data(), count), kAwait);
    if (write_error) break;
  }
  error_code ignored;  // the other end may be gone
  into.shutdown(Socket::shutdown_send, ignored);
  // After the answer's end nothing is waited for; a request may end before its answer.
  if (!is_outward) tunnel->close();
}

Task<void> EgressProxy::watch_idle(std::shared_ptr<Tunnel> tunnel) {
  std::size_t before = 0;
  while (tunnel->inside.is_open()) {
    before = tunnel->carried;
    tunnel->timer.expires_after(kTunnelIdleMax);
    const auto [error] = co_await tunnel->timer.async_wait(kAwait);
    if (error) co_return;
    if (tunnel->carried == before) tunnel->close();
  }
}

void EgressProxy::note_refused(Tree& tree, const std::string& target) {
  refused_.increment();
  if (tree.refused.size() >= kRefusalsToldMax || !tree.refused.insert(target).second) return;
  log_.warn("an agent was refused a connection", {{"app", std::string_view(tree.rules.app)},
                                                  {"agent", std::string_view(tree.rules.agent)},
                                                  {"target", std::string_view(target)}});
  if (on_refused_) on_refused_(tree.rules, target);
}

Task<void> EgressProxy::stop() {
  tasks_.cancel();
  co_await tasks_.join();
}

}  // namespace clawdforge
