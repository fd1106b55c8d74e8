// Failures as answers. The one place where a kind of failure becomes an HTTP status, and the shape
// that the gateway's own paths give to refusals.
#pragma once

#include <string_view>

#include "base/result.h"
#include "http/message/refusal.h"
#include "http/message/response.h"

namespace clawdforge {

int status_of(Errc kind);

// What the caller is told of a failure. Valid as long as the failure and the id are.
Refusal refusal_of(const Failure& failure, std::string_view request_id);

// {"ok":false,"code":...,"detail":...,"request_id":...}, and "errors" where fields are wrong.
void render_native_refusal(const Refusal& refusal, Response& response);

// The answer of a handler of a native path.
Response problem(const Failure& failure, std::string_view request_id);

}  // namespace clawdforge
