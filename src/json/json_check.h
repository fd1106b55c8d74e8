// Tells whether a text is JSON, without building a document of it. Pure.
#pragma once

#include <cstddef>
#include <string_view>

namespace clawdforge {

// One JSON value, valid UTF-8, nested no more than `depth_max` deep.
bool is_json(std::string_view text, std::size_t depth_max);
bool is_json_object(std::string_view text, std::size_t depth_max);
bool is_json_array(std::string_view text, std::size_t depth_max);

}  // namespace clawdforge
