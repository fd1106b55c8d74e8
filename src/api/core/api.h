// Api is the public contract as the http room sees it: it finds the endpoint of a
// request and checks, in the contract's order, whether this caller may use it. All of
// that happens on the request's head, before any body is read. Io thread only.
#pragma once

#include <cstddef>

#include "api/core/auth.h"
#include "api/core/endpoint.h"
#include "base/limits/byte_budget.h"
#include "browsers/owner_notes.h"
#include "http/message/admission.h"
#include "http/message/cross_origin.h"
#include "http/message/refusal.h"
#include "http/message/router.h"
#include "quota/quota.h"
#include "quota/rate_limits.h"

namespace clawdforge {

// What bounds the requests of all callers. All that it refers to outlives the Api.
struct ApiLimits {
  Quota& quota;
  RateLimits& rates;
  ByteBudget& memory;
  std::size_t body_bytes_max = 0;
  OwnerNotes* owner_notes = nullptr;  // none: what the owner does as an app is not noted
  CrossOrigin cross_origin{};         // whose preflights are answered
};

class Api {
 public:
  // `is_draining` turns true when no new work is taken any more.
  Api(Endpoints endpoints, Auth auth, ApiLimits limits, const bool& is_draining,
      RefusalRenderers refusals);

  Admission admit(Request& request);

  const Router& router() const { return router_; }

 private:
  // What the app may use of connections, rates and memory goes into the admission.
  Result<void> count_app(const App& app, Admission& admission);
  Result<Caller> check_caller(const Endpoint& endpoint, const Request& request,
                              const IpAddress& origin);
  Admission refuse(const Failure& failure, const Request& request,
                   const Route* route = nullptr) const;
  Admission refuse_connection(const Failure& failure, const Request& request,
                              const Route* route) const;
  Admission refuse_unrouted(const Router::Match& match, const Request& request) const;

  const Endpoints endpoints_;
  Auth auth_;
  const ApiLimits limits_;
  const bool& is_draining_;
  const RefusalRenderers refusals_;
  Router router_;
};

}  // namespace clawdforge
