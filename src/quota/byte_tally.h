// ByteTally knows how many bytes of one kind each app keeps, such as its uploads. They are counted
// in the ledger now and then; what comes in between is added here, so that admission needs no
// query. What goes is seen by the next count: the tally may say too much for a while, not too
// little. A ByteReservation is what is on its way in; dropping it gives its bytes back. Io thread
// only; the tally outlives its reservations.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/strong_id.h"

namespace clawdforge {

class ByteTally;

class ByteReservation {
 public:
  // `bytes_max` is the app's own limit; none: that of all.
  ByteReservation(ByteTally& tally, AppName app, std::optional<std::int64_t> bytes_max = {})
      : tally_(tally), app_(std::move(app)), bytes_max_(bytes_max) {}
  ~ByteReservation();
  ByteReservation(const ByteReservation&) = delete;
  ByteReservation& operator=(const ByteReservation&) = delete;

  // False: with so much more the app would have more than it may; then nothing is added.
  bool add(std::int64_t bytes);
  std::int64_t bytes_max() const;    // of the app
  std::int64_t held_by_app() const;  // kept and on its way, what is added here included
  // All of it is kept from now on. Once, and the last call.
  void keep();

 private:
  ByteTally& tally_;
  const AppName app_;
  const std::optional<std::int64_t> bytes_max_;
  std::int64_t bytes_ = 0;
};

class ByteTally {
 public:
  using Bytes = std::map<AppName, std::int64_t>;  // by app

  explicit ByteTally(std::int64_t bytes_max_per_app) : bytes_max_(bytes_max_per_app) {}
  ByteTally(const ByteTally&) = delete;
  ByteTally& operator=(const ByteTally&) = delete;

  // Around the query that counts what is kept. What is kept meanwhile may be in its answer or not;
  // it is added in any case, so it may count twice until the next count.
  void begin_count() { kept_meanwhile_.clear(); }
  void end_count(Bytes kept);

  // Is kept from now on, whatever the app may have: for what cannot be refused any more.
  void add_kept(const AppName& app, std::int64_t bytes);
  bool is_full(const AppName& app) const { return held_by(app) >= bytes_max_; }

  std::int64_t held_by(const AppName& app) const;  // kept and on its way
  std::int64_t total() const;

 private:
  friend class ByteReservation;

  const std::int64_t bytes_max_;
  Bytes kept_;
  Bytes kept_meanwhile_;
  Bytes arriving_;
};

}  // namespace clawdforge
