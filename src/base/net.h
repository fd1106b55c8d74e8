// Addresses and address ranges, for IPv4, IPv6 and IPv4 mapped into IPv6.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace clawdforge {

// An IP address. An IPv4 address mapped into IPv6 (::ffff:1.2.3.4) is the IPv4 address:
// a caller must not get around a rule through a dual-stack socket.
class IpAddress {
 public:
  // "1.2.3.4" or "2001:db8::1"; no port, no brackets, no zone, no leading zeros in IPv4.
  static std::optional<IpAddress> parse(std::string_view text);
  static IpAddress from_v4(const std::array<std::uint8_t, 4>& bytes);
  static IpAddress from_v6(const std::array<std::uint8_t, 16>& bytes);

  bool is_v4() const;
  bool is_loopback() const;  // 127.0.0.0/8 or ::1
  std::string text() const;
  // Mapped form: the last four bytes of an IPv4 address, after ::ffff:.
  const std::array<std::uint8_t, 16>& bytes() const { return bytes_; }

  auto operator<=>(const IpAddress&) const = default;

 private:
  explicit IpAddress(const std::array<std::uint8_t, 16>& bytes) : bytes_(bytes) {}

  std::array<std::uint8_t, 16> bytes_;
};

// A range of addresses of one family: "10.0.0.0/8", "2001:db8::/32", or a single address.
class Cidr {
 public:
  // Bits after the prefix must be zero, so that a typing error does not silently mean
  // another range. Errc::invalid says what is wrong in one sentence.
  static Result<Cidr> parse(std::string_view text);

  // An IPv6 range never holds an IPv4 address and the reverse; a mapped range
  // (::ffff:10.0.0.0/104) is the IPv4 range.
  bool contains(const IpAddress& address) const;
  std::string text() const;

  bool operator==(const Cidr&) const = default;

 private:
  Cidr(IpAddress network, int prefix_bits) : network_(network), prefix_bits_(prefix_bits) {}

  IpAddress network_;
  int prefix_bits_;  // counted in the 128 bits of the mapped form
};

}  // namespace clawdforge
