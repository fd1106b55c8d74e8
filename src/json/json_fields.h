// Reads fields of a JSON object that another program made: a field of another type than asked
// for counts as absent. Pure.
#pragma once

#include <boost/json/fwd.hpp>
#include <cstdint>
#include <optional>
#include <string_view>

namespace clawdforge {

// Null: there is none.
const boost::json::object* object_in(const boost::json::object& object, std::string_view key);
const boost::json::array* array_in(const boost::json::object& object, std::string_view key);
// Good while the object is.
std::optional<std::string_view> text_in(const boost::json::object& object, std::string_view key);
bool is_true_in(const boost::json::object& object, std::string_view key);

// Finite and not negative.
std::optional<double> number_in(const boost::json::object& object, std::string_view key);
// A whole number that a double holds exactly; zero if there is none.
std::int64_t count_in(const boost::json::object& object, std::string_view key);

}  // namespace clawdforge
