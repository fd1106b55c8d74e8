// Tells the ways apart in which an agent's command line fails. Pure. The codes are
// stable: docs/openapi.yaml lists them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "agent/claude/cli_result.h"
#include "agent/core/question.h"
#include "process/tree/child.h"

namespace clawdforge {

inline constexpr std::size_t kSentenceCharactersMax = 500;
// A longer wait is not believed, and told as unknown.
inline constexpr std::chrono::seconds kLimitWaitMax = std::chrono::days(31);

// By what the command line itself said; `result.is_error` is true. Secrets are masked.
Failure failure_of(const CliResult& result, std::int64_t now,
                   const std::vector<std::string>& secrets);

// How it ended without a result.
struct SilentEnd {
  ExitStatus status;
  bool has_output = false;
  bool is_too_large = false;
  std::string_view error_tail;
};
Failure failure_of(const std::string& agent, const SilentEnd& end);

}  // namespace clawdforge
