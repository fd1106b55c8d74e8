// Auth decides who may call: by address, then by token. It looks at nothing but the
// request's head and memory, so a request costs no ledger access. Io thread only.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>
#include <vector>

#include "api/core/attempts.h"
#include "api/core/caller.h"
#include "base/net.h"
#include "base/result.h"
#include "base/secret.h"
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
  Auth(AddressRules rules, Digest admin_digest, Apps& apps);

  // Errc::forbidden "address_not_allowed".
  Result<IpAddress> check_address(const Request& request) const;

  // For a path that needs no token: a page in a browser can lead a name of its own to this machine
  // and read what such a path says. Errc::misdirected "host_not_allowed".
  Result<void> check_host(const Request& request) const;

  // Who the bearer token belongs to; without one the Unix socket is the admin's. Errc::unauthorized
  // for none, an unknown or a revoked one, all alike; Errc::over_quota "too_many_attempts" for a
  // wrong one when this address keeps guessing: what is right works all the same;
  // Errc::forbidden "address_not_allowed" when the app may not call from there.
  Result<Caller> identify(const Request& request, const IpAddress& origin);

 private:
  const AddressRules rules_;
  const Digest admin_digest_;
  Apps& apps_;
  Attempts attempts_;
};

}  // namespace clawdforge
