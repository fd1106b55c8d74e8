#include "agent/acp/acp_failure.h"

#include <fmt/format.h>

#include <array>

#include "agent/claude/cli_failure.h"
#include "agent/core/masking.h"

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

}  // namespace

Failure failure_of(const AcpError& error, const AgentSpec& spec, std::optional<std::int64_t> now,
                   const std::vector<std::string>& secrets) {
  CliResult said;
  said.is_error = true;
  said.text = without_preface(error.message);
  if (said.text.empty()) said.text = fmt::format("{} reported error {}.", spec.name, error.code);
  for (const auto& [kind, status] : kApiKinds) {
    if (error.kind == kind) said.api_status = status;
  }
  if (error.code == kAcpNotLoggedIn) said.api_status = 401;
  Failure failure = failure_of(said, now.value_or(0), secrets);
  if (!now) failure.retry_after = {};
  if (failure.cause == Cause::login && !spec.login_hint.empty()) {
    failure.message = spec.login_hint;
  }
  return failure;
}

Failure failure_of_end(const AgentSpec& spec, const std::optional<ExitStatus>& status) {
  Failure failure{.kind = Errc::agent_failed, .code = "agent_exited", .cause = Cause::agent_exited};
  if (!status) {
    failure.message = fmt::format("{} was ended.", spec.name);
  } else if (std::holds_alternative<NotStarted>(*status)) {
    failure = failure_of(spec.name, SilentEnd{.status = *status, .error_tail = {}});
    if (failure.cause == Cause::agent_missing) failure = not_found(spec);
  } else if (const auto* exited = std::get_if<Exited>(&*status)) {
    failure.message = fmt::format("{} exited with code {}.", spec.name, exited->code);
  } else if (const auto* signaled = std::get_if<Signaled>(&*status)) {
    failure.message = fmt::format("{} was ended by signal {}.", spec.name, signaled->number);
  } else {
    failure.message = fmt::format("{} ended in an unknown way.", spec.name);
  }
  return failure;
}

bool is_conversation_lost(const AcpError& error) {
  return error.code == kAcpNotFound || error.message.contains("process exited unexpectedly");
}

Failure not_found(const AgentSpec& spec) {
  return {.kind = Errc::unavailable,
          .code = "agent_not_found",
          .message = spec.install_hint.empty()
                         ? fmt::format("The program of the agent {} is not there.", spec.name)
                         : spec.install_hint};
}

Failure unknown_model(const AgentSpec& spec, const std::string& model,
                      const std::vector<std::string>& known) {
  std::string sentence = fmt::format("{} does not know the model {}.", spec.name, model);
  if (!known.empty()) sentence += fmt::format(" It knows: {}.", fmt::join(known, ", "));
  return {.kind = Errc::invalid,
          .code = "unknown_model",
          .message = masked_line(sentence, kSentenceCharactersMax)};
}

}  // namespace clawdforge
