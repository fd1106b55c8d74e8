// Parses JSON that another program wrote, within a depth. Pure.
#pragma once

#include <boost/json/fwd.hpp>
#include <boost/json/storage_ptr.hpp>
#include <cstddef>
#include <optional>
#include <string_view>

namespace clawdforge {

// How deeply what we read may be nested. How large it may be is limited where it comes in: as a
// request's body, an agent's line, a row.
inline constexpr std::size_t kJsonDepthMax = 32;          // a body, a row, an answer of a gateway
inline constexpr std::size_t kAgentJsonDepthMax = 128;    // what an agent or its command line says
inline constexpr std::size_t kJournalJsonDepthMax = 160;  // an event, which may hold such a message

// Values of one document: each costs much more memory than its text.
inline constexpr std::size_t kJsonValuesMax = 100'000;       // of a body
inline constexpr std::size_t kAgentJsonValuesMax = 500'000;  // of anything else

// None: it is not JSON, is nested too deeply, has more than kAgentJsonValuesMax values, or bytes
// that are not UTF-8.
std::optional<boost::json::value> parse_json(std::string_view text, std::size_t depth_max,
                                             boost::json::storage_ptr memory = {});

}  // namespace clawdforge
