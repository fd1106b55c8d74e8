// The little that is needed of time zones to read "resets 3pm (Europe/Berlin)".
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace clawdforge {

// Seconds to add to universal time at the unix second `at` to get the time of day in
// `zone`: a name of the system's time zone files, or empty for our own zone. None if the
// zone is not known. Reads one small file.
std::optional<std::int64_t> utc_offset(std::string_view zone, std::int64_t at);

// The same by the content of a time zone file (RFC 9636).
std::optional<std::int64_t> zone_file_offset(std::string_view file, std::int64_t at);

}  // namespace clawdforge
