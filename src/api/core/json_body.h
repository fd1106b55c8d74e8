// A request's JSON body: parsed within limits, then field by field with every
// mistake collected, so that a caller hears of all of them at once.
#pragma once

#include <boost/json/fwd.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "http/message/request.h"

namespace clawdforge {

// By the head alone: whether a body may come that is not JSON. An absent content type
// is taken as JSON.
bool brings_another_type(const Request& request);

// An empty body is {}. Errc::malformed "bad_json" for what does not parse, is too deep,
// or is not an object.
Result<boost::json::object> parse_json_object(std::string_view body);

// The answer to this request names them, whatever it is; empty: there are none.
void name_ignored_fields(Request& request, std::string names);

// The value of a member as it stands in `text`, which must be valid JSON of an object: only
// the blanks between its parts are gone, so it is one line. Of a name given twice the last
// one counts, as it does when parsed. Empty: there is none.
std::string member_text(std::string_view text, std::string_view name);

// Named in the header X-Clawdforge-Ignored, and bytes of one such name.
inline constexpr std::size_t kIgnoredNamesMax = 16;
inline constexpr std::size_t kIgnoredNameBytesMax = 64;

class Fields {
 public:
  explicit Fields(const boost::json::object& object) : object_(object) {}

  // Each gives the field, or none where it is absent, null or wrong; wrong is noted.
  std::optional<std::string> text(std::string_view name);
  std::optional<std::int64_t> integer(std::string_view name, std::int64_t min, std::int64_t max);
  std::optional<std::vector<std::string>> texts(std::string_view name, std::size_t count_max);
  std::optional<bool> boolean(std::string_view name);
  // Null where there is none.
  const boost::json::object* object(std::string_view name);
  const boost::json::array* array(std::string_view name);

  bool has(std::string_view name);  // present and not null
  // The value as it is, which may be a JSON null. Null: absent.
  const boost::json::value* given(std::string_view name);
  void wrong(std::string_view name, std::string message);

  // Errc::invalid "validation_failed" with all that was wrong. `ignored`, if there is one, becomes
  // the names of the members that were not asked for, as the header X-Clawdforge-Ignored has them.
  Result<void> check(std::string* ignored = nullptr) const;

 private:
  const boost::json::value* find(std::string_view name);  // null: absent, or a JSON null
  std::string ignored_names() const;

  const boost::json::object& object_;
  std::vector<std::string_view> asked_;  // names that the endpoint knows: literals
  std::vector<FieldError> wrong_;
};

}  // namespace clawdforge
