// What is there before the gateway, and outlives it.
#pragma once

#include <map>
#include <string>

#include "base/async/async.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/telemetry/log.h"
#include "base/telemetry/metrics.h"
#include "config/config.h"
#include "daemon/process/handed_socket.h"
#include "daemon/process/service_notice.h"
#include "ledger/ledger.h"
#include "process/tree/spawner.h"
#include "storage/disk/data_dir.h"
#include "storage/disk/disk.h"

namespace clawdforge {

struct GatewayDependencies {
  IoContext& io;
  const Config& config;
  const DataDir& data_dir;
  Ledger& ledger;
  const Clock& clock;
  IdSource& ids;
  Log& log;
  Metrics& metrics;
  Spawner& spawner;
  Disk& disk;
  const ServiceNotice& notice;
  std::string own_program;
  std::map<std::string, std::string> environment;
  HandedSocket* handed = nullptr;  // to listen on; null: the gateway makes its own
};

}  // namespace clawdforge
