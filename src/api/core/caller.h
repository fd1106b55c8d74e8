// Who is asking.
#pragma once

#include <memory>
#include <string>

#include "base/net.h"
#include "model/app.h"

namespace clawdforge {

enum class CallerKind { nobody, app, admin };

struct Caller {
  CallerKind kind = CallerKind::nobody;
  std::shared_ptr<const App> app;  // only for CallerKind::app
};

}  // namespace clawdforge
