// Tells whether a text is JSON, without building a document of it. Pure.
#pragma once

#include <cstddef>
#include <string_view>

namespace clawdforge {

// One JSON value, valid UTF-8, nested no more than `depth_max` deep.
bool is_json(std::string_view text, std::size_t depth_max);
bool is_json_object(std::string_view text, std::size_t depth_max);
bool is_json_array(std::string_view text, std::size_t depth_max);

// Whether a JSON text has more than `values_max` values. A document of many small values needs
// many times the memory of its text. Quick; of what is not JSON it says anything.
bool has_more_values(std::string_view text, std::size_t values_max);

}  // namespace clawdforge
