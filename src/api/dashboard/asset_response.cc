#include "api/dashboard/asset_response.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/core/problem.h"
#include "http/message/accepted.h"

namespace clawdforge {
namespace {

// What a page of ours may do in a browser: show its own files and talk to its own gateway, and
// nothing else. No text can become markup or a script, whatever an agent says (docs/security.md).
constexpr std::string_view kPageLines =
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' blob: data:; font-src 'self'; connect-src 'self'; manifest-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "X-Frame-Options: DENY\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "Cross-Origin-Opener-Policy: same-origin\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n"
    "Permissions-Policy: accelerometer=(), autoplay=(), camera=(), clipboard-read=(), "
    "clipboard-write=(self), display-capture=(), fullscreen=(), geolocation=(), gyroscope=(), "
    "hid=(), magnetometer=(), microphone=(), midi=(), payment=(), picture-in-picture=(), "
    "publickey-credentials-get=(), screen-wake-lock=(), serial=(), usb=(), "
    "xr-spatial-tracking=()\r\n";

// The page is asked for again each time, and answered with 304 unless the program is another one.
constexpr std::string_view kAskAgain = "no-cache";
constexpr std::string_view kKeepForYears = "public, max-age=31536000, immutable";

}  // namespace

const Asset* asset_named(std::span<const Asset> assets, std::string_view name) {
  const auto found = std::ranges::find(assets, name, &Asset::name);
  return found == assets.end() ? nullptr : &*found;
}

Response asset_response(const Asset& asset, const Request& request, std::string_view vary) {
  const bool is_packed =
      asset.gzip.size > 0 && accepts_coding(request.header("Accept-Encoding").value_or(""), "gzip");
  // Two forms of one thing have two tags, because a tag promises the same bytes.
  const std::string etag = fmt::format(R"("{}{}")", asset.etag, is_packed ? "-gzip" : "");
  Response response;
  response.content_type = asset.type;
  response.fixed_lines = kPageLines;
  response.headers.emplace_back("Cache-Control", asset.immutable ? kKeepForYears : kAskAgain);
  response.headers.emplace_back("ETag", etag);
  response.headers.emplace_back("Vary", vary);
  if (names_tag(request.header("If-None-Match").value_or(""), etag)) {
    response.status = 304;
    return response;
  }
  if (is_packed) response.headers.emplace_back("Content-Encoding", "gzip");
  response.body = (is_packed ? asset.gzip : asset.identity).view();
  return response;
}

Response no_asset_response(const Request& request) {
  const auto absent = fail(Errc::not_found, "path_not_found", "There is nothing at this path.");
  return problem(absent.error(), request.id);
}

}  // namespace clawdforge
