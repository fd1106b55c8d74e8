#include "model/web_address.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/net.h"
#include "base/text.h"

namespace clawdforge {
namespace {

constexpr std::size_t kWebAddressBytesMax = 2'048;
constexpr std::size_t kHostBytesMax = 253;
constexpr std::uint16_t kHttpPort = 80;
constexpr std::uint16_t kHttpsPort = 443;

std::unexpected<Failure> not_an_address(std::string_view why) {
  return fail(Errc::invalid, "validation_failed", std::string(why));
}

std::uint16_t default_port(std::string_view scheme) {
  return scheme == "https" ? kHttpsPort : kHttpPort;
}

std::optional<std::uint16_t> port_in(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size() || port == 0) return std::nullopt;
  return port;
}

// A name or an IPv4 address. One with a dot at its end is the same host to some programs and
// another to others.
bool is_host_name(std::string_view text) {
  return !text.empty() && text.size() <= kHostBytesMax && !text.starts_with('.') &&
         !text.ends_with('.') && !text.contains("..") && std::ranges::all_of(text, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-' ||
                  c == '_';
         });
}

std::optional<std::string> host_in(std::string_view text) {
  if (text.starts_with('[') && text.ends_with(']')) {
    const auto address = IpAddress::parse(text.substr(1, text.size() - 2));
    if (!address || address->is_v4()) return std::nullopt;  // mapped: written as IPv4 or not at all
    return fmt::format("[{}]", address->text());
  }
  std::string host(text);
  std::ranges::transform(host, host.begin(), lower_case);
  if (!is_host_name(host)) return std::nullopt;
  return host;
}

bool has_plain_characters(std::string_view text) {
  return std::ranges::all_of(text, [](unsigned char c) {
    return c > 0x20 && c < 0x7F && !std::string_view("\"<>\\^`{|}#").contains(static_cast<char>(c));
  });
}

std::optional<int> hex_digit(char c) {
  const char low = lower_case(c);
  if (low >= '0' && low <= '9') return low - '0';
  if (low >= 'a' && low <= 'f') return low - 'a' + 10;
  return std::nullopt;
}

// Escapes that are whole, and that do not hide what a check of the path looks for.
bool has_plain_escapes(std::string_view text) {
  for (std::size_t at = text.find('%'); at != text.npos; at = text.find('%', at + 3)) {
    if (at + 2 >= text.size()) return false;
    const auto high = hex_digit(text[at + 1]);
    const auto low = hex_digit(text[at + 2]);
    if (!high || !low) return false;
    const int byte = *high * 16 + *low;
    if (byte < 0x20 || byte == 0x7F || byte == '.' || byte == '/' || byte == '\\' || byte == '%') {
      return false;
    }
  }
  return true;
}

bool has_dot_segment(std::string_view path) {
  while (!path.empty()) {
    path.remove_prefix(1);  // its slash
    const std::string_view segment = path.substr(0, path.find('/'));
    if (segment == "." || segment == "..") return true;
    path.remove_prefix(segment.size());
  }
  return false;
}

}  // namespace

Result<WebAddress> WebAddress::parse(std::string_view text) {
  if (text.size() > kWebAddressBytesMax) {
    return not_an_address(fmt::format("it has more than {} bytes", kWebAddressBytesMax));
  }
  if (!has_plain_characters(text)) {
    return not_an_address("it has a character that must not stand in an address");
  }
  const std::size_t colon = text.find("://");
  WebAddress address;
  address.scheme = text.substr(0, colon == text.npos ? 0 : colon);
  std::ranges::transform(address.scheme, address.scheme.begin(), lower_case);
  if (address.scheme != "http" && address.scheme != "https") {
    return not_an_address("it must begin with http:// or https://");
  }
  const std::string_view rest = text.substr(colon + 3);
  const std::string_view authority = rest.substr(0, rest.find_first_of("/?"));
  if (authority.contains('@')) return not_an_address("it must not have a user or password in it");

  const std::size_t bracket = authority.rfind(']');
  const std::size_t port_at = authority.find(':', bracket == authority.npos ? 0 : bracket);
  address.port = default_port(address.scheme);
  if (port_at != authority.npos) {
    const auto port = port_in(authority.substr(port_at + 1));
    if (!port) return not_an_address("its port is not a number from 1 to 65535");
    address.port = *port;
  }
  auto host = host_in(authority.substr(0, port_at));
  if (!host) return not_an_address("its host cannot be read");
  address.host = std::move(*host);

  const std::string_view after = rest.substr(authority.size());
  const std::string_view path = after.substr(0, after.find('?'));
  if (path.size() < after.size()) address.query = after.substr(path.size() + 1);
  address.path = path.empty() ? "/" : path;
  if (!has_plain_escapes(address.path) || has_dot_segment(address.path)) {
    return not_an_address("its path has a part that could mean another path");
  }
  return address;
}

std::string WebAddress::text() const {
  std::string text = fmt::format("{}://{}", scheme, host);
  if (port != default_port(scheme)) text += fmt::format(":{}", port);
  text += path;
  if (!query.empty()) text.append("?").append(query);
  return text;
}

bool is_within(const WebAddress& address, const WebAddress& prefix) {
  if (address.scheme != prefix.scheme || address.host != prefix.host ||
      address.port != prefix.port || !address.path.starts_with(prefix.path)) {
    return false;
  }
  return prefix.path.ends_with('/') || address.path.size() == prefix.path.size() ||
         address.path[prefix.path.size()] == '/';
}

}  // namespace clawdforge
