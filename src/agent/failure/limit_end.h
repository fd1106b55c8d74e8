// When an account's limit ends, by the sentence that the agent's command line prints.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace clawdforge {

// In unix seconds; none if the sentence does not say. Understood are "…|1759255200" and
// "resets 3pm", "reset at 3:30pm (Europe/Berlin)", "resets Oct 5, 3pm", "resets Oct 5",
// "resets Jul 11 at 12pm (UTC)", "resets in 2h 30m". A time of day is the next one; if it
// was within the last hour, it is meant, and has come.
std::optional<std::int64_t> limit_end(std::string_view sentence, std::int64_t now);

}  // namespace clawdforge
