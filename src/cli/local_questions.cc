#include "cli/local_questions.h"

#include "cli/commands/agent_question.h"
#include "cli/core/invocation.h"

namespace clawdforge {
namespace {

// As if it were called with --data-dir, which means the gateway of this machine.
Asked<Invocation> invocation_here(const FindLocalGateway& find_local, const std::string& data_dir) {
  static const Command kCommand{.name = "doctor"};
  Invocation invocation;
  invocation.command = &kCommand;
  auto arguments = parse_arguments(kCommand, std::vector<std::string>{"--data-dir", data_dir});
  if (!arguments) return std::unexpected(arguments.error());
  invocation.arguments = std::move(*arguments);
  invocation.find_local = find_local;
  return invocation;
}

std::unexpected<Failure> failed(const Complaint& complaint) {
  return fail(Errc::unavailable, "unreachable", complaint.sentence);
}

}  // namespace

Result<std::string> get_as_admin(const FindLocalGateway& find_local, const std::string& data_dir,
                                 const std::string& target) {
  const auto invocation = invocation_here(find_local, data_dir);
  if (!invocation) return failed(invocation.error());
  const auto answer = ask(*invocation, TokenKind::admin, "GET", target);
  if (!answer) return failed(answer.error());
  return answer->raw.body;
}

Result<std::string> ask_agent_here(const FindLocalGateway& find_local, const std::string& data_dir,
                                   const std::string& agent) {
  const auto invocation = invocation_here(find_local, data_dir);
  if (!invocation) return failed(invocation.error());
  const auto answer = ask_agent(*invocation, agent);
  if (!answer) return failed(answer.error());
  return *answer;
}

}  // namespace clawdforge
