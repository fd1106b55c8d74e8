// The plain functions of SHA-256 are called deprecated in favour of a search by name
// through providers, which takes ten times as long and loads most of the library.
#define OPENSSL_SUPPRESS_DEPRECATED

#include "base/secret.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <cstdlib>
#include <cstring>
#include <utility>

namespace clawdforge {

Secret& Secret::operator=(Secret&& other) noexcept {
  if (this != &other) {
    wipe();
    text_ = std::move(other.text_);
    other.wipe();
  }
  return *this;
}

void Secret::wipe() {
  // Up to the capacity: a short string lives inside the object itself.
  text_.resize(text_.capacity());
  OPENSSL_cleanse(text_.data(), text_.size());
  text_.clear();
}

Digest sha256(std::string_view text) {
  Digest digest;
  SHA256_CTX context;
  SHA256_Init(&context);
  SHA256_Update(&context, text.data(), text.size());
  SHA256_Final(digest.data(), &context);
  return digest;
}

std::string to_hex(const Digest& digest) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(digest.size() * 2);
  for (const unsigned char byte : digest) {
    text.push_back(kDigits[byte >> 4]);
    text.push_back(kDigits[byte & 15]);
  }
  return text;
}

bool equal_in_constant_time(const Digest& a, const Digest& b) {
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

Secret take_from_environment(const char* name) {
  char* value = std::getenv(name);
  if (value == nullptr) return {};
  Secret secret{std::string(value)};
  OPENSSL_cleanse(value, std::strlen(value));
  unsetenv(name);
  return secret;
}

}  // namespace clawdforge
