#include "json/schema/json_schema.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <utility>

#include "json/json_parse.h"
#include "json/result_value.h"
#include "json/schema/schema_check.h"
#include "json/schema/schema_rules.h"

namespace clawdforge {
namespace json = boost::json;
namespace {

std::unexpected<Failure> bad_schema(const std::string& why) {
  auto refused =
      fail(Errc::invalid, "bad_schema", fmt::format("The schema cannot be used: {}", why));
  refused.error().fields = {{"schema", why}};
  return refused;
}

}  // namespace

Result<JsonSchema> JsonSchema::parse(std::string_view text) {
  if (text.size() > kSchemaBytesMax) {
    return bad_schema(fmt::format("it has more than {} bytes.", kSchemaBytesMax));
  }
  auto root = parse_json(text, kSchemaDepthMax);
  if (!root) return bad_schema("it is not a JSON object.");
  const json::object* const object = root->if_object();
  if (object == nullptr) return bad_schema("it is not a JSON object.");
  const json::value* const type = object->if_contains("type");
  if (type == nullptr || *type != "object") return bad_schema(R"(its type must be "object".)");
  if (auto wrong = wrong_in_schema(*root)) return bad_schema(*wrong);
  std::string line = json::serialize(*root);
  return JsonSchema(std::move(*root), std::move(line));
}

std::optional<std::string> JsonSchema::mismatch(const json::value& value) const {
  return SchemaCheck(root_).mismatch(value);
}

Result<std::string> value_by_schema(const std::string& answer, const JsonSchema& schema) {
  std::string value = result_value(answer);
  const auto parsed = parse_json(value, kAgentJsonDepthMax);
  const auto wrong = parsed ? schema.mismatch(*parsed)
                            : std::optional<std::string>("the answer is too large to be checked");
  if (!wrong) return value;
  return fail(Errc::agent_failed, "schema_not_met",
              fmt::format("The agent's answer does not meet the schema: {}.", *wrong));
}

}  // namespace clawdforge
