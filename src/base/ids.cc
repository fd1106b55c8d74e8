#include "base/ids.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

namespace clawdforge {
namespace {

std::string base64url(const unsigned char* bytes, std::size_t size) {
  static constexpr char kAlphabet[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::string text;
  text.reserve((size * 4 + 2) / 3);
  std::uint32_t bits = 0;
  int held = 0;
  for (std::size_t i = 0; i < size; ++i) {
    bits = (bits << 8) | bytes[i];
    held += 8;
    while (held >= 6) {
      held -= 6;
      text.push_back(kAlphabet[(bits >> held) & 63]);
    }
  }
  if (held > 0) text.push_back(kAlphabet[(bits << (6 - held)) & 63]);
  return text;
}

}  // namespace

void fill_random(void* bytes, std::size_t size) {
  if (getentropy(bytes, size) != 0) std::abort();
}

std::string RandomIds::uuid() {
  constexpr std::uint32_t kSequenceMax = 0xfff;
  // A clock that stands still or steps back must not break the order.
  const auto now = clock_.now().time_since_epoch().count();
  if (now > last_millisecond_) {
    last_millisecond_ = now;
    sequence_ = 0;
  } else if (++sequence_ > kSequenceMax) {
    ++last_millisecond_;
    sequence_ = 0;
  }
  std::uint64_t random = 0;
  fill_random(&random, sizeof random);
  const auto millisecond = static_cast<std::uint64_t>(last_millisecond_);
  return fmt::format("{:08x}-{:04x}-7{:03x}-{:04x}-{:012x}", millisecond >> 16,
                     millisecond & 0xffff, sequence_, 0x8000 | (random >> 50),
                     random & 0xffff'ffff'ffff);
}

Secret RandomIds::token(std::string_view prefix) {
  std::array<unsigned char, 32> bytes;
  fill_random(bytes.data(), bytes.size());
  std::string text(prefix);
  text += base64url(bytes.data(), bytes.size());
  OPENSSL_cleanse(bytes.data(), bytes.size());
  return Secret(std::move(text));
}

Secret RandomIds::key(std::string_view prefix) {
  std::string bytes(32, '\0');
  fill_random(bytes.data(), bytes.size());
  const Secret wiped(std::move(bytes));
  return Secret(std::string(prefix) + to_base64(wiped.reveal()));
}

std::string CountingIds::uuid() { return fmt::format("00000000-0000-7000-8000-{:012x}", next_++); }

Secret CountingIds::token(std::string_view prefix) {
  return Secret(fmt::format("{}{:043}", prefix, next_++));
}

Secret CountingIds::key(std::string_view prefix) {
  return Secret(std::string(prefix) + to_base64(fmt::format("{:032}", next_++)));
}

}  // namespace clawdforge
