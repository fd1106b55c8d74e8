// JsonSchema says whether a JSON value is as a caller wants it, by the common keywords of JSON
// Schema (2020-12). Pure. A schema with a keyword that changes its meaning and is not known here is
// refused: a check that leaves something out would say yes to what the caller does not want.
// Regular expressions are among these, because a foreign one can take for ever.
#pragma once

#include <boost/json/value.hpp>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace clawdforge {

inline constexpr std::size_t kSchemaBytesMax = 64 * 1024;
// Of schemas in schemas, references counted, and of what is looked at by one check.
inline constexpr std::size_t kSchemaDepthMax = 64;
inline constexpr std::size_t kSchemaStepsMax = 2'000'000;
// Of an answer that does not meet its schema, as the caller is told it.
inline constexpr std::size_t kFailedTextBytesMax = 64 * 1024;

class JsonSchema {
 public:
  // The JSON text of a schema whose values are objects. Errc::invalid "bad_schema" with what is
  // wrong with it.
  static Result<JsonSchema> parse(std::string_view text);

  // None: the value is as the schema says. Else where it is not, and what it must be.
  std::optional<std::string> mismatch(const boost::json::value& value) const;

  // In one line, without blanks between its words.
  const std::string& text() const { return text_; }

 private:
  JsonSchema(boost::json::value root, std::string text)
      : root_(std::move(root)), text_(std::move(text)) {}

  boost::json::value root_;
  std::string text_;
};

// The value of an agent's answer as JSON text. Errc::agent_failed "schema_not_met" with where and
// why where it does not meet the schema.
Result<std::string> value_by_schema(const std::string& answer, const JsonSchema& schema);

}  // namespace clawdforge
