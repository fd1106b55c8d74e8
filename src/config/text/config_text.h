// The wording of configuration errors: quoting, masking and guessing what was meant.
// Everything here is a pure function; one sentence stays on one line whatever is in it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace clawdforge {

// Errc::invalid "invalid_config"; control characters in the sentence become '?'.
std::unexpected<Failure> refuse_config(std::string_view sentence);

// What may appear of foreign text in a sentence.
std::string shortened(std::string_view text);
std::string in_quotes(std::string_view text);

// Passwords inside a URL or a list of name=value pairs become ***. Masks too much rather
// than too little: everything between the first colon and the last @ of a URL goes.
std::string mask_passwords(std::string_view text);

// Whether a variable of this name usually holds a secret.
bool looks_secret(std::string_view name);

// "; did you mean X?" with the nearest of the names, or "." when none is near. What all of
// them begin with says nothing about how near they are.
std::string did_you_mean(std::string_view text, std::span<const std::string> names,
                         std::string_view common_prefix = {});

// Plain decimal: no sign but '-', no spaces, no leading zeros, within 64 bits.
std::optional<std::int64_t> parse_integer(std::string_view text);

// Items between commas, without the spaces around them; empty ones are left out.
std::vector<std::string> split_list(std::string_view text);

bool has_control_characters(std::string_view text);

}  // namespace clawdforge
