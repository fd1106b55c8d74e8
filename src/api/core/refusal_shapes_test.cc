// A refusal has the shape of the dialect whose path it is, wherever it is made: in the api by the
// head, in http by the body, or in http because a handler broke.
#include <gtest/gtest.h>

#include "api/core/api.h"
#include "api/core/problem.h"
#include "http/server/server_fixture.h"
#include "ledger/open_ledger.h"

namespace clawdforge {
namespace {

void render_dialect(const Refusal& refusal, Response& response) {
  if (response.status == 405) response.status = 404;  // a dialect may know fewer of them
  response.headers.emplace_back("X-Dialect", "yes");
  response.body = "dialect " + std::string(refusal.code);
}

Task<Response> broken(Request*) {
  throw std::runtime_error("a defect");
  co_return Response{};
}

Endpoints endpoints() {
  Endpoints all;
  for (const char* pattern : {"/v1/broken", "/native/broken"}) {
    all.push_back({"POST", pattern, Permit::anybody, Body::json,
                   [](Caller, Request* request) { return broken(request); }});
  }
  for (const char* pattern : {"/v1/secret", "/native/secret"}) {
    all.push_back({"GET", pattern, Permit::admin, Body::none,
                   [](Caller, Request* request) { return broken(request); }});
  }
  return all;
}

class RefusalShapes : public ::testing::Test {
 protected:
  static RefusalRenderers renderers() {
    RefusalRenderers renderers(render_native_refusal);
    renderers.add("/v1", render_dialect);
    return renderers;
  }
  static ServerOptions options() {
    ServerOptions options;
    options.refusals = renderers();
    return options;
  }

  std::string ask(const std::string& head, const std::string& body = {}) {
    return server_.ask(head +
                       " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX-Request-Id: r-1" +
                       "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  }
  void expect_dialect(const std::string& answer, const std::string& status,
                      const std::string& code) {
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 " + status + " ")) << answer;
    EXPECT_TRUE(answer.contains("X-Dialect: yes\r\n")) << answer;
    EXPECT_TRUE(answer.ends_with("\r\n\r\ndialect " + code)) << answer;
  }
  void expect_native(const std::string& answer, const std::string& status,
                     const std::string& code) {
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 " + status + " ")) << answer;
    EXPECT_FALSE(answer.contains("X-Dialect")) << answer;
    EXPECT_TRUE(answer.contains("\r\n\r\n{\"ok\":false,\"code\":\"" + code + "\",")) << answer;
    EXPECT_TRUE(answer.ends_with(R"(,"request_id":"r-1"})")) << answer;
  }

  IoContext io_{1};
  Log log_{LogLevel::error, LogFormat::json};
  Metrics metrics_;
  const SystemClock clock_;
  RandomIds ids_{clock_};
  std::unique_ptr<Ledger> ledger_ = std::move(
      *open_ledger(io_.get_executor(), "sqlite::memory:", InstanceId("i1"), log_, metrics_));
  Apps apps_{ledger_->apps, clock_, ids_, log_};
  const bool is_draining_ = false;
  Quota quota_{{}, metrics_};
  RateLimits rates_{{.app_requests_max = 1e6,
                     .app_bytes_max = 1e9,
                     .address_requests_max = 1e6,
                     .address_bytes_max = 1e9,
                     .address_connections_max = 10,
                     .proxies = {}},
                    metrics_};
  ByteBudget memory_{{.bytes_max = 1 << 20, .share_bytes_max = 1 << 20}, metrics_};
  Api api_{endpoints(),
           Auth({}, sha256("admin"), apps_),
           {.quota = quota_, .rates = rates_, .memory = memory_, .body_bytes_max = 16},
           is_draining_,
           renderers()};
  RunningServer server_{options(), [this](Request& request) { return api_.admit(request); }};
};

TEST_F(RefusalShapes, FollowThePathWhereTheHeadIsRefused) {
  expect_dialect(ask("GET /v1/secret"), "401", "unauthorized");
  expect_dialect(ask("GET /v1/nothing"), "404", "path_not_found");
  expect_dialect(ask("PUT /v1/secret"), "404", "method_not_allowed");
  expect_native(ask("GET /native/secret"), "401", "unauthorized");
  expect_native(ask("GET /v10/nothing"), "404", "path_not_found");
  expect_native(ask("PUT /native/secret"), "405", "method_not_allowed");
}

TEST_F(RefusalShapes, KeepTheHeadersThatHttpAsksFor) {
  EXPECT_TRUE(ask("GET /v1/secret").contains("WWW-Authenticate: Bearer\r\n"));
  EXPECT_TRUE(ask("PUT /v1/secret").contains("Allow: GET"));
}

TEST_F(RefusalShapes, FollowThePathWhereHttpRefuses) {
  const std::string large(17, ' ');
  expect_dialect(ask("POST /v1/broken", large), "413", "body_too_large");
  expect_native(ask("POST /native/broken", large), "413", "body_too_large");
}

TEST_F(RefusalShapes, FollowThePathWhereAHandlerBreaks) {
  expect_dialect(ask("POST /v1/broken", "{}"), "500", "internal");
  expect_native(ask("POST /native/broken", "{}"), "500", "internal");
}

TEST_F(RefusalShapes, AreNativeWhereThePathIsNotKnown) {
  const std::string answer = server_.ask("nonsense\r\n\r\n");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 400 ")) << answer;
  EXPECT_TRUE(answer.contains(R"({"ok":false,"code":"bad_request")")) << answer;
}

}  // namespace
}  // namespace clawdforge
