// Any body is an object within the limits or a refusal with a stable code, and reading
// fields of any kind from it never does more than note what is wrong. What a session or a
// turn is made of holds to its rules, and an app's own meta is not changed.
#include <boost/json.hpp>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "api/core/json_body.h"
#include "api/core/problem.h"
#include "api/native/session_requests.h"

using namespace clawdforge;
namespace json = boost::json;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

void require_good_refusal(const Failure& error) {
  const Response response = problem(error, "id");
  json::error_code broken;
  json::parse(response.body, broken);
  require(!broken && response.status == 422);
}

void check_session(std::string_view text, const json::object& body) {
  const auto session = parse_session(text);
  if (!session) return require_good_refusal(session.error());
  // One that begins with another's state may leave its agent to that one.
  const bool is_of_another = !session->from.empty() && session->agent.empty();
  require(is_of_another || is_session_id(session->agent));
  require(!session->model.starts_with('-'));
  require(session->meta.find_first_of("\r\n") == std::string::npos);
  const json::value* const meta = body.if_contains("meta");
  const bool is_given = meta != nullptr && !meta->is_null();
  require(json::parse(session->meta) == (is_given ? *meta : json::value(json::object())));
  require(session->mcp_servers.empty() || json::parse(session->mcp_servers).is_array());
  require(session->mcp_servers.find_first_of("\r\n") == std::string::npos);
}

void check_turn(std::string_view text) {
  const SessionDefaults defaults{std::chrono::seconds(120), std::chrono::seconds(600),
                                 EventFormat::acp};
  const auto turn = parse_turn(text, false, defaults);
  if (!turn) return require_good_refusal(turn.error());
  require(!turn->turn.prompt.empty());
  require(turn->turn.timeout.count() >= 5 && turn->turn.timeout <= defaults.timeout_max);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  const auto body = parse_json_object(text);
  if (!body) {
    require(body.error().kind == Errc::malformed && body.error().code == "bad_json");
    require(!parse_session(text) && !parse_turn(text, false, {}));
    return 0;
  }
  Fields fields(*body);
  fields.text("name");
  fields.integer("max_runs", 1, 1000);
  fields.texts("ip_cidrs", 4);
  if (const auto checked = fields.check(); !checked) require_good_refusal(checked.error());
  check_session(text, *body);
  check_turn(text);
  return 0;
}
