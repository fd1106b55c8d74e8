#include "agent/failure/agent_failure.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "agent/failure/masking.h"
#include "agent/failure/missing_program.h"

namespace clawdforge {
namespace {

Failure no_resources() {
  return {.kind = Errc::unavailable,
          .code = "no_resources",
          .message = "The system refuses another process at the moment.",
          .retry_after = std::chrono::seconds(2)};
}

}  // namespace

Failure agent_failed(std::string_view code, std::string message) {
  return {.kind = Errc::agent_failed, .code = code, .message = std::move(message)};
}

Failure failure_to_start(const std::string& agent, int error) {
  constexpr std::array kAbsent = {ENOENT, ENOTDIR, EACCES, EPERM, ENOEXEC, ELOOP, EISDIR};
  // The system has no more of something; the agent is not to blame. ENOSPC: of namespaces.
  constexpr std::array kScarce = {EAGAIN, ENOMEM, EMFILE, ENFILE, EUSERS, ENOSPC};
  if (std::ranges::find(kScarce, error) != kScarce.end()) return no_resources();
  const bool is_missing = std::ranges::find(kAbsent, error) != kAbsent.end();
  std::string sentence = fmt::format("{} could not be started: {}", agent, std::strerror(error));
  if (error == ENOENT) {
    sentence +=
        ". Its program, or the interpreter that the first line of its script names, is not on the "
        "PATH of the gateway.";
  }
  return {.kind = Errc::unavailable,
          .code = is_missing ? "agent_missing" : "agent_not_started",
          .message = std::move(sentence),
          .cause = is_missing ? Cause::agent_missing : Cause::not_begun};
}

Failure failure_over_limit(const std::string& agent, OverLimit over) {
  const bool is_memory = over.what == OverLimit::What::memory;
  return {.kind = Errc::agent_failed,
          .code = is_memory ? "agent_memory" : "agent_processes",
          .message = fmt::format("{} was ended with all that it had started: together they had "
                                 "more {} than the gateway's owner allows.",
                                 agent, is_memory ? "memory" : "processes"),
          .cause = Cause::agent_exited};
}

Failure failure_of_end(const AgentSpec& spec, const std::optional<ExitStatus>& status,
                       std::string_view error_tail) {
  Failure failure{.kind = Errc::agent_failed, .code = "agent_exited", .cause = Cause::agent_exited};
  if (!status) {
    failure.message = fmt::format("{} was ended.", spec.name);
  } else if (std::holds_alternative<NotStarted>(*status)) {
    const int error = std::get<NotStarted>(*status).error;
    failure = failure_to_start(spec.name, error);
    if (failure.cause == Cause::agent_missing) failure = not_found(spec);
    // The kernel gives one and the same error for a script and for what its first line names.
    if (error == ENOENT) {
      failure.message +=
          " If it is installed, the interpreter that the first line of its script names is "
          "missing.";
    }
  } else if (const auto* over = std::get_if<OverLimit>(&*status)) {
    return failure_over_limit(spec.name, *over);
  } else if (const auto* exited = std::get_if<Exited>(&*status)) {
    failure.message = fmt::format("{} exited with code {}.", spec.name, exited->code);
  } else if (const auto* signaled = std::get_if<Signaled>(&*status)) {
    failure.message = fmt::format("{} was ended by signal {}.", spec.name, signaled->number);
  } else {
    failure.message = fmt::format("{} ended in an unknown way.", spec.name);
  }
  if (status) {
    const std::string hint = missing_program_hint(*status, error_tail);
    if (!hint.empty()) failure.message.append(" ").append(hint);
  }
  return failure;
}

Failure for_run(Failure failure) {
  if (failure.cause == Cause::agent_missing) failure.code = "agent_missing";
  return failure;
}

Failure with_login_hint(Failure failure, const AgentSpec& spec) {
  if (failure.cause == Cause::login && !spec.login_hint.empty()) failure.message = spec.login_hint;
  return failure;
}

Failure not_found(const AgentSpec& spec) {
  return {.kind = Errc::unavailable,
          .code = "agent_not_found",
          .message = spec.install_hint.empty()
                         ? fmt::format("The program of the agent {} is not there.", spec.name)
                         : spec.install_hint,
          .cause = Cause::agent_missing};
}

Failure system_mode_not_supported(const AgentSpec& spec) {
  return {.kind = Errc::invalid,
          .code = "system_mode_not_supported",
          .message = fmt::format("The system prompt of the agent {} cannot be replaced: use the "
                                 "system_mode append.",
                                 spec.name)};
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
