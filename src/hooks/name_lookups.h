// NameLookups finds the addresses of hosts. The system's look-up cannot be interrupted, and waits
// for as long as a name server does not answer. So each name that is looked up has a thread of its
// own: a name that is not answered delays no other. Those who ask for a name that is being looked
// up wait for the same answer, so there is at most one thread for each name.
//
// Io thread only. It may die while look-ups are under way: their threads end when the system
// answers, and what they found is dropped.
#pragma once

#include <boost/asio/ip/address.hpp>
#include <boost/system/error_code.hpp>
#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/async/async.h"
#include "base/async/signal.h"

namespace clawdforge {

// Names that are looked up at the same time, also those that their callers do not wait for any
// more.
inline constexpr std::size_t kLookupsMax = 64;

class NameLookups {
 public:
  using Addresses = std::vector<boost::asio::ip::address>;
  using Deadline = std::chrono::steady_clock::time_point;

  explicit NameLookups(IoExecutor executor);
  ~NameLookups();
  NameLookups(const NameLookups&) = delete;
  NameLookups& operator=(const NameLookups&) = delete;

  // Errc::unavailable: there is no such host, no answer until `deadline`, or too many names are
  // looked up; the message is the reason, the end of a sentence.
  Async<Addresses> find(std::string host, Deadline deadline);

 private:
  struct Answer {
    boost::system::error_code error;
    Addresses addresses;
  };
  struct Lookup;
  struct Home;

  static Answer look_up(const std::string& host);
  Result<std::shared_ptr<Lookup>> begin(const std::string& host);
  void end(const std::string& host, Answer answer);

  const std::shared_ptr<Home> home_;
  std::map<std::string, std::shared_ptr<Lookup>> under_way_;
};

}  // namespace clawdforge
