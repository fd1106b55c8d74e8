// What a check of the ledger found wrong: for each check that found anything one Finding,
// with how often and a few examples. A value of the check; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace clawdforge {

// How many examples a finding names.
inline constexpr std::size_t kFindingExamplesMax = 5;

// Names are stable: scripts may match on them.
struct Check {
  std::string_view name;
  std::string_view sentence;  // what is wrong, for the operator
};

struct Finding {
  Check check;
  std::int64_t count = 0;
  std::vector<std::string> examples;
};

class Findings {
 public:
  // Every check says that it is being made, also where it finds nothing.
  void begin(const Check& check);
  void note(const Check& check, std::string example, std::int64_t count = 1);

  std::int64_t checks() const { return checks_; }
  const std::vector<Finding>& all() const { return all_; }

 private:
  std::int64_t checks_ = 0;
  std::vector<Finding> all_;  // in the order of their first example
};

// "finding NAME: SENTENCE (ID, ID and 3 more)", one line whatever the examples hold.
std::string line_of(const Finding& finding);

}  // namespace clawdforge
