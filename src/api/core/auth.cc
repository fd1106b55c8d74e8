#include "api/core/auth.h"

#include <algorithm>

#include "base/refusals.h"

namespace clawdforge {
namespace {

bool contains(const std::vector<Cidr>& ranges, const IpAddress& address) {
  return std::ranges::any_of(ranges, [&](const Cidr& range) { return range.contains(address); });
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// An address as proxies write it: bare, in brackets, or with a port.
std::optional<IpAddress> forwarded_address(std::string_view text) {
  text = trimmed(text);
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == text.npos) return std::nullopt;
    return IpAddress::parse(text.substr(1, end - 1));
  }
  if (std::ranges::count(text, ':') == 1) text = text.substr(0, text.find(':'));
  return IpAddress::parse(text);
}

std::string_view bearer_of(const Request& request) {
  constexpr std::string_view kScheme = "Bearer ";
  const auto header = request.header("Authorization");
  if (!header || !equals_ignoring_case(header->substr(0, kScheme.size()), kScheme)) return {};
  return trimmed(header->substr(kScheme.size()));
}

std::unexpected<Failure> address_not_allowed() {
  return fail(Errc::forbidden, "address_not_allowed",
              "Calls from this address are not allowed here.");
}

}  // namespace

std::optional<IpAddress> origin_of(const Request& request, const std::vector<Cidr>& trusted) {
  IpAddress origin = request.peer;
  if (!contains(trusted, origin)) return origin;
  // Several headers of this name read as one list in their order.
  for (auto header = request.headers.rbegin(); header != request.headers.rend(); ++header) {
    if (!equals_ignoring_case(header->name, "X-Forwarded-For")) continue;
    std::string_view list = header->value;
    for (bool more = true; more;) {
      const std::size_t comma = list.rfind(',');
      more = comma != list.npos;
      const auto hop = forwarded_address(more ? list.substr(comma + 1) : list);
      if (!hop) return std::nullopt;
      origin = *hop;
      if (!contains(trusted, origin)) return origin;
      if (more) list = list.substr(0, comma);
    }
  }
  return origin;
}

Auth::Auth(AddressRules rules, Digest admin_digest, Apps& apps)
    : rules_(std::move(rules)), admin_digest_(admin_digest), apps_(apps) {}

Result<IpAddress> Auth::check_address(const Request& request) const {
  const auto origin = origin_of(request, rules_.trusted_proxies);
  if (!origin) return address_not_allowed();
  if (!origin->is_loopback() && !contains(rules_.allow, *origin)) return address_not_allowed();
  return *origin;
}

Result<Caller> Auth::identify(const Request& request, const IpAddress& origin) {
  const std::string_view token = bearer_of(request);
  if (auto app = apps_.find(token)) {
    if (!app->ip_cidrs.empty() && !contains(app->ip_cidrs, origin)) return address_not_allowed();
    return Caller{CallerKind::app, std::move(app)};
  }
  // From here on it is the admin or somebody who guesses, so the limit comes first.
  const auto now = Attempts::Time::clock::now();
  if (attempts_.is_over(origin, now)) {
    return fail_for_now(Errc::over_quota, "too_many_attempts",
                        "Too many wrong tokens came from this address; try again later.",
                        attempts_.retry_after());
  }
  if (!token.empty()) {
    const Digest digest = sha256(token);
    if (equal_in_constant_time(digest, admin_digest_)) return Caller{CallerKind::admin, nullptr};
    attempts_.count(origin, digest, now);
  }
  return fail(Errc::unauthorized, "unauthorized",
              "Send a valid token as 'Authorization: Bearer <token>'.");
}

}  // namespace clawdforge
