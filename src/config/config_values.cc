#include "config/config_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/text.h"
#include "config/text/config_text.h"
#include "model/policy_fields.h"

namespace clawdforge {
namespace {

constexpr std::size_t kTextBytesMax = 4096;  // what the kernel takes as a path
constexpr std::size_t kRangesMax = 4096;
constexpr std::size_t kAdminTokenBytesMin = 20;
constexpr std::size_t kAdminTokenBytesMax = 1024;
constexpr std::int64_t kPortMax = 65535;
constexpr std::string_view kListenForms =
    "it must be an IP address and a port like 127.0.0.1:8800 or [::1]:8800.";

}  // namespace

Parsed<std::string> parse_text(std::string_view text) {
  if (text.empty()) return std::unexpected("it must not be empty.");
  if (has_control_characters(text)) {
    return std::unexpected("it must not have control characters in it.");
  }
  if (text.size() > kTextBytesMax) {
    return std::unexpected(fmt::format("it must not be longer than {} bytes.", kTextBytesMax));
  }
  return std::string(text);
}

Parsed<ListenAddress> parse_listen(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::unexpected(std::string(kListenForms));
  std::string_view host = text.substr(0, colon);
  const bool has_brackets = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (has_brackets) host = host.substr(1, host.size() - 2);
  if (!has_brackets && host == "localhost") host = "127.0.0.1";

  const auto address = IpAddress::parse(host);
  const bool is_written_as_v6 = host.find(':') != std::string_view::npos;
  if (!address || has_brackets != is_written_as_v6) {
    return std::unexpected(std::string(kListenForms));
  }
  const auto port = parse_integer(text.substr(colon + 1));
  if (!port || *port < 0 || *port > kPortMax) {
    return std::unexpected(fmt::format("its port must be a number from 0 to {}.", kPortMax));
  }
  return ListenAddress{address->text(), static_cast<std::uint16_t>(*port)};
}

std::string listen_text(const ListenAddress& listen) {
  const bool is_v6 = listen.host.find(':') != std::string::npos;
  return fmt::format("{}{}{}:{}", is_v6 ? "[" : "", listen.host, is_v6 ? "]" : "", listen.port);
}

Parsed<std::vector<Cidr>> parse_ranges(std::string_view text) {
  std::vector<Cidr> ranges;
  for (const std::string& item : split_list(text)) {
    auto range = Cidr::parse(item);
    if (!range) return std::unexpected(range.error().message);
    if (ranges.size() == kRangesMax) {
      return std::unexpected(fmt::format("it must not have more than {} ranges.", kRangesMax));
    }
    ranges.push_back(*range);
  }
  return ranges;
}

Parsed<std::vector<std::string>> parse_origins(std::string_view text) {
  constexpr std::size_t kOriginBytesMax = 256;
  constexpr std::size_t kOriginsMax = 256;
  constexpr std::string_view kCharacters = "abcdefghijklmnopqrstuvwxyz0123456789.-_:[]";
  std::vector<std::string> origins;
  for (std::string item : split_list(text)) {
    std::ranges::transform(item, item.begin(), lower_case);
    const std::size_t colon = item.find("://");
    const std::string_view rest = std::string_view(item).substr(std::min(colon, item.size()));
    const bool is_web = item.starts_with("http://") || item.starts_with("https://");
    if (!is_web || item.size() > kOriginBytesMax || rest.size() <= 3 ||
        rest.substr(3).find_first_not_of(kCharacters) != rest.npos) {
      return std::unexpected(
          "it must be a list of origins like https://app.example or http://localhost:5173, "
          "without a path.");
    }
    if (origins.size() == kOriginsMax) {
      return std::unexpected(fmt::format("it must not have more than {} origins.", kOriginsMax));
    }
    origins.push_back(std::move(item));
  }
  return origins;
}

Parsed<std::vector<std::string>> parse_hosts(std::string_view text) {
  constexpr std::size_t kHostBytesMax = 253;
  constexpr std::size_t kHostsMax = 256;
  std::vector<std::string> hosts;
  for (std::string item : split_list(text)) {
    std::ranges::transform(item, item.begin(), lower_case);
    const bool is_name =
        !item.empty() && item.size() <= kHostBytesMax &&
        item.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789.-_") == std::string::npos;
    if (!is_name) {
      return std::unexpected(
          "it must be a list of host names like gateway.example, without ports.");
    }
    if (hosts.size() == kHostsMax) {
      return std::unexpected(fmt::format("it must not have more than {} names.", kHostsMax));
    }
    hosts.push_back(std::move(item));
  }
  return hosts;
}

Parsed<std::string> parse_path(std::string_view text, const PathOrigin& origin) {
  auto checked = parse_text(text);
  if (!checked) return checked;
  std::filesystem::path path(*checked);
  if (text == "~" || text.starts_with("~/")) {
    if (origin.home.empty()) return std::unexpected("it begins with ~, but HOME is not set.");
    path = std::filesystem::path(origin.home) / text.substr(std::min<std::size_t>(2, text.size()));
  }
  std::string absolute =
      (std::filesystem::path(origin.working_dir) / path).lexically_normal().string();
  while (absolute.size() > 1 && absolute.back() == '/') absolute.pop_back();
  return absolute;
}

Parsed<std::vector<std::string>> parse_jail_paths(std::string_view text, const PathOrigin& origin) {
  std::vector<std::string> paths;
  for (const std::string& item : split_list(text)) {
    auto path = parse_path(item, origin);
    if (!path) return std::unexpected(path.error());
    if (!is_jail_path(*path)) {
      return std::unexpected(fmt::format("an agent cannot be given {}.", *path));
    }
    if (paths.size() == kPolicyListMax) {
      return std::unexpected(fmt::format("it must not have more than {} paths.", kPolicyListMax));
    }
    paths.push_back(std::move(*path));
  }
  return paths;
}

Parsed<std::string> parse_program(std::string_view text, const PathOrigin& origin) {
  if (text.find('/') == std::string_view::npos) return parse_text(text);
  return parse_path(text, origin);
}

Parsed<std::string> parse_ledger(std::string_view text, const PathOrigin& origin) {
  constexpr std::string_view kSqlite = "sqlite:";
  auto checked = parse_text(text);
  if (!checked) return checked;
  if (text.starts_with("postgresql://") || text.starts_with("postgres://")) return checked;
  if (!text.starts_with(kSqlite)) {
    return std::unexpected("it must be sqlite:PATH or postgresql://USER@HOST/DATABASE.");
  }
  const std::string_view path = text.substr(kSqlite.size());
  if (path.starts_with(':')) {
    return std::unexpected(
        "it must be sqlite:PATH: a ledger in memory would not survive a restart.");
  }
  auto absolute = parse_path(path, origin);
  if (!absolute) return std::unexpected("the path after sqlite: is wrong: " + absolute.error());
  return std::string(kSqlite) + *absolute;
}

std::string admin_token_fault(std::string_view token) {
  const bool is_printable = std::ranges::all_of(token, [](char c) { return c > ' ' && c <= '~'; });
  if (is_printable && token.size() >= kAdminTokenBytesMin && token.size() <= kAdminTokenBytesMax) {
    return {};
  }
  return fmt::format("it must have {} to {} printable ASCII characters and no spaces.",
                     kAdminTokenBytesMin, kAdminTokenBytesMax);
}

}  // namespace clawdforge
