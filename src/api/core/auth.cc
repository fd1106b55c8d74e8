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

// Browsers and resolvers lead these to the machine itself, whatever a name server says.
bool is_local_name(std::string_view host) {
  constexpr std::string_view kLocal = ".localhost";
  if (equals_ignoring_case(host, kLocal.substr(1))) return true;
  return host.size() > kLocal.size() &&
         equals_ignoring_case(host.substr(host.size() - kLocal.size()), kLocal);
}

bool is_listed(const std::vector<std::string>& hosts, std::string_view name) {
  return std::ranges::any_of(
      hosts, [&](const std::string& known) { return equals_ignoring_case(known, name); });
}

// "https://forge.example:8800" without its scheme; empty for what is not an origin, such as "null".
std::string_view authority_of(std::string_view origin) {
  constexpr std::string_view kSchemeEnd = "://";
  const std::size_t end = origin.find(kSchemeEnd);
  return end == origin.npos ? std::string_view() : origin.substr(end + kSchemeEnd.size());
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

Auth::Auth(AddressRules rules, Digest admin_digest, Apps& apps, Browsers* browsers,
           std::shared_ptr<Attempts> attempts)
    : rules_(std::move(rules)),
      admin_digest_(admin_digest),
      apps_(apps),
      browsers_(browsers),
      attempts_(std::move(attempts)) {}

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
  if (is_address(name) || is_local_name(name) || is_listed(rules_.hosts, name)) return {};
  return fail(Errc::misdirected, "host_not_allowed",
              "The gateway does not answer to this host name; ask by its address, or let its owner "
              "add the name to allow_hosts.");
}

// A browser sends these by itself, and no script can change them. Where it sends none, it is not a
// browser, or an old one.
Result<void> Auth::check_page(const Request& request) const {
  const auto site = request.header("Sec-Fetch-Site");
  bool is_own = !site || *site == "same-origin" || *site == "none";
  if (const auto origin = request.header("Origin"); origin && is_own) {
    const std::string_view authority = authority_of(*origin);
    // A proxy may tell us another host than the browser asked for; then its name is listed.
    is_own = !authority.empty() &&
             (equals_ignoring_case(authority, request.header("Host").value_or("")) ||
              is_listed(rules_.hosts, without_port(authority)));
  }
  if (is_own) return {};
  return fail(
      Errc::forbidden, "foreign_page",
      "A page of another place asks; a browser's token works only from the gateway's own page.");
}

Result<Caller> Auth::act_as(Caller admin, std::string_view name, bool only_reads) const {
  if (is_app_name(name)) {
    AppName app{std::string(name)};
    admin.app = apps_.named(app);
    if (!admin.app && only_reads) {
      App gone;
      gone.name = std::move(app);
      admin.app = std::make_shared<const App>(std::move(gone));
    }
  }
  if (!admin.app)
    return fail(Errc::not_found, "token_not_found", "There is no token of this name.");
  admin.kind = CallerKind::app;
  admin.is_owner = true;
  return admin;
}

Result<void> Auth::check_proof(const Caller& caller) const {
  if (!caller.browser || browsers_ == nullptr || browsers_->is_proved(*caller.browser)) return {};
  return fail(Errc::forbidden, "proof_needed",
              "Show the admin token again: it was last shown more than 10 minutes ago.");
}

Result<Caller> Auth::identify_browser(Browsers::Found found, const Request& request,
                                      const IpAddress& origin) const {
  if (auto checked = check_host(request); !checked) return std::unexpected(checked.error());
  if (auto checked = check_page(request); !checked) return std::unexpected(checked.error());
  Caller caller;
  caller.browser = std::move(found.browser);
  if (!found.app) {
    caller.kind = CallerKind::admin;
    caller.admin = {AdminDoor::browser, origin.text(), caller.browser->name};
    return caller;
  }
  if (!found.app->ip_cidrs.empty() && !contains(found.app->ip_cidrs, origin)) {
    return address_not_allowed();
  }
  caller.kind = CallerKind::app;
  caller.app = std::move(found.app);
  return caller;
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
  if (browsers_ != nullptr) {
    if (auto found = browsers_->find(token)) {
      return identify_browser(std::move(*found), request, origin);
    }
  }
  const Digest digest = sha256(token);
  if (!token.empty() && equal_in_constant_time(digest, admin_digest_)) {
    return Caller{CallerKind::admin, nullptr, {AdminDoor::token, origin.text()}};
  }
  // Only what is wrong is limited: else a stranger who guesses from the admin's own address, or
  // behind the same proxy, could keep the admin from revoking a token.
  const auto now = Attempts::Time::clock::now();
  if (attempts_->is_over(origin, now)) {
    return fail_for_now(Errc::over_quota, "too_many_attempts",
                        "Too many wrong tokens came from this address; try again later.",
                        attempts_->retry_after());
  }
  if (!token.empty()) attempts_->count(origin, digest, now);
  return fail(Errc::unauthorized, "unauthorized",
              "Send a valid token as 'Authorization: Bearer <token>'.");
}

}  // namespace clawdforge
