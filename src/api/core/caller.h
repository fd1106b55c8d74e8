// Who is asking.
#pragma once

#include <memory>
#include <string>

#include "model/app.h"
#include "model/ask_key.h"
#include "model/token_event.h"

namespace clawdforge {

enum class CallerKind { unidentified, app, admin };

struct Caller {
  CallerKind kind = CallerKind::unidentified;
  std::shared_ptr<const App> app;  // only for CallerKind::app
  AdminOrigin admin{};             // only for CallerKind::admin
  // Of a request with an idempotency key, where the path takes one: api/keys/keyed.h.
  std::shared_ptr<KeyHold> key{};
};

}  // namespace clawdforge
