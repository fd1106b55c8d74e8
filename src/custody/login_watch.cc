#include "custody/login_watch.h"

#include <sys/inotify.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <utility>

#include "base/async/async_tokens.h"

namespace clawdforge {
namespace {

constexpr std::uint32_t kChanges =
    IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_ATTRIB | IN_ONLYDIR;

}  // namespace

LoginWatch::LoginWatch(IoExecutor executor, std::vector<std::string> dirs,
                       std::function<void()> on_change)
    : events_(executor), dirs_(std::move(dirs)), on_change_(std::move(on_change)) {
  const int number = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  if (number < 0) return;
  boost::system::error_code error;
  events_.assign(number, error);
  renew();
}

void LoginWatch::renew() {
  if (!events_.is_open()) return;
  // One that is watched already stays as it is.
  for (const std::string& dir : dirs_) {
    ::inotify_add_watch(events_.native_handle(), dir.c_str(), kChanges);
  }
}

Task<void> LoginWatch::run() {
  std::array<char, 4096> buffer{};
  while (events_.is_open()) {
    const auto [error, size] =
        co_await events_.async_read_some(boost::asio::buffer(buffer), kAwait);
    if (error || size == 0) co_return;
    on_change_();
  }
}

void LoginWatch::stop() {
  boost::system::error_code error;
  events_.close(error);
}

}  // namespace clawdforge
