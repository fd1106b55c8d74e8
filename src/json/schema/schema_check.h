// Inside json/schema: one check of a value by a schema that wrong_in_schema() has let through.
// Pure.
#pragma once

#include <boost/json/value.hpp>
#include <cstddef>
#include <optional>
#include <string>

namespace clawdforge {

class SchemaCheck {
 public:
  explicit SchemaCheck(const boost::json::value& root) : root_(root) {}

  // As JsonSchema::mismatch(). Once.
  std::optional<std::string> mismatch(const boost::json::value& value);

 private:
  using Wrong = std::optional<std::string>;

  Wrong check(const boost::json::value& schema, const boost::json::value& value);
  Wrong check_rules(const boost::json::object& rules, const boost::json::value& value);
  Wrong check_joined(const boost::json::object& rules, const boost::json::value& value);
  Wrong check_number(const boost::json::object& rules, const boost::json::value& value) const;
  Wrong check_text(const boost::json::object& rules, const boost::json::value& value) const;
  Wrong check_array(const boost::json::object& rules, const boost::json::value& value);
  Wrong check_object(const boost::json::object& rules, const boost::json::value& value);
  std::size_t matches(const boost::json::array& schemas, const boost::json::value& value);
  std::string wrong(std::string_view what) const;

  const boost::json::value& root_;
  std::string path_;  // of the value that is looked at, as a JSON pointer
  std::size_t depth_ = 0;
  std::size_t steps_ = 0;
};

}  // namespace clawdforge
