// The published contract and the routes must name the same paths and methods.
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <set>
#include <string>

#include "agent/core/agent_catalog.h"
#include "agent/core/no_agents_fixture.h"
#include "api/admin/audit_routes.h"
#include "api/admin/delivery_routes.h"
#include "api/admin/sweep_routes.h"
#include "api/admin/token_routes.h"
#include "api/admin/whoami_routes.h"
#include "api/core/health_routes.h"
#include "api/core/openapi_json.h"
#include "api/core/problem.h"
#include "api/dashboard/docs_routes.h"
#include "api/dashboard/overview_routes.h"
#include "api/dashboard/page_routes.h"
#include "api/dashboard/sign_in_routes.h"
#include "api/jobs/job_routes.h"
#include "api/native/agent_routes.h"
#include "api/native/event_routes.h"
#include "api/native/file_routes.h"
#include "api/native/permission_routes.h"
#include "api/native/run_routes.h"
#include "api/native/session_routes.h"
#include "api/native/usage_routes.h"
#include "api/workspaces/session_work_routes.h"
#include "api/workspaces/workspace_routes.h"
#include "base/async/run_to_end.h"
#include "http/message/router.h"
#include "ledger/open_ledger.h"
#include "quota/quota.h"
#include "sessions/live/session_dependencies.h"
#include "storage/disk/disk.h"
#include "storage/work/acpx_records.h"
#include "storage/work/run_dirs.h"
#include "storage/work/session_dirs.h"
#include "storage/work/upload_files.h"
#include "uploads/uploads.h"

namespace clawdforge {
namespace json = boost::json;
namespace {

using Operations = std::set<std::pair<std::string, std::string>>;

std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text;
}

Operations documented() {
  Operations operations;
  const json::value document =
      json::parse(json::string_view(kOpenApiJson.data(), kOpenApiJson.size()));
  for (const auto& [path, item] : document.at("paths").as_object()) {
    for (const auto& [method, operation] : item.as_object()) {
      if (method == "parameters") continue;
      operations.emplace(upper(std::string(method)), std::string(path));
    }
  }
  return operations;
}

Operations routes_in(const Endpoints& endpoints) {
  Operations served;
  for (const Endpoint& endpoint : endpoints) {
    served.emplace(std::string(endpoint.method), shown_pattern(endpoint.pattern));
  }
  return served;
}

// The endpoints are only named, so what they refer to may be gone.
void add_dashboard(Endpoints& endpoints, Ledger& ledger, Apps& apps, const Clock& clock,
                   IdSource& ids) {
  add_page_routes(endpoints, {});
  add_docs_routes(endpoints, {});
  add_overview_routes(endpoints, {{}, {}, {}, {}, {}, {}, {}, clock});
  Browsers browsers(ledger.browsers, apps, sha256("admin"), clock, ids);
  SignInCodes codes(clock);
  add_sign_in_routes(endpoints,
                     {apps, browsers, codes, sha256("admin"), std::make_shared<Attempts>()});
}

RunCall call_of(Runs& runs, ComputeWorker& compute) {
  return {.runs = &runs, .compute = &compute, .defaults = std::make_shared<const RunDefaults>()};
}

TEST(OpenApi, NamesExactlyTheRoutesThereAre) {
  IoContext io(1);
  Log log(LogLevel::error, LogFormat::json);
  Metrics metrics;
  const SystemClock clock;
  RandomIds ids(clock);
  auto ledger =
      std::move(*open_ledger(io.get_executor(), "sqlite::memory:", InstanceId("i1"), log, metrics));
  Apps apps(ledger->apps, clock, ids, log);
  const bool is_draining = false;
  const ProgramFinding absent;
  const HealthSources health{[] { return true; },
                             [] { return 0; },
                             metrics,
                             is_draining,
                             absent,
                             absent,
                             [] { return false; },
                             [] {},
                             [] { return LoginHealth{.state = "ok"}; }};
  Endpoints endpoints;
  add_health_routes(endpoints, health, false);
  add_dashboard(endpoints, *ledger, apps, clock, ids);
  Disk disk(io.get_executor());
  UploadFiles upload_files(".", disk);
  Uploads uploads(ledger->uploads, upload_files, clock, ids, InstanceId("instance"), 1'000);
  Keys keys(ledger->keys, clock, InstanceId("instance"), {});
  add_file_routes(endpoints, uploads, apps, keys, 1024);
  const AgentCatalog catalog({});
  NoAgents starter;
  RunDirs run_dirs(".", disk, log);
  Quota quota({}, metrics);
  const Policies policies({}, {}, {});
  Runs runs({io.get_executor(), ledger->runs, quota, apps, policies, catalog, starter, uploads,
             run_dirs, clock, ids, metrics, InstanceId("instance")});
  ComputeWorker compute(io.get_executor());
  ByteBudget memory({.bytes_max = 1024, .share_bytes_max = 1024}, metrics);
  add_run_routes(endpoints, call_of(runs, compute), ledger->runs, keys);
  SessionDirs session_dirs(".", disk, log);
  AcpxRecords acpx_records(".", disk);
  Sessions sessions({io.get_executor(), ledger->sessions, ledger->journal, quota, policies, catalog,
                     starter, uploads, session_dirs, acpx_records, clock, ids, log, metrics},
                    {});
  add_session_routes(endpoints, sessions, apps, quota, memory, keys, compute, ledger->sessions, {});
  add_event_routes(endpoints, sessions, apps, quota, memory, compute);
  add_permission_routes(endpoints, sessions);
  add_session_work_routes(endpoints, sessions, apps, 1024);
  add_workspace_routes(endpoints, {}, policies);
  add_agent_routes(endpoints, {}, policies);
  add_whoami_routes(endpoints, policies, {});
  AppRemovals removals({ledger->apps, sessions, clock, log});
  add_token_routes(endpoints, apps, sessions, removals);
  add_audit_routes(endpoints, {ledger->runs, ledger->sessions, ledger->audit}, sessions);
  Sweeper sweeper({io.get_executor(), ledger->uploads, ledger->runs, ledger->audit, upload_files,
                   clock, log, metrics},
                  {std::chrono::seconds(60), {}});
  add_sweep_routes(endpoints, sweeper);
  add_usage_routes(endpoints, ledger->usage, clock);
  Webhooks webhooks({.executor = io.get_executor(),
                     .rows = ledger->deliveries,
                     .clock = clock,
                     .log = log,
                     .metrics = metrics,
                     .load_trust = {}},
                    {});
  add_delivery_routes(endpoints, ledger->deliveries, webhooks);
  add_job_routes(endpoints, {.keys = &keys,
                             .calls = {.run = {.compute = &compute, .defaults = {}}, .turn = {}}});
  EXPECT_EQ(routes_in(endpoints), documented());
}

TEST(Problem, HasTheContractsBodyAndHeaders) {
  Failure error{Errc::over_quota, "too_many_attempts", "Wait.", "secret detail", {}, {}};
  error.retry_after = std::chrono::seconds(3);
  error.fields = {{"name", "is \"odd\""}};
  const Response response = problem(error, "req_1");
  EXPECT_EQ(response.status, 429);
  EXPECT_EQ(response.body,
            R"({"ok":false,"code":"too_many_attempts","detail":"Wait.","request_id":"req_1",)"
            R"("errors":[{"field":"name","message":"is \"odd\""}]})");
  ASSERT_EQ(response.headers.size(), 1u);
  EXPECT_EQ(response.headers.front().second, "3");
}

}  // namespace
}  // namespace clawdforge
