// The answer of a run or a turn that its agent failed.
#pragma once

#include <string>

#include "base/result.h"
#include "http/message/response.h"

namespace clawdforge {

// With the status and the headers that belong to the failure. `body` is the whole object.
Response failure_response(const Failure& why, std::string body);

}  // namespace clawdforge
