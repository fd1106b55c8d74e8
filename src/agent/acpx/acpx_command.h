// How the acpx command line is called: its arguments for each operation, and what it gets
// to read. Pure. What it does with them is measured by tests/real.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/core/session_agent.h"
#include "model/agent.h"
#include "process/host/host_wire.h"

namespace clawdforge {

// Before the id of its record: so that no other agent's session is taken for one.
inline constexpr std::string_view kAcpxIdPrefix = "acpx:";

// Who is called, for which conversation.
struct AcpxCall {
  std::string program;             // acpx
  std::vector<std::string> agent;  // AgentSpec::command: which agent it drives
  Conversation conversation;
};

// Each is a program for the host. `config` is a file for the MCP servers, which is written
// with the order; empty: there are none.
HostOrder acpx_new(const AcpxCall& call, const std::string& config);
// Finds what acpx_new() has made, or makes it again.
HostOrder acpx_ensure(const AcpxCall& call, const std::string& config);
HostOrder acpx_show(const AcpxCall& call);
HostOrder acpx_set(const AcpxCall& call, const std::string& option, const std::string& value);
// Each of `texts` is a block of its own.
HostOrder acpx_prompt(const AcpxCall& call, const std::string& config,
                      const std::vector<std::string_view>& texts);
HostOrder acpx_cancel(const AcpxCall& call);
HostOrder acpx_close(const AcpxCall& call);

}  // namespace clawdforge
