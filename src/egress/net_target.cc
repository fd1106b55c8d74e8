#include "egress/net_target.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace clawdforge {
namespace {

constexpr std::size_t kNetTargetBytesMax = 259;

char small(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool is_plain(unsigned char c) { return c > 0x20 && c < 0x7F && c != '/' && c != '@' && c != '%'; }

}  // namespace

std::string NetTarget::text() const {
  return host.contains(':') ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

std::optional<NetTarget> net_target_from(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == text.npos || text.size() > kNetTargetBytesMax) return std::nullopt;
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  NetTarget target;
  const auto [end, error] = std::from_chars(digits.begin(), digits.end(), target.port);
  if (error != std::errc() || end != digits.end() || target.port == 0) return std::nullopt;
  const bool is_address = host.size() > 2 && host.starts_with('[') && host.ends_with(']');
  if (is_address) host = host.substr(1, host.size() - 2);
  // A name may end with a dot, and means the same then.
  if (!is_address && host.ends_with('.')) host.remove_suffix(1);
  if (host.empty() || !std::ranges::all_of(host, is_plain)) return std::nullopt;
  if (!is_address && host.contains(':')) return std::nullopt;
  for (const char c : host) target.host.push_back(small(c));
  return target;
}

std::optional<NetTarget> connect_target(std::string_view head) {
  constexpr std::string_view kMethod = "CONNECT ";
  const std::string_view line = head.substr(0, head.find("\r\n"));
  if (!line.starts_with(kMethod)) return std::nullopt;
  const std::string_view rest = line.substr(kMethod.size());
  const std::size_t space = rest.find(' ');
  if (space == rest.npos || !rest.substr(space + 1).starts_with("HTTP/1.")) return std::nullopt;
  return net_target_from(rest.substr(0, space));
}

bool is_allowed(const NetTarget& target, const std::vector<std::string>& allowed) {
  return std::ranges::any_of(allowed, [&](const std::string& entry) {
    const auto named = net_target_from(entry);
    if (!named || named->port != target.port) return false;
    if (!named->host.starts_with("*.")) return named->host == target.host;
    const std::string_view below = std::string_view(named->host).substr(1);  // with its dot
    return target.host.size() > below.size() && target.host.ends_with(below);
  });
}

}  // namespace clawdforge
