// The header Idempotency-Key. A route takes it by one line:
//
//   endpoints.push_back({"POST", "/things", Permit::app, Body::json, keyed(keys, compute,
//   answer)});
//
// With the header, `answer` is called once for all requests that are the same, and the others get
// what it said. Caller::key is set then: what the route does first hands it to the ledger in its
// own transaction (ledger/keys/key_write.h), so that a crash cannot come between. A route that does
// not has its answer kept in a transaction of its own, if it is a success. Io thread only.
#pragma once

#include <string_view>

#include "api/core/endpoint.h"
#include "base/async/compute_worker.h"
#include "base/result.h"
#include "keys/keys.h"
#include "model/ask_key.h"

namespace clawdforge {

inline constexpr std::size_t kIdempotencyKeyBytesMax = 255;

// `keys` and `compute` outlive the endpoint. For a route with a JSON body.
Answer keyed(Keys& keys, ComputeWorker& compute, Answer answer);

bool has_key(const Request& request);
// The key of a request that has one. Errc::malformed "bad_idempotency_key".
Result<std::string_view> key_of(const Request& request);

// For a route that reads its body itself: `fingerprint` is of what it has read. The request has a
// good key.
Task<Response> answer_once(Keys* keys, Digest fingerprint, Caller caller, Request* request,
                           Answer work);

// As it is kept for its key: without what is left of limits, which is old by the next time.
KeptAnswer kept_answer(const Response& response, std::string_view request_id);

}  // namespace clawdforge
