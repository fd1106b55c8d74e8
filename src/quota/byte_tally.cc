#include "quota/byte_tally.h"

#include <utility>

namespace clawdforge {
namespace {

std::int64_t bytes_in(const ByteTally::Bytes& bytes, const AppName& app) {
  const auto found = bytes.find(app);
  return found == bytes.end() ? 0 : found->second;
}

std::int64_t sum_of(const ByteTally::Bytes& bytes) {
  std::int64_t sum = 0;
  for (const auto& [app, count] : bytes) sum += count;
  return sum;
}

}  // namespace

std::int64_t ByteReservation::bytes_max() const { return bytes_max_.value_or(tally_.bytes_max_); }

std::int64_t ByteReservation::held_by_app() const { return tally_.held_by(app_); }

bool ByteReservation::add(std::int64_t bytes) {
  if (bytes > bytes_max() - held_by_app()) return false;
  tally_.arriving_[app_] += bytes;
  bytes_ += bytes;
  return true;
}

void ByteReservation::keep() { tally_.add_kept(app_, bytes_); }

// Also after keep(): what is kept is not on its way any more.
ByteReservation::~ByteReservation() {
  const auto arriving = tally_.arriving_.find(app_);
  if (arriving == tally_.arriving_.end()) return;
  arriving->second -= bytes_;
  if (arriving->second == 0) tally_.arriving_.erase(arriving);
}

void ByteTally::add_kept(const AppName& app, std::int64_t bytes) {
  kept_[app] += bytes;
  kept_meanwhile_[app] += bytes;
}

void ByteTally::end_count(Bytes kept) {
  kept_ = std::move(kept);
  for (const auto& [app, bytes] : kept_meanwhile_) kept_[app] += bytes;
}

std::int64_t ByteTally::held_by(const AppName& app) const {
  return bytes_in(kept_, app) + bytes_in(arriving_, app);
}

std::int64_t ByteTally::total() const { return sum_of(kept_) + sum_of(arriving_); }

}  // namespace clawdforge
