// The answer of a run or a turn that its agent failed.
#pragma once

#include <string>

#include "base/result.h"
#include "http/message/response.h"

namespace clawdforge {

// With the status and the headers that belong to the failure. `body` is the whole object.
Response failure_response(const Failure& why, std::string body);

// Tells the caller what is left of its limits; empty: there is nothing to tell.
void add_limit_headers(Response& response, const std::string& policy, const std::string& left);

}  // namespace clawdforge
