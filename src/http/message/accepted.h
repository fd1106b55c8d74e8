// What a caller takes, and what it has already: Accept, Accept-Encoding, If-None-Match. Pure.
#pragma once

#include <string_view>

namespace clawdforge {

// Whether Accept names this type. Ranges such as */* do not count: curl and every client sends
// them.
bool accepts_type(std::string_view accept, std::string_view type);

// Whether Accept-Encoding takes this coding, by its name or by *, and not with the weight 0.
bool accepts_coding(std::string_view accept_encoding, std::string_view coding);

// Whether If-None-Match has this tag, which stands in its quotes; a weak one counts as well.
bool names_tag(std::string_view if_none_match, std::string_view etag);

}  // namespace clawdforge
