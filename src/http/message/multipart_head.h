// Inside http/: the headers of one part of a multipart body.
#pragma once

#include <string_view>

#include "http/message/multipart.h"

namespace clawdforge {

std::unexpected<Failure> bad_multipart(const char* sentence);

// A CR or LF that is not half of a CRLF; a CR at the end may still become one.
bool has_bare_line_end(std::string_view text);

// `block` is the lines without the empty one, the last without its CRLF.
Result<MultipartPart> parse_part_headers(std::string_view block);

}  // namespace clawdforge
