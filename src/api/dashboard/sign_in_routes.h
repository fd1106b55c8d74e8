// /ui/sign-in, /ui/sign-out and /ui/proof, which a browser asks for; /admin/sign-in-codes and
// /admin/browsers, which are the owner's.
#pragma once

#include <memory>

#include "api/core/attempts.h"
#include "api/core/endpoint.h"
#include "browsers/browsers.h"
#include "browsers/sign_in_codes.h"
#include "quota/apps.h"

namespace clawdforge {

// What a sign-in is made of. All that it refers to outlives the endpoints.
struct SignInParts {
  Apps& apps;
  Browsers& browsers;
  SignInCodes& codes;
  Digest admin_digest;
  std::shared_ptr<Attempts> attempts;  // shared with all other checks of tokens
};

void add_sign_in_routes(Endpoints& endpoints, SignInParts parts);

}  // namespace clawdforge
