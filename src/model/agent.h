// An agent is a program that we drive: what it is called, how it is started, and who
// decides when it asks for permission. Plain records, no I/O.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace clawdforge {

// From the strictest to the one that allows most: see exceeds().
enum class PermissionMode { deny_all, approve_reads, ask, approve_all };
// How a conversation is held with it.
enum class AgentProtocol { acp, acpx };
// How a single prompt is put to it. claude_print: `claude -p`, one result as JSON.
enum class OneShotProtocol { none, claude_print };

std::string_view name_of(PermissionMode mode);
std::optional<PermissionMode> permission_mode_from(std::string_view name);
// Whether an agent may do more in `mode` than in `limit`.
bool exceeds(PermissionMode mode, PermissionMode limit);
std::string_view name_of(AgentProtocol protocol);

// What makes an agent keep to one permission mode. Empty: that we answer its questions is enough.
// In `env` and `arguments`, kTempDirMark stands for the session's temporary directory.
struct ModeSwitches {
  std::map<std::string, std::string> env;  // these win over all other variables
  std::vector<std::string> arguments;      // they follow the command
  std::string agent_mode;                  // what the agent calls its own mode; empty: its default
  std::map<std::string, std::string> files;  // made in the temporary directory: names and contents
};
inline constexpr std::string_view kTempDirMark = "{temp_dir}";

// What an agent is and can do, decided once where specs are made (config/agents/agent_specs.cc).
// Its name decides nothing.
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

  std::optional<PermissionMode> permission_mode;  // of who asks for none
  // The modes that it can be held to. For single prompts: with what follows the one-shot command.
  std::map<PermissionMode, ModeSwitches> modes;
  std::map<PermissionMode, std::vector<std::string>> one_shot_modes;
  std::string auth_method;              // to authenticate with; empty: it is logged in by itself
  bool takes_claude_options = false;    // in `_meta`, as the adapter for Claude does
  bool takes_system_prompt = false;     // likewise; else that goes in front of the first prompt
  bool takes_title = false;             // by session/set_title; else it asks its model for one
  bool applies_owner_settings = false;  // the owner's own settings of the agent count
  std::string version;                  // where it is known beforehand; else the agent tells it
  std::string install_hint;             // a sentence for the caller while it is absent
  std::string login_hint;               // likewise while its owner is not logged in
};

// One line of GET /agents.
struct AgentListing {
  std::string name;
  AgentProtocol protocol = AgentProtocol::acp;
  bool is_present = false;
  std::string version;  // empty: not known
};

}  // namespace clawdforge
