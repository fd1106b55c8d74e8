// The signature of the Standard Webhooks scheme: HMAC-SHA256 over the event's id, the time of the
// attempt and the body. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/secret.h"

namespace clawdforge {

// The value of the header webhook-signature: "v1," and base64. `at` is unix seconds. None: the
// secret is not "whsec_" and base64.
std::optional<std::string> webhook_signature(const Secret& secret, std::string_view id,
                                             std::int64_t at, std::string_view body);

}  // namespace clawdforge
