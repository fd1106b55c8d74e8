// Appending JSON text, for the few places that write JSON without building a document
// first: log lines, error bodies, the hot answers.
#pragma once

#include <string>
#include <string_view>

namespace clawdforge {

// Appends `text` as a JSON string with its quotes. Bytes that are not valid UTF-8
// become U+FFFD, so the result is always valid JSON.
void append_json_string(std::string& out, std::string_view text);

// The same without the quotes: of a string that is written piece by piece. A piece must not end
// within a character.
void append_json_characters(std::string& out, std::string_view text);

// Appends `text` with control characters replaced by '?', so that one line stays one
// line, and with bytes that are not valid UTF-8 repaired as above.
void append_printable(std::string& out, std::string_view text);

}  // namespace clawdforge
