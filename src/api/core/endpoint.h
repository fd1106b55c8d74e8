// One path and method of the public contract: who may use it and what answers it.
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>
#include <vector>

#include "api/core/caller.h"
#include "base/async/async.h"
#include "http/message/request.h"
#include "http/message/response.h"

namespace clawdforge {

// What the token check lets through.
enum class Permit {
  anybody,            // by the address rule alone; a token is not looked at
  app,                // an app's token
  admin,              // the admin token
  app_or_admin,       // either
  loopback_or_admin,  // the admin token; none needed from this machine
};

// What the request brings along. A body that nothing is made of is read and dropped; a
// multipart body is pulled by the endpoint.
enum class Body { none, json, multipart };

// The request lives until the task has ended.
using Answer = std::function<Task<Response>(Caller caller, Request* request)>;

struct Endpoint {
  std::string_view method;
  std::string_view pattern;
  Permit permit;
  Body body;
  Answer answer;
  bool watches_caller = false;     // Request::hang_up happens when the caller hangs up
  std::size_t body_bytes_max = 0;  // of a multipart body; JSON bodies all have the same
};

using Endpoints = std::vector<Endpoint>;

// A finished JSON answer.
Response json_response(std::string body);

}  // namespace clawdforge
