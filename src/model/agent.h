// An agent is a program that we drive: what it is called, how it is started, and who
// decides when it asks for permission. Plain records, no I/O.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace clawdforge {

enum class PermissionMode { approve_reads, approve_all, deny_all, ask };
// How a conversation is held with it.
enum class AgentProtocol { acp, acpx };
// How a single prompt is put to it. claude_print: `claude -p`, one result as JSON.
enum class OneShotProtocol { none, claude_print };

std::string_view name_of(PermissionMode mode);
std::optional<PermissionMode> permission_mode_from(std::string_view name);
std::string_view name_of(AgentProtocol protocol);

// What an agent is and can do, decided once where specs are made (config/agent_specs.cc). Its
// name decides nothing.
struct AgentSpec {
  std::string name;  // what callers call it
  AgentProtocol protocol = AgentProtocol::acp;
  std::vector<std::string> command;  // the program first; looked up in PATH
  OneShotProtocol one_shot_protocol = OneShotProtocol::none;
  std::vector<std::string> one_shot_command;  // likewise, without what the protocol adds

  std::vector<std::string> env;                    // names passed on from our environment
  std::map<std::string, std::string> default_env;  // where our environment has no value
  std::map<std::string, std::string> set_env;      // fixed values
  std::vector<std::string> temp_dir_env;           // beside TMPDIR

  std::optional<PermissionMode> permission_mode;
  std::string auth_method;              // to authenticate with; empty: it is logged in by itself
  bool takes_claude_options = false;    // in `_meta`, as the adapter for Claude does
  bool takes_system_prompt = false;     // likewise; else that goes in front of the first prompt
  bool applies_owner_settings = false;  // the owner's own settings of the agent count
  std::string version;                  // where it is known beforehand; else the agent tells it
  std::string install_hint;             // a sentence for the caller while it is absent
  std::string login_hint;               // likewise while nobody is logged in
};

// One line of GET /agents.
struct AgentListing {
  std::string name;
  AgentProtocol protocol = AgentProtocol::acp;
  bool is_present = false;
  std::string version;  // empty: not known
};

}  // namespace clawdforge
