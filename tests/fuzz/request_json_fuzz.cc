// Any body is an object within the limits or a refusal with a stable code, and reading
// fields of any kind from it never does more than note what is wrong.
#include <boost/json.hpp>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "api/json_body.h"
#include "api/problem.h"

using namespace clawdforge;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  const auto body = parse_json_object(text);
  if (!body) {
    require(body.error().kind == Errc::malformed && body.error().code == "bad_json");
    return 0;
  }
  Fields fields(*body);
  fields.text("name");
  fields.integer("max_runs", 1, 1000);
  fields.texts("ip_cidrs", 4);
  if (const auto checked = fields.check(); !checked) {
    const Response response = problem(checked.error(), "id");
    boost::json::error_code error;
    boost::json::parse(response.body, error);
    require(!error && response.status == 422);
  }
  return 0;
}
