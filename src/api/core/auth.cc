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

// A Host header's value: a name or an address, maybe with a port.
std::string_view without_port(std::string_view host) {
  const std::size_t colon = host.rfind(':');
  const bool has_port = colon != host.npos && host.find(']', colon) == host.npos &&
                        (host.starts_with('[') || host.find(':') == colon);
  return has_port ? host.substr(0, colon) : host;
}

bool is_address(std::string_view host) {
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return IpAddress::parse(host).has_value();
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
  if (request.is_from_local_socket) return request.peer;
  const auto origin = origin_of(request, rules_.trusted_proxies);
  if (!origin) return address_not_allowed();
  if (!origin->is_loopback() && !contains(rules_.allow, *origin)) return address_not_allowed();
  return *origin;
}

Result<void> Auth::check_host(const Request& request) const {
  const auto host = request.header("Host");
  if (request.is_from_local_socket || !host) return {};  // HTTP/1.0 has none
  const std::string_view name = without_port(*host);
  if (is_address(name) || equals_ignoring_case(name, "localhost")) return {};
  const bool is_known = std::ranges::any_of(
      rules_.hosts, [&](const std::string& known) { return equals_ignoring_case(known, name); });
  if (is_known) return {};
  return fail(Errc::misdirected, "host_not_allowed",
              "The gateway does not answer to this host name; ask by its address, or let its owner "
              "add the name to allow_hosts.");
}

Result<Caller> Auth::identify(const Request& request, const IpAddress& origin) {
  if (request.is_from_local_socket && !request.header("Authorization")) {
    return Caller{CallerKind::admin, nullptr, {AdminDoor::socket, {}}};
  }
  const std::string_view token = bearer_of(request);
  if (auto app = apps_.find(token)) {
    if (!app->ip_cidrs.empty() && !contains(app->ip_cidrs, origin)) return address_not_allowed();
    return Caller{CallerKind::app, std::move(app), {}};
  }
  const Digest digest = sha256(token);
  if (!token.empty() && equal_in_constant_time(digest, admin_digest_)) {
    return Caller{CallerKind::admin, nullptr, {AdminDoor::token, origin.text()}};
  }
  // Only what is wrong is limited: else a stranger who guesses from the admin's own address, or
  // behind the same proxy, could keep the admin from revoking a token.
  const auto now = Attempts::Time::clock::now();
  if (attempts_.is_over(origin, now)) {
    return fail_for_now(Errc::over_quota, "too_many_attempts",
                        "Too many wrong tokens came from this address; try again later.",
                        attempts_.retry_after());
  }
  if (!token.empty()) attempts_.count(origin, digest, now);
  return fail(Errc::unauthorized, "unauthorized",
              "Send a valid token as 'Authorization: Bearer <token>'.");
}

}  // namespace clawdforge
