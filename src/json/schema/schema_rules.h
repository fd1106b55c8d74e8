// Inside json/schema: whether a schema is one that SchemaCheck can check by. Pure.
#pragma once

#include <boost/json/value.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace clawdforge {

// None: it is. Else what is wrong, as a sentence.
std::optional<std::string> wrong_in_schema(const boost::json::value& root);

// What "#/$defs/name" stands for; null: there is no such schema, or it is in another document.
const boost::json::value* schema_at(const boost::json::value& root, std::string_view reference);

}  // namespace clawdforge
