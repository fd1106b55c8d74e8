// POST /run, and what an app sees of its runs: /runs, /runs/{id}, /runs/{id}/cancel.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "api/core/endpoint.h"
#include "base/async/compute_worker.h"
#include "base/clock.h"
#include "base/limits/byte_budget.h"
#include "base/result.h"
#include "keys/keys.h"
#include "ledger/rows/run_rows.h"
#include "quota/quota.h"
#include "runs/runs.h"

namespace clawdforge {

struct RunDefaults {
  std::chrono::seconds timeout;
  std::chrono::seconds timeout_max;
};

struct ParsedRun {
  RunRequest run;
  bool is_streamed = false;
  bool includes_usage = false;
  bool includes_denials = false;
  bool includes_model = false;
};

// The body of POST /run. Errc::malformed or Errc::invalid with all that is wrong. `ignored` as in
// Fields::check().
Result<ParsedRun> parse_run(std::string_view body, bool accepts_stream, const RunDefaults& defaults,
                            std::string* ignored = nullptr);

// What POST /run works with. Each outlives its endpoint.
struct RunCall {
  Runs* runs = nullptr;
  ComputeWorker* compute = nullptr;
  std::shared_ptr<const RunDefaults> defaults;
  Quota* quota = nullptr;  // of streams; null, as the next: there are none
  ByteBudget* memory = nullptr;
  const Clock* clock = nullptr;  // of streams, as the two before
};

// What POST /run answers. With a `gate`: as in Runs::execute(), and never as a stream.
Task<Response> answer_run(RunCall call, Caller caller, Request* request,
                          std::shared_ptr<AskGate> gate = nullptr);

// All that is handed in outlives the endpoints.
void add_run_routes(Endpoints& endpoints, RunCall call, const RunRows& rows, Keys& keys);

}  // namespace clawdforge
