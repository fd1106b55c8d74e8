// The plain functions of SHA-256 are called deprecated in favour of a search by name
// through providers, which takes ten times as long and loads most of the library.
#define OPENSSL_SUPPRESS_DEPRECATED

#include "base/secret.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
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

Digest hmac_sha256(std::string_view key, std::string_view text) {
  Digest digest;
  unsigned int size = digest.size();
  const auto* const bytes = reinterpret_cast<const unsigned char*>(text.data());
  // It fails only where memory has run out, and a signature must not be made up.
  if (HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), bytes, text.size(),
           digest.data(), &size) == nullptr) {
    std::abort();
  }
  return digest;
}

std::string to_base64(std::string_view bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');  // EVP writes a zero after it
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                                   reinterpret_cast<const unsigned char*>(bytes.data()),
                                   static_cast<int>(bytes.size()));
  text.resize(static_cast<std::size_t>(size));
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  std::string bytes(text.size() / 4 * 3, '\0');
  if (text.size() % 4 != 0) return std::nullopt;
  const int size = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                                   reinterpret_cast<const unsigned char*>(text.data()),
                                   static_cast<int>(text.size()));
  if (size < 0) return std::nullopt;
  // EVP counts the padding as bytes.
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  bytes.resize(static_cast<std::size_t>(size) - padding);
  return bytes;
}

struct Sha256::State {
  SHA256_CTX context;
};

Sha256::Sha256() : state_(std::make_unique<State>()) { SHA256_Init(&state_->context); }

Sha256::~Sha256() = default;

void Sha256::add(std::string_view piece) {
  SHA256_Update(&state_->context, piece.data(), piece.size());
}

Digest Sha256::digest() {
  Digest digest;
  SHA256_Final(digest.data(), &state_->context);
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
