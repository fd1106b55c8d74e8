// Where ids and secrets come from. Ids of rows sort by time (UUID version 7), which
// keeps the ledger's indexes growing at one end.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/secret.h"

namespace clawdforge {

class IdSource {
 public:
  virtual ~IdSource() = default;
  // Lower-case text form; later calls compare greater, also within a millisecond.
  virtual std::string uuid() = 0;
  // `prefix` and 32 random bytes in URL-safe base64 without padding.
  virtual Secret token(std::string_view prefix) = 0;
  // `prefix` and 32 random bytes in plain base64.
  virtual Secret key(std::string_view prefix) = 0;
};

// Io thread only.
class RandomIds final : public IdSource {
 public:
  explicit RandomIds(const Clock& clock) : clock_(clock) {}
  std::string uuid() override;
  Secret token(std::string_view prefix) override;
  Secret key(std::string_view prefix) override;

 private:
  const Clock& clock_;
  std::int64_t last_millisecond_ = 0;
  std::uint32_t sequence_ = 0;  // 12 bits go into the id
};

// Predictable ids, so that a test can write down what it expects.
class CountingIds final : public IdSource {
 public:
  std::string uuid() override;
  Secret token(std::string_view prefix) override;
  Secret key(std::string_view prefix) override;

 private:
  std::uint64_t next_ = 1;
};

// Fills up to 256 bytes from the kernel's random generator; the process ends if it fails.
void fill_random(void* bytes, std::size_t size);

}  // namespace clawdforge
