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
  anybody,       // by address and host name alone; a token is not looked at
  app,           // an app's token
  admin,         // the admin token
  app_or_admin,  // either
};

// A body of a few fields. What is larger goes to the compute worker, which such paths do not use.
inline constexpr std::size_t kSmallBodyBytesMax = 256 * 1024;

// What the request brings along. A body that nothing is made of is read and dropped; a
// multipart body is pulled by the endpoint.
enum class Body { none, json, multipart, bytes };

// The request lives until the task has ended.
using Answer = std::function<Task<Response>(Caller caller, Request* request)>;

struct Endpoint {
  std::string_view method;
  std::string_view pattern;
  Permit permit;
  Body body;
  Answer answer;
  bool watches_caller = false;  // Request::hang_up happens when the caller hangs up
  // Of a multipart body; of a JSON body where it is less than all may have. Zero: as all.
  std::size_t body_bytes_max = 0;
  bool answers_while_draining = false;
  // A browser's token counts here only while its user has shown the admin token lately.
  bool needs_proof = false;
  // Of a path without a token that changes something: no page of another place may ask for it.
  bool is_for_own_page = false;
};

using Endpoints = std::vector<Endpoint>;

// A finished JSON answer.
Response json_response(std::string body);

}  // namespace clawdforge
