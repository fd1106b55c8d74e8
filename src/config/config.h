// The effective configuration: flags over environment over a TOML file over defaults.
// The struct is plain; config.cc has one table with every key, its range and its
// default, and all sources go through that table. Loaded once, at start.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/net.h"
#include "base/result.h"
#include "base/secret.h"
#include "base/telemetry/log.h"
#include "model/agent.h"
#include "model/app.h"
#include "model/limits/budget.h"
#include "model/policy.h"
#include "model/workspace.h"
#include "process/tree/pid_namespace.h"

namespace clawdforge {

// [agents.NAME] in the file.
struct AgentTable {
  std::optional<AgentProtocol> protocol;       // none: that of the built-in agent, else acp
  std::vector<std::string> command;            // empty: that of the built-in agent
  std::vector<std::string> env;                // names passed on from our environment
  std::map<std::string, std::string> set_env;  // fixed values
  std::string model;                           // of who asks for none
  std::optional<PermissionMode> permission_mode;
  // The modes that the agent can be held to; none: the table does not say.
  std::optional<std::map<PermissionMode, ModeSwitches>> permission_modes;
  std::string auth_method;     // of the agent's own, to call at its start
  std::string login_dir;       // where its login is kept; empty: in the data directory
  std::optional<Warmth> warm;  // none: that of the built-in agent, else no spares
  Policy policy;               // what apps may ask of it
};

// [mcp_servers.NAME] in the file: a program, or an address.
struct McpServerTable {
  std::vector<std::string> command;
  std::vector<std::string> env;                // names passed on from our environment
  std::map<std::string, std::string> set_env;  // fixed values

  std::string url;
  std::string type = "http";                       // or "sse"
  std::map<std::string, std::string> headers;      // fixed values
  std::map<std::string, std::string> headers_env;  // the names of variables that have the values
};

struct ListenAddress {
  std::string host;  // an IP address, without brackets
  std::uint16_t port = 0;
};

struct Config {
  ListenAddress listen;
  std::string data_dir;
  std::string ledger;  // sqlite:PATH or postgresql://...
  Secret admin_token;  // empty: made at first start
  std::vector<Cidr> allow_cidrs;
  std::vector<Cidr> trusted_proxies;
  std::vector<std::string> allow_hosts;
  std::vector<std::string> allow_origins;
  bool metrics_without_token = false;
  std::string tls_cert;
  std::string tls_key;
  std::string claude_bin;
  bool claude_owner_settings = false;
  std::string acpx_bin;
  std::string default_model;
  EventFormat event_format = EventFormat::acp;
  KeptPrompts keep_prompts = KeptPrompts::sessions;
  std::chrono::seconds default_timeout{};
  std::chrono::seconds max_timeout{};
  std::int64_t runs_max = 0;
  std::optional<std::int64_t> runs_max_per_app;
  std::int64_t queued_runs_max = 0;
  std::int64_t live_sessions_max = 0;
  std::optional<std::int64_t> sessions_max_per_app;
  std::int64_t agents_max = 0;
  bool warm = true;                              // built-in agents have spares
  std::optional<std::int64_t> agent_memory_max;  // bytes; none: half of what there is
  std::chrono::seconds agent_start_timeout{};
  std::chrono::seconds first_sign_timeout{};
  std::chrono::seconds session_sleep{};  // 0: never
  std::chrono::seconds session_ttl{};
  std::chrono::seconds session_hard_ttl{};
  std::chrono::seconds sweep_interval{};
  std::int64_t body_bytes_max = 0;
  std::int64_t file_bytes_max = 0;
  std::int64_t upload_bytes_max_per_app = 0;
  std::int64_t journal_bytes_max_per_app = 0;
  std::int64_t queued_jobs_max_per_app = 0;
  std::chrono::seconds job_ttl{};
  std::chrono::seconds idempotency_age_max{};
  std::int64_t keys_max_per_app = 0;       // idempotency keys
  std::int64_t key_bytes_max_per_app = 0;  // of answers that are kept for them
  std::vector<Budget> budgets;             // of all apps together
  std::int64_t estimate_microusd_min = 0;  // of an ask, where its app has not asked before
  std::int64_t estimate_tokens_min = 0;
  std::int64_t estimate_agent_seconds_min = 0;
  std::int64_t free_disk_bytes_min = 0;
  std::int64_t connections_max = 0;
  std::optional<std::int64_t> connections_max_per_app;
  std::optional<std::int64_t> connections_max_per_address;
  std::optional<std::int64_t> event_streams_max_per_app;
  std::int64_t app_requests_max = 0;  // a second
  std::int64_t app_bytes_max = 0;     // likewise, and the next two
  std::int64_t address_requests_max = 0;
  std::int64_t address_bytes_max = 0;
  std::int64_t memory_bytes_max = 0;
  std::optional<std::int64_t> memory_bytes_max_per_app;
  std::chrono::milliseconds cancel_grace{};
  std::chrono::milliseconds kill_grace{};
  PidNamespace pid_namespace = PidNamespace::automatic;
  // Of all agents and apps. None: it is not said, so that an agent's table can say "off".
  std::optional<JailMode> jail;
  std::vector<std::string> jail_read;
  std::vector<std::string> jail_write;
  Policy bounds;  // limits and network of all agents, and nothing else of a policy
  bool allow_root = false;
  std::chrono::seconds drain_grace{};
  std::chrono::seconds permission_timeout{};
  PermissionMode permission_mode = PermissionMode::approve_reads;
  std::chrono::seconds journal_max_age{};
  std::int64_t journal_bytes_max_per_session = 0;
  std::optional<std::chrono::seconds> audit_max_age;
  std::chrono::seconds webhook_timeout{};
  std::chrono::seconds webhook_pause_max{};
  std::chrono::seconds webhook_give_up{};
  std::chrono::seconds delivery_ttl{};
  std::int64_t reader_buffer_bytes = 0;
  LogLevel log_level = LogLevel::info;
  LogFormat log_format = LogFormat::json;
  std::map<std::string, AgentTable> agents;
  Policy defaults;  // what apps may ask for: [defaults] in the file
  std::map<std::string, McpServerTable> mcp_servers;
  NamedWorkspaces workspaces;  // [workspaces.NAME] in the file

  // One line per key, secrets masked. The source begins with flag, environment, file or
  // default and may say more; the value is TOML, or a remark in parentheses.
  struct Line {
    std::string key;
    std::string value;
    std::string source;
  };
  std::vector<Line> lines;
  std::vector<std::string> warnings;  // unknown CLAWDFORGE_* variables
};

// What the process was given, apart so that tests can give something else.
struct ConfigSources {
  std::vector<std::string> flags;  // after the command: --max-runs 4 or --max-runs=4
  std::map<std::string, std::string> environment;  // without the admin token
  Secret admin_token;                              // taken out of the environment already
  bool stderr_is_terminal = false;
  int cores = 1;
  std::string working_dir;  // what relative paths start from; empty: the process's own
};

// Errc::invalid with one sentence that names the key, its source and what is allowed.
Result<Config> load_config(ConfigSources sources);

// For the fuzz target and the tests: the same, with the file's text instead of its path.
Result<Config> load_config_with_file_text(ConfigSources sources, std::string_view toml);

// What `clawdforge config` prints.
std::string render_config(const Config& config);
// The same for programs: {"keys":[{"key","value","source"}]}, values as TOML writes them.
std::string render_config_as_json(const Config& config);

// One row per key, for --help and for the check of docs/operations.md.
struct ConfigKey {
  std::string_view name;  // TOML key; CLAWDFORGE_<UPPER>; --<dashes>
  std::string_view default_text;
  std::string allowed;
  std::string_view help;
  bool environment_only = false;  // a secret: neither in the file nor in argv
};
std::vector<ConfigKey> config_keys();

}  // namespace clawdforge
