// One path and method of the public contract: who may use it and what answers it.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "api/caller.h"
#include "base/async.h"
#include "http/request.h"
#include "http/response.h"

namespace clawdforge {

// What the token check lets through.
enum class Permit {
  anybody,            // by the address rule alone; a token is not looked at
  app,                // an app's token
  admin,              // the admin token
  app_or_admin,       // either
  loopback_or_admin,  // the admin token; none needed from this machine
};

// What the request brings along. A body that nothing is made of is read and dropped.
enum class Body { none, json };

// The request lives until the task has ended.
using Answer = std::function<Task<Response>(Caller caller, Request* request)>;

struct Endpoint {
  std::string_view method;
  std::string_view pattern;
  Permit permit;
  Body body;
  Answer answer;
};

using Endpoints = std::vector<Endpoint>;

// A finished JSON answer.
Response json_response(std::string body);

}  // namespace clawdforge
