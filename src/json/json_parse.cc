#include "json/json_parse.h"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include "json/json_check.h"

namespace clawdforge {
namespace json = boost::json;

std::optional<json::value> parse_json(std::string_view text, std::size_t depth_max,
                                      json::storage_ptr memory) {
  if (has_more_values(text, kAgentJsonValuesMax)) return std::nullopt;
  json::parse_options options;
  options.max_depth = depth_max;
  json::error_code error;
  json::value value = json::parse(text, error, std::move(memory), options);
  if (error) return std::nullopt;
  return value;
}

}  // namespace clawdforge
