#include "launcher/bounds/network.h"

#include <fcntl.h>
#include <linux/if.h>
#include <linux/in.h>
#include <linux/sockios.h>
#include <sys/socket.h>

namespace launcher {

namespace {

constexpr int kBacklog = 64;

void bring_loopback_up() {
  const Answer any = call(SYS_socket, AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (any < 0) give_up("network", any);
  ifreq loopback = {};
  loopback.ifr_name[0] = 'l';
  loopback.ifr_name[1] = 'o';
  loopback.ifr_flags = IFF_UP | IFF_RUNNING;
  const Answer up = call(SYS_ioctl, any, SIOCSIFFLAGS, &loopback);
  if (up < 0) give_up("loopback", up);
  call(SYS_close, any);
}

Answer listen_at(unsigned long port) {
  const Answer listener = call(SYS_socket, AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (listener < 0) return listener;
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = __builtin_bswap16(static_cast<unsigned short>(port));
  address.sin_addr.s_addr = __builtin_bswap32(INADDR_LOOPBACK);
  Answer done = call(SYS_bind, listener, &address, sizeof address);
  if (done >= 0) done = call(SYS_listen, listener, kBacklog);
  return done < 0 ? done : listener;
}

Answer hand_out(int descriptor) {
  char byte = 'l';
  iovec part = {&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof(int));
  *reinterpret_cast<int*>(CMSG_DATA(head)) = descriptor;
  return call(SYS_sendmsg, kOutlet, &message, MSG_NOSIGNAL);
}

}  // namespace

void make_network(const Order& order) {
  if (!order.is_network_wanted) return;
  bring_loopback_up();
  if (order.listener_port == 0) return;
  call(SYS_fcntl, kOutlet, F_SETFD, FD_CLOEXEC);
  const Answer listener = listen_at(order.listener_port);
  if (listener < 0) give_up("listener", listener);
  const Answer sent = hand_out(static_cast<int>(listener));
  if (sent < 0) give_up("hand-out", sent);
  call(SYS_close, listener);
}

}  // namespace launcher
