// /sessions and what is below it.
#pragma once

#include <memory>

#include "api/core/endpoint.h"
#include "api/native/session_requests.h"
#include "base/async/compute_worker.h"
#include "base/limits/byte_budget.h"
#include "keys/keys.h"
#include "ledger/sessions/session_rows.h"
#include "quota/apps.h"
#include "quota/quota.h"
#include "sessions/sessions.h"

namespace clawdforge {

// What a turn works with. Each outlives its endpoint.
struct TurnCall {
  Sessions* sessions = nullptr;
  const Apps* apps = nullptr;
  Quota* quota = nullptr;
  ByteBudget* memory = nullptr;
  ComputeWorker* compute = nullptr;
  SessionDefaults defaults{};
};

// What POST /sessions/{id}/turn answers. With a `gate`: as in Sessions::turn().
Task<Response> answer_turn(TurnCall deps, Caller caller, Request* request,
                           std::shared_ptr<AskGate> gate = nullptr);

// All that is handed in outlives the endpoints.
void add_session_routes(Endpoints& endpoints, Sessions& sessions, const Apps& apps, Quota& quota,
                        ByteBudget& memory, Keys& keys, ComputeWorker& compute,
                        const SessionRows& rows, SessionDefaults defaults);

// The session that a path names first. Text that cannot be an id is not found, with the same
// sentence as a session that is absent or another app's.
Result<SessionId> session_id_of(const Request& request);

}  // namespace clawdforge
