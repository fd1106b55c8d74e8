// Errors as answers. The one place where a kind of error becomes an HTTP status.
#pragma once

#include <string_view>

#include "base/result.h"
#include "http/message/response.h"

namespace clawdforge {

int status_of(Errc kind);

// The contract's error body, with what the status asks for in headers.
Response problem(const Failure& error, std::string_view request_id);

}  // namespace clawdforge
