// A web address (http or https), taken apart so that two of them are compared by their parts and
// never by their text. Strict: what two programs could read differently is not an address here.
// Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace clawdforge {

struct WebAddress {
  std::string scheme;  // "http" or "https"
  std::string host;    // lower case; an IPv6 address in brackets, in its shortest form
  std::uint16_t port = 0;
  std::string path;   // begins with '/'
  std::string query;  // after the '?'; empty: none

  // Errc::invalid with one sentence. Refused: other schemes, a user or password, a fragment, "."
  // or ".." as a part of the path, a backslash, blanks, control characters and other characters
  // beyond ASCII, and an escape that stands for one of . / \ % or a control character.
  static Result<WebAddress> parse(std::string_view text);

  std::string text() const;

  bool operator==(const WebAddress&) const = default;
};

// Whether the address has the prefix's scheme, host and port, and a path that is the prefix's or
// goes on after it at a slash: /mcp has /mcp and /mcp/x below it, and not /mcp-other. The query
// is not looked at.
bool is_within(const WebAddress& address, const WebAddress& prefix);

}  // namespace clawdforge
