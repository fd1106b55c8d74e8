// What an agent asks the proxy for, and whether it may have it. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace clawdforge {

struct NetTarget {
  std::string host;  // in small letters, without brackets
  std::uint16_t port = 0;

  std::string text() const;
  bool operator==(const NetTarget&) const = default;
};

// "api.example.org:443" or "[::1]:443"; none: it is not one.
std::optional<NetTarget> net_target_from(std::string_view text);

// The target of a request head, which begins "CONNECT HOST:PORT HTTP/1.1"; none: it is another
// request.
std::optional<NetTarget> connect_target(std::string_view head);

// `allowed` are those of Policy::net_allow.
bool is_allowed(const NetTarget& target, const std::vector<std::string>& allowed);

}  // namespace clawdforge
