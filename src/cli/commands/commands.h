// The rows of the client's commands, one function for each noun. The dispatch joins them into the
// table; what a command does stands in the file of its noun.
#pragma once

#include <vector>

#include "cli/core/command.h"

namespace clawdforge {

std::vector<Command> run_commands();      // run, upload
std::vector<Command> agent_commands();    // agent list, check
std::vector<Command> usage_commands();    // usage
std::vector<Command> session_commands();  // session new, turn, get, list, events, …
std::vector<Command> work_commands();     // workspace list; session diff, archive, put, commit
std::vector<Command> job_commands();      // job add, list, get, wait, cancel
std::vector<Command> login_commands();    // login, logout, whoami
std::vector<Command> gateway_commands();  // agents, health, sweep
std::vector<Command> audit_commands();    // audit runs, sessions, events
std::vector<Command> token_commands();    // token mint, list, show, set, rotate, revoke

}  // namespace clawdforge
