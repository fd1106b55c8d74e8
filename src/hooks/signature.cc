#include "hooks/signature.h"

#include <fmt/format.h>

namespace clawdforge {

std::optional<std::string> webhook_signature(const Secret& secret, std::string_view id,
                                             std::int64_t at, std::string_view body) {
  constexpr std::string_view kPrefix = "whsec_";
  const std::string_view text = secret.reveal();
  if (!text.starts_with(kPrefix)) return std::nullopt;
  auto bytes = from_base64(text.substr(kPrefix.size()));
  if (!bytes || bytes->empty()) return std::nullopt;
  const Secret key(std::move(*bytes));
  const Digest digest = hmac_sha256(key.reveal(), fmt::format("{}.{}.{}", id, at, body));
  return "v1," + to_base64({reinterpret_cast<const char*>(digest.data()), digest.size()});
}

}  // namespace clawdforge
