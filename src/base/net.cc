#include "base/net.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>

namespace clawdforge {
namespace {

constexpr std::array<std::uint8_t, 12> kMappedPrefix = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
constexpr int kMappedPrefixBits = 96;
constexpr int kV4Bits = 32;
constexpr int kV6Bits = 128;
constexpr std::size_t kAddressCharsMax = 45;  // eight groups, the last two written as IPv4
constexpr std::size_t kQuotedCharsMax = 60;   // of foreign text in a message

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Keeps away what inet_pton might read differently than a person: white space, signs,
// zones, an early end by a NUL.
bool has_only_address_characters(std::string_view text) {
  return std::ranges::all_of(text, [](char c) {
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F') || c == ':' || c == '.';
  });
}

std::string quoted(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, kQuotedCharsMax)) out += c >= ' ' && c <= '~' ? c : '?';
  if (text.size() > kQuotedCharsMax) out += "...";
  return "\"" + out + "\"";
}

// Plain decimal of at most three digits without leading zeros: 010 could be meant as octal.
std::optional<int> parse_prefix(std::string_view text) {
  if (text.empty() || text.size() > 3 || !std::ranges::all_of(text, is_digit)) return std::nullopt;
  if (text.size() > 1 && text.front() == '0') return std::nullopt;
  int bits = 0;
  for (const char c : text) bits = bits * 10 + (c - '0');
  return bits;
}

IpAddress masked(const IpAddress& address, int prefix_bits) {
  std::array<std::uint8_t, 16> bytes = address.bytes();
  for (int i = 0; i < 16; ++i) {
    const int kept = std::clamp(prefix_bits - i * 8, 0, 8);
    bytes[i] &= static_cast<std::uint8_t>(0xff00 >> kept);
  }
  return IpAddress::from_v6(bytes);
}

std::string range_text(const IpAddress& network, int prefix_bits) {
  return fmt::format("{}/{}", network.text(),
                     network.is_v4() ? prefix_bits - kMappedPrefixBits : prefix_bits);
}

std::unexpected<Failure> refuse(std::string message) {
  return fail(Errc::invalid, "invalid_cidr", std::move(message));
}

// ::ffff:10.0.0.0/8 as it stands would be a range of other IPv6 addresses, which is not what
// its writer means.
std::unexpected<Failure> refuse_mapped_prefix(std::string_view text, const IpAddress& address,
                                              int bits) {
  std::string hint;
  if (bits <= kV4Bits) {
    const int mapped_bits = bits + kMappedPrefixBits;
    hint = fmt::format("; did you mean {}?", range_text(masked(address, mapped_bits), mapped_bits));
  } else {
    hint = ".";
  }
  return refuse(
      fmt::format("{} is an IPv4 address mapped into IPv6, whose prefix must be {} to {}{}",
                  quoted(text), kMappedPrefixBits, kV6Bits, hint));
}

}  // namespace

std::optional<IpAddress> IpAddress::parse(std::string_view text) {
  if (text.size() > kAddressCharsMax || !has_only_address_characters(text)) return std::nullopt;
  const std::string terminated(text);
  std::array<std::uint8_t, 4> v4;
  if (inet_pton(AF_INET, terminated.c_str(), v4.data()) == 1) return from_v4(v4);
  std::array<std::uint8_t, 16> v6;
  if (inet_pton(AF_INET6, terminated.c_str(), v6.data()) == 1) return from_v6(v6);
  return std::nullopt;
}

IpAddress IpAddress::from_v4(const std::array<std::uint8_t, 4>& bytes) {
  std::array<std::uint8_t, 16> mapped;
  const auto rest = std::ranges::copy(kMappedPrefix, mapped.begin()).out;
  std::ranges::copy(bytes, rest);
  return IpAddress(mapped);
}

IpAddress IpAddress::from_v6(const std::array<std::uint8_t, 16>& bytes) { return IpAddress(bytes); }

bool IpAddress::is_v4() const {
  return std::equal(kMappedPrefix.begin(), kMappedPrefix.end(), bytes_.begin());
}

bool IpAddress::is_loopback() const {
  if (is_v4()) return bytes_[12] == 127;
  return bytes_[15] == 1 &&
         std::all_of(bytes_.begin(), bytes_.end() - 1, [](std::uint8_t byte) { return byte == 0; });
}

std::string IpAddress::text() const {
  std::array<char, INET6_ADDRSTRLEN> buffer{};
  if (is_v4()) {
    inet_ntop(AF_INET, bytes_.data() + kMappedPrefix.size(), buffer.data(), buffer.size());
  } else {
    inet_ntop(AF_INET6, bytes_.data(), buffer.data(), buffer.size());
  }
  return buffer.data();
}

Result<Cidr> Cidr::parse(std::string_view text) {
  const std::size_t slash = text.find('/');
  const std::string_view address_text = text.substr(0, slash);
  const std::optional<IpAddress> address = IpAddress::parse(address_text);
  if (!address) {
    return refuse(fmt::format(
        "{} is not an address range; allowed are forms like 10.0.0.0/8, 2001:db8::/32 or a "
        "single address.",
        quoted(text)));
  }
  if (slash == std::string_view::npos) return Cidr(*address, kV6Bits);

  const bool written_as_v4 = address_text.find(':') == std::string_view::npos;
  const int bits_max = written_as_v4 ? kV4Bits : kV6Bits;
  const std::optional<int> bits = parse_prefix(text.substr(slash + 1));
  if (!bits || *bits > bits_max) {
    return refuse(fmt::format("The prefix of {} must be a plain number from 0 to {}.", quoted(text),
                              bits_max));
  }
  if (address->is_v4() && !written_as_v4 && *bits < kMappedPrefixBits) {
    return refuse_mapped_prefix(text, *address, *bits);
  }
  const int prefix_bits = written_as_v4 ? *bits + kMappedPrefixBits : *bits;
  const IpAddress network = masked(*address, prefix_bits);
  if (network != *address) {
    return refuse(fmt::format("{} has bits after its prefix; did you mean {}?", text,
                              range_text(network, prefix_bits)));
  }
  return Cidr(network, prefix_bits);
}

bool Cidr::contains(const IpAddress& address) const {
  // Also ::/0 holds no IPv4 address, although its bits would match the mapped form.
  if (address.is_v4() != network_.is_v4()) return false;
  return masked(address, prefix_bits_) == network_;
}

std::string Cidr::text() const { return range_text(network_, prefix_bits_); }

}  // namespace clawdforge
