// A refusal: what the answer says to a request that is not served, and how that is written. Each
// dialect writes refusals in its own shape, and the request's path tells which dialect it is, also
// where no handler was found or the body was never read. Io thread only.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "http/message/response.h"

namespace clawdforge {

struct Refusal {
  int status = 500;
  std::string_view code{};               // stable: callers match on it
  std::string_view message{};            // a sentence for a person
  std::string_view request_id{};         // of the request
  std::chrono::seconds retry_after{0};   // zero: waiting does not help
  std::span<const FieldError> fields{};  // which fields were wrong, where that is the reason
  std::string_view limit{};              // JSON text: which limit is reached; empty: none
  std::string_view rate_limit_policy{};  // headers of these names; empty: none
  std::string_view rate_limit{};
};

// Writes the body. It may also change the status and add headers of its dialect; the headers that
// HTTP itself asks for are there already.
using RenderRefusal = void (*)(const Refusal& refusal, Response& response);

// The whole answer.
Response refused(const Refusal& refusal, RenderRefusal render);

// Which renderer writes the refusals of a path.
class RefusalRenderers {
 public:
  // `otherwise` writes those of all paths for which there is no other one, and of requests
  // whose path is not known.
  explicit RefusalRenderers(RenderRefusal otherwise) : otherwise_(otherwise) {}

  // For `prefix`, such as "/v1", and all paths below it. The longest prefix counts.
  void add(std::string prefix, RenderRefusal render);

  RenderRefusal find(std::string_view path) const;

 private:
  RenderRefusal otherwise_;
  std::vector<std::pair<std::string, RenderRefusal>> by_prefix_;  // the longest first
};

// The sentence as plain text: for a server whose owner has no shape of its own.
void render_plain_refusal(const Refusal& refusal, Response& response);

}  // namespace clawdforge
