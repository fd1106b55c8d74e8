// How a file that is compiled in is answered: whole or packed, with what a page may do in a
// browser, and 304 to those who have it.
#pragma once

#include <span>
#include <string_view>

#include "api/dashboard/assets.h"
#include "http/message/request.h"
#include "http/message/response.h"

namespace clawdforge {

inline constexpr std::string_view kPageName = "index.html";

// None: there is no such file.
const Asset* asset_named(std::span<const Asset> assets, std::string_view name);
// `vary` is a literal: the headers of the request by which the answer was chosen.
Response asset_response(const Asset& asset, const Request& request, std::string_view vary);
// 404, as for any other path that is not known.
Response no_asset_response(const Request& request);

}  // namespace clawdforge
