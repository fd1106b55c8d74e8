// POST /run, and what an app sees of its runs: /runs, /runs/{id}, /runs/{id}/cancel.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "api/core/endpoint.h"
#include "base/async/compute_worker.h"
#include "base/result.h"
#include "keys/keys.h"
#include "ledger/rows/run_rows.h"
#include "runs/runs.h"

namespace clawdforge {

struct RunDefaults {
  std::string model;
  std::chrono::seconds timeout;
  std::chrono::seconds timeout_max;
};

struct ParsedRun {
  RunRequest run;
  bool includes_usage = false;
  bool includes_denials = false;
};

// The body of POST /run. Errc::malformed or Errc::invalid with all that is wrong. `ignored` as in
// Fields::check().
Result<ParsedRun> parse_run(std::string_view body, const RunDefaults& defaults,
                            std::string* ignored = nullptr);

// What POST /run works with. Each outlives its endpoint.
struct RunCall {
  Runs* runs = nullptr;
  ComputeWorker* compute = nullptr;
  std::shared_ptr<const RunDefaults> defaults;
};

// What POST /run answers. With a `gate`: as in Runs::execute().
Task<Response> answer_run(RunCall call, Caller caller, Request* request,
                          std::shared_ptr<AskGate> gate = nullptr);

// All that is handed in outlives the endpoints.
void add_run_routes(Endpoints& endpoints, Runs& runs, const RunRows& rows, Keys& keys,
                    ComputeWorker& compute, RunDefaults defaults);

}  // namespace clawdforge
