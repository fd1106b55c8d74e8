// Secret holds a token. It cannot be printed, logged, compared by == or copied by
// accident, and its bytes are wiped when it dies. reveal() is the one way out, and
// is meant to be found by a search.
#pragma once

#include <array>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace clawdforge {

class Secret {
 public:
  Secret() = default;
  explicit Secret(std::string text) : text_(std::move(text)) {}
  Secret(Secret&& other) noexcept : text_(std::move(other.text_)) { other.wipe(); }
  Secret& operator=(Secret&& other) noexcept;
  Secret(const Secret&) = delete;
  Secret& operator=(const Secret&) = delete;
  ~Secret() { wipe(); }

  bool empty() const { return text_.empty(); }
  std::string_view reveal() const { return text_; }

  friend std::ostream& operator<<(std::ostream&, const Secret&) = delete;

 private:
  void wipe();

  std::string text_;
};

// What is stored and looked up instead of a token.
using Digest = std::array<unsigned char, 32>;

Digest sha256(std::string_view text);

// Signs `text` so that only a holder of `key` can have done it.
Digest hmac_sha256(std::string_view key, std::string_view text);

// The same of a text that comes in pieces.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void add(std::string_view piece);
  Digest digest();  // once, and the last call

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

std::string to_hex(const Digest& digest);

// Plain base64, with padding; and back. None: it is not base64.
std::string to_base64(std::string_view bytes);
std::optional<std::string> from_base64(std::string_view text);

// Takes the same time wherever the two differ.
bool equal_in_constant_time(const Digest& a, const Digest& b);

// Moves an environment variable into a Secret: the value is overwritten where the
// kernel shows it (/proc/PID/environ) and the variable removed. Empty if unset.
// Only while the process has one thread.
Secret take_from_environment(const char* name);

}  // namespace clawdforge
