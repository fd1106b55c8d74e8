// An upload is a file that an app has brought; its token is shown once, its digest kept.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/secret.h"
#include "base/strong_id.h"

namespace clawdforge {

struct Upload {
  Digest token_digest{};
  AppName app;
  std::int64_t size = 0;
  std::string extension;  // safe: "" or a dot and 1 to 16 of a-z, 0-9
  TimePoint created_at;
  TimePoint expires_at;
  InstanceId instance_id;
  std::string name{};  // by safe_file_name(); empty: none
};

}  // namespace clawdforge
