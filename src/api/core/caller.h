// Who is asking.
#pragma once

#include <memory>
#include <string>

#include "model/app.h"
#include "model/ask_key.h"
#include "model/token_event.h"

namespace clawdforge {

struct Browser;  // browsers/browsers.h

enum class CallerKind { unidentified, app, admin };

struct Caller {
  CallerKind kind = CallerKind::unidentified;
  std::shared_ptr<const App> app;  // only for CallerKind::app
  AdminOrigin admin{};             // only for CallerKind::admin
  // Of a request with an idempotency key, where the path takes one: api/keys/keyed.h.
  std::shared_ptr<KeyHold> key{};
  // Where the token is a browser's: it stands for the app, or for the admin.
  std::shared_ptr<const Browser> browser{};
  bool is_owner = false;  // the admin acts as this app: `admin` says how it came in
};

}  // namespace clawdforge
