#include "agent/claude/cli_failure.h"

#include <fmt/format.h>

#include "agent/claude/cli_result.h"
#include "agent/failure/agent_failure.h"
#include "agent/failure/missing_program.h"

namespace clawdforge {

Failure failure_of(const AgentSpec& spec, const SilentEnd& end) {
  const std::string& agent = spec.name;
  if (std::holds_alternative<NotStarted>(end.status)) {
    return for_run(failure_of_end(spec, end.status, {}));
  }
  if (const auto* over = std::get_if<OverLimit>(&end.status)) {
    return failure_over_limit(agent, *over);
  }
  Failure failure{.kind = Errc::agent_failed, .cause = Cause::agent_exited};
  if (const auto* exited = std::get_if<Exited>(&end.status)) {
    failure.code = exited->code != 0 ? "agent_exit"
                   : end.has_output  ? "agent_nonsense"
                                     : "agent_silent";
    failure.message = fmt::format("{} exit {}", agent, exited->code);
    const std::string hint = missing_program_hint(end.status, end.error_tail);
    if (!hint.empty()) failure.message.append(": ").append(hint);
  } else if (const auto* signaled = std::get_if<Signaled>(&end.status)) {
    failure.code = "agent_signal";
    failure.message = fmt::format("{} signal {}", agent, signaled->number);
  } else {
    failure.code = "agent_lost";
    failure.message = fmt::format("{} ended in an unknown way", agent);
  }
  if (end.is_too_large) {
    failure.code = "agent_output_too_large";
    failure.message = fmt::format("{} printed more than {} MiB without a result", agent,
                                  kResultBytesMax / (1024 * 1024));
  }
  // Over ten million bytes the command line refuses the prompt on its standard error alone.
  if (end.error_tail.contains("piped stdin input exceeds")) {
    failure.kind = Errc::too_large;
    failure.code = "prompt_too_long";
    failure.cause = Cause::agent_said_so;
  }
  return failure;
}

}  // namespace clawdforge
