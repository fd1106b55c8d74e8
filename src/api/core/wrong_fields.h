// What a request gets whose fields are wrong, in its body or in its query.
#pragma once

#include <fmt/format.h>

#include <vector>

#include "base/result.h"

namespace clawdforge {

// Errc::invalid "validation_failed" with all of them, and the first one as its sentence.
inline Result<void> refuse_wrong(const std::vector<FieldError>& wrong) {
  if (wrong.empty()) return {};
  auto failed = fail(Errc::invalid, "validation_failed",
                     fmt::format("{} {}.", wrong.front().field, wrong.front().message));
  failed.error().fields = wrong;
  return failed;
}

}  // namespace clawdforge
