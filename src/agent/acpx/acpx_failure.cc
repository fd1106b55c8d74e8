#include "agent/acpx/acpx_failure.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "agent/acp/acp_failure.h"
#include "agent/failure/agent_failure.h"

namespace clawdforge {
namespace {

struct Kind {
  std::string_view word;  // acpx's own
  Errc kind;
  std::string_view code;
  std::string_view sentence;  // about the agent, whose name goes before it
};

// What acpx says is meant for a user at a terminal; these are our sentences for it.
constexpr std::array<Kind, 7> kKinds = {{
    {"TIMEOUT", Errc::timed_out, "acpx_timeout", "did not answer acpx in its time."},
    {"NO_SESSION", Errc::agent_failed, "acpx_no_session", "has no such session in acpx any more."},
    {"USAGE", Errc::agent_failed, "acpx_usage",
     "was called through acpx in a way that it does not know; its version may be too old."},
    {"PERMISSION_DENIED", Errc::agent_failed, "acpx_permission",
     "ended because it was not permitted what it asked for."},
    {"PERMISSION_PROMPT_UNAVAILABLE", Errc::agent_failed, "acpx_permission",
     "ended because it was not permitted what it asked for."},
    {"AGENT_DISCONNECTED", Errc::agent_failed, "agent_exited", "ended during its turn."},
    {"AGENT_STARTUP_FAILED", Errc::agent_failed, "agent_exited", "ended while it was started."},
}};

Failure failure_from(const Kind& kind, const AgentSpec& spec) {
  return {.kind = kind.kind,
          .code = kind.code,
          .message = fmt::format("{} {}", spec.name, kind.sentence)};
}

const Kind* kind_of(std::string_view word) {
  for (const Kind& kind : kKinds) {
    if (kind.word == word) return &kind;
  }
  return nullptr;
}

// By the exit code, as acpx documents it.
std::string_view word_for(int exit_code) {
  switch (exit_code) {
    case 2:
      return "USAGE";
    case 3:
      return "TIMEOUT";
    case 4:
      return "NO_SESSION";
    case 5:
      return "PERMISSION_DENIED";
    default:
      return "";
  }
}

// acpx tells them in its sentence: "Available models: a, b."
std::vector<std::string> models_in(std::string_view message) {
  constexpr std::string_view kIntroduction = "Available models: ";
  std::vector<std::string> models;
  const std::size_t begin = message.find(kIntroduction);
  if (begin == std::string_view::npos) return models;
  message.remove_prefix(begin + kIntroduction.size());
  if (message.ends_with('.')) message.remove_suffix(1);
  while (!message.empty()) {
    const std::size_t end = std::min(message.find(", "), message.size());
    models.emplace_back(message.substr(0, end));
    message.remove_prefix(std::min(end + 2, message.size()));
  }
  return models;
}

constexpr std::string_view kAgentAbsent = "AGENT_SPAWN_ENOENT";

AcpError error_of(const AcpxFault& fault) {
  const bool is_login = fault.detail_code == "AUTH_REQUIRED";
  return {.code = is_login ? kAcpNotLoggedIn : fault.code, .message = fault.message, .kind = {}};
}

bool is_of_queue(const AcpxFault& fault) { return fault.detail_code.starts_with("QUEUE_"); }

}  // namespace

Failure failure_of(const AcpxFault& fault, const AgentSpec& spec, std::optional<std::int64_t> now,
                   const std::vector<std::string>& secrets) {
  const AcpError said = error_of(fault);
  if (said.code == kAcpNotLoggedIn) return failure_of(said, spec, now, secrets);
  if (fault.detail_code == kAgentAbsent) return not_found(spec);
  // The time-out of a prompt comes with a detail of the queue: the first word is the cause.
  if (const Kind* kind = kind_of(fault.acpx_code)) return failure_from(*kind, spec);
  if (const Kind* kind = kind_of(fault.detail_code)) return failure_from(*kind, spec);
  Failure failure = failure_of(said, spec, now, secrets);
  if (is_of_queue(fault) && !is_recognised(said)) failure.code = "acpx_queue";
  return failure;
}

bool is_recognised(const AcpxFault& fault) {
  return is_of_queue(fault) || is_recognised(error_of(fault)) ||
         fault.detail_code == kAgentAbsent || kind_of(fault.acpx_code) != nullptr ||
         kind_of(fault.detail_code) != nullptr;
}

Failure failure_of_acpx(const AgentSpec& spec, const ExitStatus& status,
                        std::string_view error_tail) {
  const auto* exited = std::get_if<Exited>(&status);
  if (exited != nullptr && exited->code == 0) {
    return {.kind = Errc::agent_failed,
            .code = "agent_nonsense",
            .message = fmt::format("acpx ended well without the end of {}'s turn.", spec.name)};
  }
  const Kind* kind = exited == nullptr ? nullptr : kind_of(word_for(exited->code));
  if (kind != nullptr) return failure_from(*kind, spec);
  Failure failure = failure_of_end(spec, status, error_tail);
  if (failure.cause == Cause::agent_exited) failure.message = "acpx for " + failure.message;
  return failure;
}

std::optional<Failure> model_failure(const AcpxFault& fault, const AgentSpec& spec,
                                     const std::string& model) {
  if (model.empty() || !fault.message.contains("--model")) return std::nullopt;
  if (fault.message.contains("did not advertise that model")) {
    return unknown_model(spec, model, models_in(fault.message));
  }
  return Failure{.kind = Errc::invalid,
                 .code = "model_not_supported",
                 .message = fmt::format("{} does not let its model be chosen.", spec.name)};
}

}  // namespace clawdforge
