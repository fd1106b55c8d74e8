// The rule that a time zone file gives for all times after its last transition, in the form of
// POSIX: "CET-1CEST,M3.5.0,M10.5.0/3" (RFC 9636, section 3.3.1). Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace clawdforge {

// Seconds to add to universal time at the Unix second `at`. None if it is not such a rule.
std::optional<std::int64_t> posix_zone_offset(std::string_view rule, std::int64_t at);

}  // namespace clawdforge
