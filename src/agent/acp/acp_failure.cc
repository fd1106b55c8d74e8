#include "agent/acp/acp_failure.h"

#include <fmt/format.h>

#include <array>

#include "agent/failure/agent_failure.h"
#include "agent/failure/api_failure.h"

namespace clawdforge {
namespace {

// The HTTP status of the model's API that stands behind each kind.
struct ApiKind {
  std::string_view kind;
  int status;
};
constexpr std::array<ApiKind, 7> kApiKinds = {{{"authentication_failed", 401},
                                               {"oauth_org_not_allowed", 401},
                                               {"billing_error", 429},
                                               {"rate_limit", 429},
                                               {"model_not_found", 404},
                                               {"overloaded", 529},
                                               {"server_error", 500}}};

// What the library of most agents puts in front of the sentence.
std::string_view without_preface(std::string_view message) {
  constexpr std::string_view kPreface = "Internal error: ";
  if (message.starts_with(kPreface)) message.remove_prefix(kPreface.size());
  return message;
}

FailureReport report_of(const AcpError& error) {
  FailureReport report;
  report.text = without_preface(error.message);
  for (const auto& [kind, status] : kApiKinds) {
    if (error.kind == kind) report.api_status = status;
  }
  if (error.code == kAcpNotLoggedIn) report.api_status = 401;
  return report;
}

}  // namespace

bool is_recognised(const AcpError& error) { return is_recognised(report_of(error)); }

Failure failure_of(const AcpError& error, const AgentSpec& spec, std::optional<std::int64_t> now,
                   const std::vector<std::string>& secrets) {
  FailureReport said = report_of(error);
  if (said.text.empty()) said.text = fmt::format("{} reported error {}.", spec.name, error.code);
  return with_login_hint(failure_of(said, now, secrets), spec);
}

bool is_conversation_lost(const AcpError& error) {
  return error.code == kAcpNotFound || error.message.contains("process exited unexpectedly");
}

}  // namespace clawdforge
