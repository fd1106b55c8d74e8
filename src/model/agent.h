// An agent is a program that we drive: what it is called, how it is started, and who
// decides when it asks for permission. Plain records, no I/O.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace clawdforge {

// From the strictest to the one that allows most: see exceeds().
// Whose prompts the ledger keeps.
enum class KeptPrompts { none, sessions, all };

enum class PermissionMode { deny_all, approve_reads, ask, approve_all };
// How a conversation is held with it.
// acp: the Agent Client Protocol; acpx: that, through the command line acpx; claude: stream-json of
// Claude's command line.
enum class AgentProtocol { acp, acpx, claude };
// How a single prompt is put to it. claude_print: `claude -p`, one result as JSON.
enum class OneShotProtocol { none, claude_print };

std::string_view name_of(PermissionMode mode);
std::optional<PermissionMode> permission_mode_from(std::string_view name);
// Whether an agent may do more in `mode` than in `limit`.
bool exceeds(PermissionMode mode, PermissionMode limit);
std::string_view name_of(AgentProtocol protocol);

inline constexpr std::size_t kModelNameBytesMax = 200;
// Agents have their own names for their models, so the rule is loose: it may become an argument of
// a command line, where a dash in front would make it a flag.
bool is_model_name(std::string_view text);

// What makes an agent keep to one permission mode. Empty: that we answer its questions is enough.
// In `env` and `arguments`, kTempDirMark stands for the session's temporary directory.
struct ModeSwitches {
  std::map<std::string, std::string> env;  // these win over all other variables
  std::vector<std::string> arguments;      // they follow the command
  std::string agent_mode;                  // what the agent calls its own mode; empty: its default
  std::map<std::string, std::string> files;  // made in the temporary directory: names and contents
};
inline constexpr std::string_view kTempDirMark = "{temp_dir}";

// How its owner logs in to it, and what shows from outside that this was done. What a file or a
// variable holds is never looked at.
struct LoginSpec {
  bool is_needed = true;
  std::vector<std::string> command;  // the program's own login, on a terminal; empty: not known
  // The program's own word on it, which asks no model: exit code 0 means logged in. Empty: it has
  // none.
  std::vector<std::string> status_command;
  std::vector<std::string> keys;  // variables, each of which takes the place of a login
  std::string dir_variable;       // names the directory of `file`, if it is set
  std::string dir;                // else that is this one, below HOME
  std::string file;               // is there after a login; empty: not known
  // Is in the login's directory while a process renews the login: one that is killed then has lost
  // it for all. Empty: not known.
  std::string refresh_lock = {};
  // Names the directory of `file` apart from all else that `dir_variable` is for, so that an agent
  // can have a home of its own and this login. Empty: it cannot.
  std::string storage_variable = {};
  std::string storage_version_min = {};  // older programs do not know that variable
  // Variables with which the program asks another service, whose login is not ours to renew.
  std::vector<std::string> elsewhere = {};
};

// What is known of one of an agent's programs beforehand.
struct ProgramFacts {
  std::string package;        // that npm installs it from; empty: not known
  std::string tested_oldest;  // the versions that the tests were run with; empty: none
  std::string tested_newest;
};

// How many agents are started ahead, before it is known for whom.
struct Warmth {
  bool is_auto = false;    // as many as are used
  std::size_t spares = 0;  // else

  bool operator==(const Warmth&) const = default;
};
inline constexpr std::size_t kSparesMax = 64;
// None: it is not "auto", or not a number of spares.
std::optional<Warmth> warmth_from(std::string_view text);
std::optional<Warmth> warmth_from(std::int64_t spares);

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
  std::map<std::string, std::string> forced_env;   // these win over all of the above
  std::vector<std::string> temp_dir_env;           // beside TMPDIR

  std::string default_model;                      // of who asks for none; empty: the agent's own
  std::optional<PermissionMode> permission_mode;  // of who asks for none
  // The modes that it can be held to. For single prompts: with what follows the one-shot command.
  std::map<PermissionMode, ModeSwitches> modes;
  std::map<PermissionMode, std::vector<std::string>> one_shot_modes;
  std::string auth_method;              // to authenticate with; empty: it is logged in by itself
  std::string key_auth_method;          // the same where its login is a key in its environment
  bool takes_claude_options = false;    // in `_meta`, as the adapter for Claude does
  bool takes_system_prompt = false;     // likewise; else that goes in front of the first prompt
  bool takes_title = false;             // by session/set_title; else it asks its model for one
  bool applies_owner_settings = false;  // the owner's own settings of the agent count
  std::string version;                  // where it is known beforehand; else the agent tells it
  std::string install_hint;             // a sentence for the caller while it is absent
  std::string login_hint;               // likewise while its owner is not logged in
  LoginSpec login;
  ProgramFacts facts;           // of the program of `command`, or of acpx where that drives it
  ProgramFacts one_shot_facts;  // of that of `one_shot_command`
  // Another way to speak with it, where its program is older than `version_min`; null: there is
  // none.
  std::shared_ptr<const AgentSpec> fallback;
  std::string version_min;
  Warmth warm;
};

// One line of GET /agents.
struct AgentListing {
  std::string name;
  AgentProtocol protocol = AgentProtocol::acp;
  bool is_present = false;
  std::string version;                  // empty: not known
  std::size_t spares = 0;               // started ahead, and ready
  std::uint64_t memory_bytes = 0;       // of all its processes
  std::string default_model{};          // empty: the agent's own
  std::vector<std::string> models{};    // as it told them when it was last started
  std::vector<std::string> efforts{};   // likewise
  std::vector<PermissionMode> modes{};  // that its sessions can be held to
};

// What is known of an agent's login without asking its model. key, file: one is there; whether it
// is still good shows when the agent is asked.
enum class LoginState { not_needed, key, file, missing, unknown };
// How a program's version stands to those that the tests were run with.
enum class VersionTrial { tested, older, newer, unknown };

// What was found of one of an agent's programs.
struct ProgramReport {
  std::string use;      // "runs", "sessions" or both: "runs and sessions"
  std::string name;     // as the configuration has it
  std::string path;     // empty: it is not there
  std::string version;  // empty: not known
  VersionTrial trial = VersionTrial::unknown;
  ProgramFacts facts;
};

// What was found of an agent (agent/inventory).
struct AgentReport {
  std::string name;
  std::vector<ProgramReport> programs;
  LoginState login = LoginState::unknown;
  std::string login_place;  // the variable or the file that shows it, or would
  std::string
      kept_state;  // how a gateway that runs and keeps it says that it stands; empty: not known
  // The program's own login, with the variables that make it the login of the gateway's agents.
  std::vector<std::string> login_command;  // the program by its path; empty: not known
  std::map<std::string, std::string> login_environment;
};

std::string_view name_of(LoginState state);
std::string_view name_of(VersionTrial trial);

}  // namespace clawdforge
