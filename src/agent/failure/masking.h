// Makes foreign text fit to be shown: what an agent printed may hold anything, also the
// keys it was given. Pure; the cost grows with the length of the text and no faster.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace clawdforge {

// Bytes that are not UTF-8 become U+FFFD; all else stays as it is.
std::string valid_utf8(std::string_view bytes);

// valid_utf8() without control characters other than \n and \t.
std::string clean_text(std::string_view bytes);

// clean_text() with *** in place of whatever looks like a token, a key or a password, and
// of every one of `secrets`. Commit ids (40 hexadecimal digits) and UUIDs stay: they
// are not secrets, and a log is hard to read without them.
std::string masked(std::string_view bytes, const std::vector<std::string>& secrets = {});

// Of a text that becomes one line: what follows is not looked at, because it would not be shown.
inline constexpr std::size_t kMaskedLineBytesMax = 16 * 1024;

// masked() in one line: runs of white space are one space. At most `characters_max`
// characters, the last of which says that there was more. The text is cut before it is masked, so
// a long one costs no more than a short one.
std::string masked_line(std::string_view bytes, std::size_t characters_max,
                        const std::vector<std::string>& secrets = {});

}  // namespace clawdforge
