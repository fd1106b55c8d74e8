#include "browsers/sign_in_codes.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/ids.h"

namespace clawdforge {
namespace {

constexpr std::size_t kCodesMax = 64;  // those that were used or have ended count as well
// For so long it can be told that a code was used, or came too late.
constexpr std::chrono::hours kRememberedFor{1};
// Without I, L, O and U, which are easily taken for others.
constexpr std::string_view kLetters = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
constexpr std::size_t kCodeBytes = 16;
constexpr std::size_t kGroup = 4;

std::string new_code() {
  std::array<unsigned char, kCodeBytes> bytes{};
  fill_random(bytes.data(), bytes.size());
  std::string code;
  std::uint32_t bits = 0;
  int count = 0;
  std::size_t letters = 0;
  const auto put = [&](std::uint32_t index) {
    if (letters > 0 && letters % kGroup == 0) code += '-';
    code += kLetters[index & 31U];
    ++letters;
  };
  for (const unsigned char byte : bytes) {
    bits = bits << 8U | byte;
    for (count += 8; count >= 5; count -= 5) put(bits >> static_cast<unsigned>(count - 5));
  }
  if (count > 0) put(bits << static_cast<unsigned>(5 - count));
  return code;
}

// As it was made, however a person has typed it.
Digest digest_of(std::string_view code) {
  std::string plain;
  for (char c : code) {
    if (c == '-' || c == ' ') continue;
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    plain += c;
  }
  return sha256(plain);
}

}  // namespace

SignInCodes::Made SignInCodes::make(std::chrono::seconds age_max) {
  forget();
  if (codes_.size() >= kCodesMax) {
    codes_.erase(std::ranges::min_element(
        codes_, {}, [](const auto& entry) { return entry.second.expires_at; }));
  }
  std::string code = new_code();
  const TimePoint expires_at = clock_.now() + age_max;
  codes_.insert_or_assign(digest_of(code), Known{.expires_at = expires_at});
  return {.code = Secret(std::move(code)), .expires_at = expires_at};
}

Result<void> SignInCodes::take(std::string_view code) {
  forget();
  const auto found = codes_.find(digest_of(code));
  if (found == codes_.end()) {
    return fail(Errc::unauthorized, "unauthorized",
                "There is no such code; ask for a link again: clawdforge dashboard.");
  }
  Known& known = found->second;
  if (known.is_used) {
    return fail(Errc::unauthorized, "code_used",
                "This link was used already; each works once: clawdforge dashboard gives another.");
  }
  if (clock_.now() >= known.expires_at) {
    return fail(Errc::unauthorized, "code_expired",
                "This link came too late; clawdforge dashboard gives another.");
  }
  known.is_used = true;
  return {};
}

bool SignInCodes::knows(std::string_view code) const { return codes_.contains(digest_of(code)); }

void SignInCodes::forget() {
  const TimePoint last = clock_.now() - kRememberedFor;
  std::erase_if(codes_, [&](const auto& entry) { return entry.second.expires_at < last; });
}

}  // namespace clawdforge
