// Lane says for whom a worker does a job. Jobs of one lane are done in order of arrival; between
// lanes the worker takes turns, so that one with many jobs does not hold up the others.
#pragma once

#include <string>
#include <utility>

#include "base/strong_id.h"

namespace clawdforge {

struct Lane {
  Lane() = default;  // the gateway's own work
  explicit Lane(AppName app) : name(std::move(app).str()) {}

  bool is_own() const { return name.empty(); }

  std::string name;
};

}  // namespace clawdforge
