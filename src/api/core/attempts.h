// Attempts limits how many different wrong tokens one address may try. The same wrong
// token again is not guessing (a forgotten job repeats its stale one for ever) and
// costs nothing. The table of addresses is bounded. Io thread only.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>

#include "base/net.h"
#include "base/secret.h"

namespace clawdforge {

class Attempts {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // Whether this address has used up its allowance.
  bool is_over(const IpAddress& address, Time now);
  // One wrong token, known by its digest.
  void count(const IpAddress& address, const Digest& digest, Time now);
  // Until one more attempt is allowed, at least a second.
  std::chrono::seconds retry_after() const;

  std::size_t size() const { return records_.size(); }

 private:
  static constexpr std::size_t kRememberedMax = 8;  // last different wrong tokens
  struct Record {
    double spent = 0;  // attempts not yet forgiven
    Time at;
    std::array<std::uint64_t, kRememberedMax> recent{};
    std::size_t next = 0;
  };
  // IPv6 callers own whole networks: the /64 counts as one.
  static IpAddress key_of(const IpAddress& address);
  static void forgive(Record& record, Time now);
  void make_room(const IpAddress& key, Time now);

  std::map<IpAddress, Record> records_;
  Time next_clean_up_;
};

}  // namespace clawdforge
