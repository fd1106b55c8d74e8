// Auth decides who may call: by address, then by token. It looks at nothing but the
// request's head and memory, so a request costs no ledger access. Io thread only.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "api/core/attempts.h"
#include "api/core/caller.h"
#include "base/net.h"
#include "base/result.h"
#include "base/secret.h"
#include "browsers/browsers.h"
#include "http/message/request.h"
#include "quota/apps.h"

namespace clawdforge {

struct AddressRules {
  std::vector<Cidr> allow;            // beside loopback, which always may
  std::vector<Cidr> trusted_proxies;  // whose X-Forwarded-For counts
  // Names, in lower case, by which the paths without a token may be asked for, beside addresses and
  // localhost.
  std::vector<std::string> hosts{};
};

// The address a request really comes from: the peer's, or if that is a trusted proxy
// the rightmost address in X-Forwarded-For that is not. None: a trusted proxy named
// something that is not an address.
std::optional<IpAddress> origin_of(const Request& request, const std::vector<Cidr>& trusted);

class Auth {
 public:
  // Without `browsers` no browser's token is known. `attempts` is shared with others that compare
  // tokens.
  Auth(AddressRules rules, Digest admin_digest, Apps& apps, Browsers* browsers = nullptr,
       std::shared_ptr<Attempts> attempts = std::make_shared<Attempts>());

  // Errc::forbidden "address_not_allowed".
  Result<IpAddress> check_address(const Request& request) const;

  // For a path that needs no token: a page in a browser can lead a name of its own to this machine
  // and read what such a path says. Errc::misdirected "host_not_allowed".
  Result<void> check_host(const Request& request) const;

  // What a browser says of the page that asks: it must be one of the gateway's own. Errc::forbidden
  // "foreign_page".
  Result<void> check_page(const Request& request) const;

  // The admin as the app of this name. One that has no token any more can be read and not written.
  // Errc::not_found "token_not_found".
  Result<Caller> act_as(Caller admin, std::string_view name, bool only_reads) const;

  // Errc::forbidden "proof_needed".
  Result<void> check_proof(const Caller& caller) const;

  // Who the bearer token belongs to; without one the Unix socket is the admin's. Errc::unauthorized
  // for none, an unknown or a revoked one, all alike; Errc::over_quota "too_many_attempts" for a
  // wrong one when this address keeps guessing: what is right works all the same;
  // Errc::forbidden "address_not_allowed" when the app may not call from there. A browser's token
  // is checked by host and page as well.
  Result<Caller> identify(const Request& request, const IpAddress& origin);

 private:
  Result<Caller> identify_browser(Browsers::Found found, const Request& request,
                                  const IpAddress& origin) const;

  const AddressRules rules_;
  const Digest admin_digest_;
  Apps& apps_;
  Browsers* const browsers_;
  const std::shared_ptr<Attempts> attempts_;
};

}  // namespace clawdforge
