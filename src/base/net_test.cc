#include "base/net.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

namespace clawdforge {
namespace {

using V4Bytes = std::array<std::uint8_t, 4>;
using V6Bytes = std::array<std::uint8_t, 16>;

IpAddress address(std::string_view text) {
  const auto parsed = IpAddress::parse(text);
  if (!parsed) throw std::invalid_argument(std::string(text));
  return *parsed;
}

Cidr range(std::string_view text) {
  const auto parsed = Cidr::parse(text);
  if (!parsed) throw std::invalid_argument(parsed.error().message);
  return *parsed;
}

std::string refusal(std::string_view text) {
  const auto parsed = Cidr::parse(text);
  return parsed ? "taken as " + parsed->text() : parsed.error().message;
}

// Uniform over the whole range also in the first, small cases.
rc::Gen<int> number(int from, int end) {
  return rc::gen::resize(rc::kNominalSize, rc::gen::inRange(from, end));
}

// Zeros are frequent, so that short forms, mapped addresses and the family's edges appear.
V6Bytes any_v6() {
  auto bytes = *rc::gen::container<V6Bytes>(
      rc::gen::weightedOneOf<std::uint8_t>({{3, rc::gen::just<std::uint8_t>(0)},
                                            {1, rc::gen::just<std::uint8_t>(0xff)},
                                            {3, rc::gen::arbitrary<std::uint8_t>()}}));
  if (*number(0, 3) == 0) {
    std::fill_n(bytes.begin(), 10, 0);
    std::fill_n(bytes.begin() + 10, 2, 0xff);
  }
  return bytes;
}

IpAddress any_address() {
  if (*rc::gen::arbitrary<bool>()) return IpAddress::from_v6(any_v6());
  return IpAddress::from_v4(*rc::gen::container<V4Bytes>(rc::gen::arbitrary<std::uint8_t>()));
}

bool bit(const IpAddress& of, int index) {
  return ((of.bytes()[index / 8] >> (7 - index % 8)) & 1) != 0;
}

// The network of `inside` with the given prefix, made one bit at a time.
IpAddress slow_network(const IpAddress& inside, int prefix_bits) {
  V6Bytes bytes{};
  for (int i = 0; i < prefix_bits; ++i) {
    if (bit(inside, i)) bytes[i / 8] = static_cast<std::uint8_t>(bytes[i / 8] | (0x80 >> (i % 8)));
  }
  return IpAddress::from_v6(bytes);
}

TEST(IpAddress, TakesBothFamilies) {
  EXPECT_EQ(address("1.2.3.4").text(), "1.2.3.4");
  EXPECT_EQ(address("2001:DB8:0:0:0:0:0:1").text(), "2001:db8::1");
  EXPECT_TRUE(address("0.0.0.0").is_v4());
  EXPECT_FALSE(address("::").is_v4());
  EXPECT_EQ(address("1111:2222:3333:4444:5555:6666:123.123.123.123").text(),
            "1111:2222:3333:4444:5555:6666:7b7b:7b7b");
}

TEST(IpAddress, IsTheIpv4AddressWhenMapped) {
  EXPECT_EQ(address("::ffff:1.2.3.4"), address("1.2.3.4"));
  EXPECT_EQ(address("::ffff:102:304"), address("1.2.3.4"));
  EXPECT_EQ(address("::ffff:1.2.3.4").text(), "1.2.3.4");
  EXPECT_FALSE(address("::1.2.3.4").is_v4());
}

TEST(IpAddress, KnowsLoopback) {
  for (const char* text : {"127.0.0.1", "127.255.255.255", "::1", "::ffff:127.0.0.1"}) {
    EXPECT_TRUE(address(text).is_loopback()) << text;
  }
  for (const char* text : {"128.0.0.1", "126.255.255.255", "::", "::2", "1::1", "::127.0.0.1"}) {
    EXPECT_FALSE(address(text).is_loopback()) << text;
  }
}

TEST(IpAddress, RefusesWhatIsNotPlainlyOne) {
  using std::string_view_literals::operator""sv;
  for (const std::string_view text :
       {""sv,           " 1.2.3.4"sv,        "1.2.3.4 "sv,  "1.2.3.4\n"sv,   "01.2.3.4"sv,
        "1.2.3.04"sv,   "1.2.3"sv,           "1.2.3.4.5"sv, "1.2.3.256"sv,   "0x7f.0.0.1"sv,
        "2130706433"sv, "+1.2.3.4"sv,        "1.2.3.4\0"sv, "1.2.3.4\0.5"sv, "fe80::1%eth0"sv,
        "fe80::1%"sv,   "[::1]"sv,           "::1:"sv,      ":::"sv,         "1::2::3"sv,
        "12345::"sv,    "::ffff:1.2.3.04"sv, "localhost"sv, "1.2.3.4/8"sv,   ":"sv,
        "."sv}) {
    EXPECT_FALSE(IpAddress::parse(text).has_value()) << text;
  }
}

TEST(Cidr, HoldsWhatIsInside) {
  EXPECT_TRUE(range("10.0.0.0/8").contains(address("10.255.0.1")));
  EXPECT_FALSE(range("10.0.0.0/8").contains(address("11.0.0.0")));
  EXPECT_TRUE(range("0.0.0.0/0").contains(address("255.255.255.255")));
  EXPECT_TRUE(range("192.0.2.1").contains(address("192.0.2.1")));
  EXPECT_FALSE(range("192.0.2.1").contains(address("192.0.2.0")));
  EXPECT_TRUE(range("2001:db8::/33").contains(address("2001:db8:7fff::1")));
  EXPECT_FALSE(range("2001:db8::/33").contains(address("2001:db8:8000::")));
}

TEST(Cidr, TakesAMappedAddressAsIpv4) {
  EXPECT_TRUE(range("10.0.0.0/8").contains(address("::ffff:10.1.2.3")));
  EXPECT_EQ(range("::ffff:10.0.0.0/104"), range("10.0.0.0/8"));
  EXPECT_EQ(range("::ffff:0:0/96"), range("0.0.0.0/0"));
  EXPECT_EQ(range("::ffff:10.0.0.1").text(), "10.0.0.1/32");
}

TEST(Cidr, NeverMixesTheFamilies) {
  EXPECT_FALSE(range("::/0").contains(address("1.2.3.4")));
  EXPECT_FALSE(range("::/0").contains(address("::ffff:1.2.3.4")));
  EXPECT_FALSE(range("0.0.0.0/0").contains(address("::")));
  EXPECT_FALSE(range("::/80").contains(address("0.0.0.0")));
}

TEST(Cidr, NamesTheRangeThatWasProbablyMeant) {
  EXPECT_EQ(refusal("10.0.0.1/8"),
            "10.0.0.1/8 has bits after its prefix; did you mean 10.0.0.0/8?");
  EXPECT_EQ(refusal("2001:db8::1/32"),
            "2001:db8::1/32 has bits after its prefix; did you mean 2001:db8::/32?");
  EXPECT_EQ(refusal("::ffff:10.1.0.0/104"),
            "::ffff:10.1.0.0/104 has bits after its prefix; did you mean 10.0.0.0/8?");
  EXPECT_EQ(refusal("::ffff:10.0.0.0/8"),
            "\"::ffff:10.0.0.0/8\" is an IPv4 address mapped into IPv6, whose prefix must be 96 "
            "to 128; did you mean 10.0.0.0/8?");
  EXPECT_EQ(refusal("::ffff:10.0.0.0/95"),
            "\"::ffff:10.0.0.0/95\" is an IPv4 address mapped into IPv6, whose prefix must be 96 "
            "to 128.");
}

TEST(Cidr, RefusesAPrefixThatIsNoPlainNumberInRange) {
  using std::string_view_literals::operator""sv;
  for (const std::string_view text :
       {"10.0.0.0/"sv, "10.0.0.0/08"sv, "10.0.0.0/00"sv, "10.0.0.0/+8"sv, "10.0.0.0/-1"sv,
        "10.0.0.0/33"sv, "10.0.0.0/ 8"sv, "10.0.0.0/8 "sv, "10.0.0.0/8/8"sv, "10.0.0.0/8\0"sv,
        "10.0.0.0/255.0.0.0"sv, "10.0.0.0/4294967304"sv, "10.0.0.0/0x8"sv}) {
    EXPECT_NE(refusal(text).find("must be a plain number from 0 to 32."), std::string::npos)
        << text;
  }
  EXPECT_NE(refusal("::/129").find("from 0 to 128."), std::string::npos);
  for (const std::string_view text : {"/"sv, ""sv, "/8"sv, " 10.0.0.0/8"sv, "\0"sv, "10.0/8"sv}) {
    EXPECT_NE(refusal(text).find("is not an address range"), std::string::npos) << text;
  }
}

TEST(Cidr, QuotesForeignTextShortAndPrintable) {
  const std::string message = refusal(std::string(500, '\n') + "x");
  EXPECT_LT(message.size(), 200U);
  EXPECT_EQ(message.find('\n'), std::string::npos);
}

RC_GTEST_PROP(IpAddressProperty, ComesBackFromItsText, ()) {
  const IpAddress original = any_address();
  RC_ASSERT(IpAddress::parse(original.text()) == std::optional(original));
}

RC_GTEST_PROP(IpAddressProperty, IsTheSameMappedOrPlain, (V4Bytes v4)) {
  const IpAddress plain = IpAddress::from_v4(v4);
  V6Bytes mapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  std::ranges::copy(v4, mapped.begin() + 12);
  RC_ASSERT(IpAddress::from_v6(mapped) == plain);
  RC_ASSERT(IpAddress::parse("::ffff:" + plain.text()) == std::optional(plain));
}

RC_GTEST_PROP(CidrProperty, AgreesWithTheBitByBitOracle, ()) {
  const IpAddress inside = any_address();
  const int shortest = inside.is_v4() ? 96 : 0;
  const int bits = *number(shortest, 129);
  const IpAddress network = slow_network(inside, bits);
  const Cidr cidr = range(network.text() + "/" + std::to_string(bits - shortest));

  // A near address: the same one with a few bits turned.
  V6Bytes bytes = inside.bytes();
  for (const int index : *rc::gen::container<std::vector<int>>(number(0, 128))) {
    bytes[index / 8] = static_cast<std::uint8_t>(bytes[index / 8] ^ (0x80 >> (index % 8)));
  }
  for (const IpAddress& other : {inside, IpAddress::from_v6(bytes), any_address()}) {
    bool expected = other.is_v4() == inside.is_v4();
    for (int i = 0; i < bits && expected; ++i) expected = bit(other, i) == bit(network, i);
    RC_ASSERT(cidr.contains(other) == expected);
  }
  RC_ASSERT(range(cidr.text()) == cidr);
}

RC_GTEST_PROP(CidrProperty, TakesARangeExactlyWhenNoBitIsBehindItsPrefix, ()) {
  const IpAddress any = any_address();
  const int shortest = any.is_v4() ? 96 : 0;
  const int bits = *number(shortest, 129);
  const auto parsed = Cidr::parse(any.text() + "/" + std::to_string(bits - shortest));
  RC_ASSERT(parsed.has_value() == (slow_network(any, bits) == any));
}

RC_GTEST_PROP(CidrProperty, NeverMixesTheFamilies, ()) {
  const IpAddress v6 = IpAddress::from_v6(any_v6());
  RC_PRE(!v6.is_v4());
  const IpAddress v4 =
      IpAddress::from_v4(*rc::gen::container<V4Bytes>(rc::gen::arbitrary<std::uint8_t>()));
  const bool range_is_v4 = *rc::gen::arbitrary<bool>();
  const IpAddress& one = range_is_v4 ? v4 : v6;
  const IpAddress& other = range_is_v4 ? v6 : v4;
  const int shortest = one.is_v4() ? 96 : 0;
  const int bits = *number(shortest, 129);
  const IpAddress network = slow_network(one, bits);
  RC_ASSERT(!range(network.text() + "/" + std::to_string(bits - shortest)).contains(other));
}

RC_GTEST_PROP(CidrProperty, AnswersEveryGarbage, ()) {
  const std::string text = *rc::gen::oneOf(
      rc::gen::arbitrary<std::string>(),
      rc::gen::container<std::string>(rc::gen::elementOf(std::string("0123456789abcf:./: %+-"))));
  const auto parsed = Cidr::parse(text);
  if (parsed) {
    RC_ASSERT(range(parsed->text()) == *parsed);
  } else {
    RC_ASSERT(parsed.error().kind == Errc::invalid);
    RC_ASSERT(parsed.error().message.find('\n') == std::string::npos);
  }
  const auto alone = IpAddress::parse(text);
  if (alone) RC_ASSERT(address(alone->text()) == *alone);
}

}  // namespace
}  // namespace clawdforge
