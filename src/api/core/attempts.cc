#include "api/core/attempts.h"

#include <algorithm>
#include <cstring>

namespace clawdforge {
namespace {

constexpr double kAttemptsMax = 20;
constexpr std::chrono::duration<double> kForgivenAfter{3};  // one attempt
constexpr std::size_t kAddressesMax = 4096;

}  // namespace

IpAddress Attempts::key_of(const IpAddress& address) {
  if (address.is_v4()) return address;
  auto bytes = address.bytes();
  std::fill(bytes.begin() + 8, bytes.end(), std::uint8_t{0});
  return IpAddress::from_v6(bytes);
}

void Attempts::forgive(Record& record, Time now) {
  const std::chrono::duration<double> passed = now - record.at;
  record.spent = std::max(0.0, record.spent - passed / kForgivenAfter);
  record.at = now;
}

bool Attempts::is_over(const IpAddress& address, Time now) {
  if (records_.empty()) return false;
  const auto found = records_.find(key_of(address));
  if (found == records_.end()) return false;
  forgive(found->second, now);
  return found->second.spent + 1 > kAttemptsMax;
}

void Attempts::count(const IpAddress& address, const Digest& digest, Time now) {
  std::uint64_t token = 0;
  std::memcpy(&token, digest.data(), sizeof token);
  const IpAddress key = key_of(address);
  auto found = records_.find(key);
  if (found == records_.end()) {
    if (records_.size() >= kAddressesMax) make_room(key, now);
    found = records_.try_emplace(key).first;
    found->second.at = now;
  }
  Record& record = found->second;
  forgive(record, now);
  if (std::ranges::find(record.recent, token) != record.recent.end()) return;
  record.recent[record.next++ % kRememberedMax] = token;
  record.spent += 1;
}

// Those whose allowance is whole again go. That takes a look at all of them, so it is
// done at most once a second; in between, or if it frees nothing, a neighbour goes.
void Attempts::make_room(const IpAddress& key, Time now) {
  if (now >= next_clean_up_) {
    next_clean_up_ = now + std::chrono::seconds(1);
    for (auto& [address, record] : records_) forgive(record, now);
    std::erase_if(records_, [](const auto& entry) { return entry.second.spent == 0; });
    if (records_.size() < kAddressesMax) return;
  }
  const auto neighbour = records_.lower_bound(key);
  records_.erase(neighbour == records_.end() ? records_.begin() : neighbour);
}

std::chrono::seconds Attempts::retry_after() const {
  return std::chrono::ceil<std::chrono::seconds>(kForgivenAfter);
}

}  // namespace clawdforge
