// Estimates says how much an ask will probably use: what nine of ten of the app's last asks to the
// same agent and model did not exceed, and at least a floor. Known from the ledger at first, then
// from what is noted here. Io thread only.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "base/strong_id.h"
#include "model/limits/budget.h"

namespace clawdforge {

// Apps, agents and models whose last asks are remembered; with one more all are forgotten, and are
// read from the ledger again.
inline constexpr std::size_t kEstimatedKeysMax = 4'096;
inline constexpr std::size_t kEstimatedAsksMax = 32;

class Estimates {
 public:
  using Key = std::tuple<AppName, std::string, std::string>;  // app, agent, model

  explicit Estimates(Amounts floor) : floor_(floor) {}

  bool knows(const Key& key) const { return asks_.contains(key); }
  // The newest first.
  void learn(const Key& key, const std::vector<Amounts>& asks);
  // An ask has ended. Of a key that is not known nothing is kept.
  void note(const Key& key, const Amounts& used);

  Amounts of(const Key& key) const;

 private:
  const Amounts floor_;
  std::map<Key, std::deque<Amounts>> asks_;  // the newest first
};

}  // namespace clawdforge
