// What a command says when it cannot do what was asked: one line on standard error that ends with
// what to do next, and the exit code. `-v` adds the details. Values only.
#pragma once

#include <expected>
#include <string>
#include <utility>

#include "base/exit_codes.h"

namespace clawdforge {

struct Complaint {
  int exit_code = kExitFailed;
  std::string sentence{};  // empty: said already, or there is nothing to say
  std::string details{};   // status, code and request id; only `-v` shows them
};

// What the functions of the command line give; the dispatch prints the complaint.
template <class T>
using Asked = std::expected<T, Complaint>;
using Done = Asked<int>;  // the exit code

// return complain(kExitUsage, "the prompt is empty; write one after run.");
inline std::unexpected<Complaint> complain(int exit_code, std::string sentence,
                                           std::string details = {}) {
  return std::unexpected(Complaint{exit_code, std::move(sentence), std::move(details)});
}

}  // namespace clawdforge
