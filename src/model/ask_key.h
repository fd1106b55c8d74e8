// An idempotency key is a caller's word that all requests with it are one and the same: the first
// does the work, the others get its answer. Plain records, no I/O.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/secret.h"
#include "base/strong_id.h"

namespace clawdforge {

// Of an answer that is kept for its key. Of a larger one it is only kept that it was given.
inline constexpr std::size_t kKeptAnswerBytesMax = 4 * 1024 * 1024;

struct AskKey {
  Digest digest{};       // of the app, the method, the path and the key
  Digest fingerprint{};  // of what was asked
  AppName app;
  std::string request_id;  // of the request that does the work
  TimePoint begun_at;
  InstanceId instance_id;
};

// What there is to tell when the key comes again.
enum class KeptKind {
  whole,        // the answer itself
  too_large,    // that it was given
  interrupted,  // that a crash has come between
};

struct KeptAnswer {
  KeptKind kind = KeptKind::whole;
  int status = 200;
  std::string headers{};  // lines of "Name: value\n"
  std::string body{};
  std::string request_id{};  // of the request that did the work
};

// What a transaction does about a key.
struct KeyWrite {
  AskKey key;
  std::shared_ptr<const KeptAnswer> answer{};  // null: the work has not started; the key is free
  TimePoint at;
};

// The key of a piece of work on its way through it. The work says here what it has handed to the
// ledger. Shared by the work and by who waits for it.
struct KeyHold {
  AskKey key;
  std::shared_ptr<const KeptAnswer> answer{};  // that the work has handed in; null: none
  bool is_begun = false;                       // the ledger may have a row of it
  bool is_settled = false;  // what is handed in is committed; without an answer the row is gone
  bool is_undone = false;   // the row may say what is not so any more, and has to go

  // The work starts: what its first transaction writes.
  const AskKey& begin() {
    is_begun = true;
    return key;
  }
  KeyWrite keep(KeptAnswer given, TimePoint at) {
    is_begun = true;
    answer = std::make_shared<const KeptAnswer>(std::move(given));
    return {.key = key, .answer = answer, .at = at};
  }
  KeyWrite release(TimePoint at) const { return {.key = key, .at = at}; }
};

}  // namespace clawdforge
