// LoginWatch tells when a file in one of some directories changes: a login that was renewed, or
// has come, is renamed into its place. Io thread only. Where the kernel gives no watch it is
// silent, and its owner looks by itself now and then.
#pragma once

#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <functional>
#include <string>
#include <vector>

#include "base/async/async.h"

namespace clawdforge {

class LoginWatch {
 public:
  LoginWatch(IoExecutor executor, std::vector<std::string> dirs, std::function<void()> on_change);

  // A directory that is not there yet is watched from when it is.
  void renew();
  // Until stop().
  Task<void> run();
  void stop();

 private:
  boost::asio::posix::basic_stream_descriptor<IoExecutor> events_;
  const std::vector<std::string> dirs_;
  const std::function<void()> on_change_;
};

}  // namespace clawdforge
