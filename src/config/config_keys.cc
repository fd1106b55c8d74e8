#include "config/config_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <type_traits>

#include "base/json_text.h"
#include "config/text/config_text.h"
#include "model/policy_fields.h"

namespace clawdforge {
namespace {

constexpr std::int64_t kKiB = 1024;
constexpr std::int64_t kGiB = kKiB * kKiB * kKiB;
constexpr std::int64_t kTimeoutSecsMin = 5;
constexpr std::int64_t kQueuedJobsMax = 100'000;
constexpr std::int64_t kDaySecs = 86'400;
constexpr std::int64_t kTimeoutSecsMax = 7 * kDaySecs;
constexpr std::int64_t kRetentionSecsMax = 3'650 * kDaySecs;
constexpr std::int64_t kGraceMsMax = 600'000;
constexpr std::int64_t kRunsMax = 1'024;
constexpr std::int64_t kQueuedRunsMax = 100'000;
constexpr std::int64_t kSessionsMax = 10'000;
constexpr std::int64_t kConnectionsMax = 1'000'000;
constexpr std::int64_t kRateMax = 100'000'000;

constexpr std::string_view kNothing = "(none)";

struct Default {
  std::string_view text;
  bool is_value = true;
};

constexpr Default described(std::string_view text) { return {text, false}; }

template <auto Member>
using FieldOf = std::remove_cvref_t<decltype(std::declval<Config&>().*Member)>;

template <auto Member>
std::string set_number(const KeyRow& row, std::string_view text, const PathOrigin&,
                       Config& config) {
  const auto value = parse_integer(text);
  if (!value || *value < row.min || *value > row.max) return allowed_sentence(row);
  config.*Member = FieldOf<Member>(*value);
  return {};
}

template <auto Member>
std::string show_number(const Config& config) {
  const auto& field = config.*Member;
  if constexpr (requires { field.count(); }) {
    return fmt::to_string(field.count());
  } else if constexpr (requires { field.has_value(); }) {
    if (!field) return std::string(kNothing);
    if constexpr (requires { field->count(); }) {
      return fmt::to_string(field->count());
    } else {
      return fmt::to_string(*field);
    }
  } else {
    return fmt::to_string(field);
  }
}

template <auto Member>
constexpr KeyRow number(std::string_view name, Default fallback, std::int64_t min, std::int64_t max,
                        std::string_view help) {
  return {name, KeyKind::number,     fallback.text,       fallback.is_value, min, max, "",
          help, &set_number<Member>, &show_number<Member>};
}

template <class T>
std::string store(Parsed<T> parsed, T& field) {
  if (!parsed) return parsed.error();
  field = std::move(*parsed);
  return {};
}

template <auto Member, Parsed<std::string> (*Parse)(std::string_view, const PathOrigin&)>
std::string set_text(const KeyRow&, std::string_view text, const PathOrigin& origin,
                     Config& config) {
  return store(Parse(text, origin), config.*Member);
}

template <auto Member>
std::string show_text(const Config& config) {
  return (config.*Member).empty() ? std::string(kNothing)
                                  : toml_string(mask_passwords(config.*Member));
}

template <auto Member, Parsed<std::string> (*Parse)(std::string_view, const PathOrigin&)>
constexpr KeyRow text(std::string_view name, Default fallback, std::string_view allowed,
                      std::string_view help) {
  return {name, KeyKind::text, fallback.text, fallback.is_value,        0,
          0,    allowed,       help,          &set_text<Member, Parse>, &show_text<Member>};
}

std::string set_budgets(const KeyRow&, std::string_view text, const PathOrigin&, Config& config) {
  auto budgets = budgets_from_text(text);
  if (!budgets) return "it " + budgets.error() + ".";
  config.budgets = std::move(*budgets);
  return {};
}

std::string show_budgets(const Config& config) {
  return config.budgets.empty() ? std::string(kNothing) : toml_string(budgets_text(config.budgets));
}

Parsed<std::string> parse_plain(std::string_view text, const PathOrigin&) {
  return parse_text(text);
}

// An empty value takes away what a weaker source has set.
Parsed<std::string> parse_optional_path(std::string_view text, const PathOrigin& origin) {
  if (text.empty()) return std::string();
  return parse_path(text, origin);
}

template <auto Member, const auto& Choices>
std::string set_choice(const KeyRow&, std::string_view text, const PathOrigin&, Config& config) {
  return store(parse_choice(text, Choices), config.*Member);
}

template <auto Member, const auto& Choices>
std::string show_choice(const Config& config) {
  return toml_string(choice_name(config.*Member, Choices));
}

template <auto Member, const auto& Choices>
constexpr KeyRow choice(std::string_view name, Default fallback, std::string_view allowed,
                        std::string_view help) {
  return {name,
          KeyKind::text,
          fallback.text,
          fallback.is_value,
          0,
          0,
          allowed,
          help,
          &set_choice<Member, Choices>,
          &show_choice<Member, Choices>};
}

template <auto Member>
std::string set_ranges(const KeyRow&, std::string_view text, const PathOrigin&, Config& config) {
  return store(parse_ranges(text), config.*Member);
}

template <auto Member>
std::string show_ranges(const Config& config) {
  std::string list;
  for (const Cidr& range : config.*Member) {
    list += (list.empty() ? "" : ", ") + toml_string(range.text());
  }
  return "[" + list + "]";
}

template <auto Member>
constexpr KeyRow ranges(std::string_view name, Default fallback, std::string_view help) {
  return {name,
          KeyKind::list,
          fallback.text,
          fallback.is_value,
          0,
          0,
          "a list of address ranges like 10.0.0.0/8 or 2001:db8::/32.",
          help,
          &set_ranges<Member>,
          &show_ranges<Member>};
}

template <auto Member>
std::string set_flag(const KeyRow&, std::string_view text, const PathOrigin&, Config& config) {
  return store(parse_choice(text, kFlag), config.*Member);
}

template <auto Member>
std::string show_flag(const Config& config) {
  return std::string(choice_name(config.*Member, kFlag));
}

template <auto Member>
constexpr KeyRow flag(std::string_view name, Default fallback, std::string_view help) {
  return {name, KeyKind::flag,    fallback.text, fallback.is_value, 0,
          0,    "true or false.", help,          &set_flag<Member>, &show_flag<Member>};
}

std::string toml_list(const std::vector<std::string>& texts) {
  std::string list;
  for (const std::string& text : texts) list += (list.empty() ? "" : ", ") + toml_string(text);
  return "[" + list + "]";
}

std::string set_hosts(const KeyRow&, std::string_view text, const PathOrigin&, Config& config) {
  return store(parse_hosts(text), config.allow_hosts);
}

std::string set_origins(const KeyRow&, std::string_view text, const PathOrigin&, Config& config) {
  return store(parse_origins(text), config.allow_origins);
}

std::string show_origins(const Config& config) { return toml_list(config.allow_origins); }

std::string show_hosts(const Config& config) { return toml_list(config.allow_hosts); }

std::string set_jail_mode(const KeyRow&, std::string_view text, const PathOrigin&, Config& config) {
  config.jail = jail_mode_from(text);
  return config.jail ? "" : "it must be one of auto, off, files, full.";
}

std::string show_jail_mode(const Config& config) {
  return toml_string(name_of(config.jail.value_or(JailMode::automatic)));
}

template <auto Member>
std::string set_jail_paths(const KeyRow&, std::string_view text, const PathOrigin& origin,
                           Config& config) {
  return store(parse_jail_paths(text, origin), config.*Member);
}

template <auto Member>
std::string show_jail_paths(const Config& config) {
  return toml_list(config.*Member);
}

template <auto Member>
constexpr KeyRow jail_paths(std::string_view name, std::string_view help) {
  return {name,
          KeyKind::list,
          "empty",
          false,
          0,
          0,
          "a list of paths; not /, /proc or /dev.",
          help,
          &set_jail_paths<Member>,
          &show_jail_paths<Member>};
}

// A key that is a field of the policy of all agents. An empty value takes it back.
std::string set_bound(const KeyRow& row, std::string_view text, const PathOrigin&, Config& config) {
  boost::json::value value;
  if (row.kind == KeyKind::list && !text.empty()) {
    boost::json::array& list = value.emplace_array();
    for (const std::string_view part : split_list(text)) list.emplace_back(part);
  } else if (!text.empty()) {
    value = text;
  }
  const std::string wrong = find_policy_field(row.name)->set(config.bounds, value);
  return wrong.empty() ? "" : "it " + wrong + ".";
}

constexpr std::string_view kMemoryKey = "memory_max";
constexpr std::string_view kPidsKey = "pids_max";
constexpr std::string_view kCpuKey = "cpu_max_percent";
constexpr std::string_view kNetKey = "net";
constexpr std::string_view kNetAllowKey = "net_allow";

template <const std::string_view& Name>
std::string show_bound(const Config& config) {
  const boost::json::value value = find_policy_field(Name)->show(config.bounds);
  if (value.is_null()) return Name == kNetAllowKey ? "[]" : std::string(kNothing);
  const std::string text = boost::json::serialize(value);
  return Name == kMemoryKey ? toml_string(text) : text;
}

template <const std::string_view& Name>
constexpr KeyRow bound(KeyKind kind, std::string_view fallback, std::string_view allowed,
                       std::string_view help, std::int64_t min = 0, std::int64_t max = 0) {
  return {Name, kind, fallback, false, min, max, allowed, help, &set_bound, &show_bound<Name>};
}

std::string set_listen(const KeyRow&, std::string_view text, const PathOrigin&, Config& config) {
  return store(parse_listen(text), config.listen);
}

std::string show_listen(const Config& config) { return toml_string(listen_text(config.listen)); }

std::string set_admin_token(const KeyRow&, std::string_view text, const PathOrigin&,
                            Config& config) {
  std::string fault = admin_token_fault(text);
  if (fault.empty()) config.admin_token = Secret(std::string(text));
  return fault;
}

std::string show_admin_token(const Config& config) {
  return config.admin_token.empty() ? "(made at first start)" : "(set)";
}

constexpr KeyRow kRows[] = {
    {"listen", KeyKind::text, "127.0.0.1:8800", true, 0, 0,
     "an IP address and a port like 127.0.0.1:8800 or [::1]:8800.",
     "Address and port to listen on; port 0 takes any free one.", &set_listen, &show_listen},
    text<&Config::data_dir, parse_path>(
        "data_dir", described("$XDG_STATE_HOME/clawdforge, else ~/.local/state/clawdforge"),
        "a directory.", "Where everything is kept; made with mode 0700."),
    text<&Config::ledger, parse_ledger>("ledger", described("sqlite:<data_dir>/clawdforge.db"),
                                        "sqlite:PATH or postgresql://USER@HOST/DATABASE.",
                                        "The database of what survives a restart."),
    {"admin_token", KeyKind::secret, "made at first start", false, 0, 0,
     "20 to 1024 printable ASCII characters without spaces.",
     "The token of the admin paths; only as an environment variable.", &set_admin_token,
     &show_admin_token},
    ranges<&Config::allow_cidrs>("allow_cidrs", described("empty: loopback only"),
                                 "Address ranges that may call, besides loopback."),
    ranges<&Config::trusted_proxies>("trusted_proxies", described("empty"),
                                     "Proxies whose X-Forwarded-For is believed."),
    {"allow_hosts", KeyKind::list, "empty", false, 0, 0,
     "a list of host names like gateway.example, without ports.",
     "Host names by which paths that need no token may be asked for, beside addresses and "
     "localhost.",
     &set_hosts, &show_hosts},
    {"allow_origins", KeyKind::list, "empty", false, 0, 0,
     "a list of origins like https://app.example or http://localhost:5173.",
     "Origins of web pages that may call with an app's token and read the answers (CORS).",
     &set_origins, &show_origins},
    flag<&Config::metrics_without_token>("metrics_without_token", {"false"},
                                         "Whether /metrics is answered without the admin token."),
    text<&Config::tls_cert, parse_optional_path>("tls_cert", described("none: plain HTTP"),
                                                 "a file.", "Certificate chain in PEM form."),
    text<&Config::tls_key, parse_optional_path>("tls_key", described("none: plain HTTP"), "a file.",
                                                "Private key in PEM form."),
    text<&Config::claude_bin, parse_program>("claude_bin", {"claude"}, "a program.",
                                             "The claude program: a name in PATH or a path."),
    choice<&Config::claude_owner_settings, kSwitch>(
        "claude_owner_settings", {"off"}, "one of on, off.",
        "Whether the owner's own Claude settings, servers and memory apply to runs and sessions."),
    text<&Config::acpx_bin, parse_program>("acpx_bin", {"acpx"}, "a program.",
                                           "The acpx program: a name in PATH or a path."),
    text<&Config::default_model, parse_plain>("default_model", {"sonnet"}, "the name of a model.",
                                              "Model of a run that names none."),
    choice<&Config::event_format, kEventFormats>("event_format", {"acp"}, "one of acp, simple.",
                                                 "Shape of a turn's events by default."),
    choice<&Config::keep_prompts, kKeptPrompts>(
        "keep_prompts", {"sessions"}, "one of none, sessions, all.",
        "Prompts that are kept: of turns, in their first event; with all, those of runs too."),
    number<&Config::default_timeout>(
        "default_timeout_secs", described("120, or max_timeout_secs if that is less"),
        kTimeoutSecsMin, kTimeoutSecsMax, "Time of a run or turn that names none."),
    number<&Config::max_timeout>("max_timeout_secs", {"3600"}, kTimeoutSecsMin, kTimeoutSecsMax,
                                 "The longest time that a caller may ask for."),
    number<&Config::runs_max>("max_runs", described("2 per core"), 1, kRunsMax,
                              "Runs at the same time; the others wait."),
    number<&Config::runs_max_per_app>("max_runs_per_app", described("none"), 1, kRunsMax,
                                      "Runs of one app at the same time."),
    number<&Config::queued_runs_max>("max_queued_runs", {"64"}, 0, kQueuedRunsMax,
                                     "Runs that may wait; the next is refused."),
    number<&Config::live_sessions_max>("max_live_sessions", {"16"}, 1, kSessionsMax,
                                       "Open sessions, live or asleep."),
    number<&Config::sessions_max_per_app>(
        "max_sessions_per_app", described("three quarters of max_live_sessions, from 8 on"), 1,
        kSessionsMax, "Open sessions of one app."),
    number<&Config::agents_max>("max_agents", described("= max_live_sessions"), 1, kSessionsMax,
                                "Agent processes of sessions at the same time."),
    choice<&Config::warm, kWarm>("warm", {"auto"}, "one of auto, off.",
                                 "Whether agents whose table does not say it are started ahead."),
    number<&Config::agent_memory_max>(
        "agent_memory_max", described("half of the memory of the machine, or of its control group"),
        kKiB* kKiB, kKiB* kKiB* kGiB, "Bytes of memory that all agents' processes take together."),
    number<&Config::session_sleep>("session_sleep_secs", {"600"}, 0, kRetentionSecsMax,
                                   "Idle time after which a session's agent is ended; 0: never."),
    number<&Config::session_ttl>("session_ttl_secs", {"3600"}, 1, kRetentionSecsMax,
                                 "Idle time after which a session is closed."),
    number<&Config::session_hard_ttl>("session_hard_ttl_secs", {"86400"}, 1, kRetentionSecsMax,
                                      "Time after closing when a session is deleted."),
    number<&Config::queued_jobs_max_per_app>("max_queued_jobs_per_app", {"1000"}, 1, kQueuedJobsMax,
                                             "Jobs of one app that may wait."),
    number<&Config::job_ttl>("job_ttl_secs", {"86400"}, 1, kRetentionSecsMax,
                             "Time after its end when a job is deleted."),
    number<&Config::agent_start_timeout>("agent_start_timeout_secs", {"60"}, 1, kDaySecs,
                                         "Time for each step of a session agent's start."),
    number<&Config::first_sign_timeout>("first_sign_timeout_secs", {"180"}, 1, kDaySecs,
                                        "Time for an agent to say anything at all in a turn."),
    number<&Config::sweep_interval>("sweep_interval_secs", {"60"}, 1, kDaySecs,
                                    "Time between two sweeps."),
    number<&Config::body_bytes_max>("max_body_bytes", {"16777216"}, 64, kGiB,
                                    "Size of a request's body, uploads apart."),
    number<&Config::file_bytes_max>("max_file_bytes", {"104857600"}, 1, kKiB* kGiB,
                                    "Size of an uploaded file."),
    number<&Config::upload_bytes_max_per_app>("max_upload_bytes_per_app", {"1073741824"}, 1,
                                              kKiB* kGiB, "Size of one app's uploads together."),
    number<&Config::journal_bytes_max_per_app>(
        "max_journal_bytes_per_app", {"4294967296"}, 1024, kKiB* kGiB,
        "Events and rows kept of one app's sessions, open and closed."),
    number<&Config::idempotency_age_max>("idempotency_secs", {"86400"}, 1, kRetentionSecsMax,
                                         "How long the answer to an idempotency key is kept."),
    number<&Config::keys_max_per_app>("max_keys_per_app", {"100000"}, 1, kKiB* kGiB,
                                      "Idempotency keys kept of one app."),
    number<&Config::key_bytes_max_per_app>("max_key_bytes_per_app", {"268435456"}, 1, kKiB* kGiB,
                                           "Answers kept for one app's idempotency keys."),
    {"budgets", KeyKind::text, "", true, 0, 0, "budgets such as day:usd:5,total:asks:1000",
     "What all apps together may use: window:unit:limit, with commas.", &set_budgets,
     &show_budgets},
    number<&Config::estimate_microusd_min>("estimate_min_microusd", {"10000"}, 0, kKiB* kGiB,
                                           "Millionths of a dollar that an ask reserves at least."),
    number<&Config::estimate_tokens_min>("estimate_min_tokens", {"1000"}, 0, kKiB* kGiB,
                                         "Tokens that an ask reserves at least."),
    number<&Config::estimate_agent_seconds_min>("estimate_min_agent_secs", {"5"}, 0, kGiB,
                                                "Seconds that an ask reserves at least."),
    number<&Config::free_disk_bytes_min>("min_free_disk_bytes", {"268435456"}, 0, kKiB* kGiB,
                                         "Free space below which no upload is taken."),
    number<&Config::connections_max>("max_connections", {"10000"}, 1, kConnectionsMax,
                                     "Connections at the same time."),
    number<&Config::connections_max_per_app>(
        "max_connections_per_app", described("three quarters of max_connections, from 8 on"), 1,
        kConnectionsMax, "Connections of one app at the same time."),
    number<&Config::event_streams_max_per_app>(
        "max_event_streams_per_app", described("= max_connections_per_app"), 1, kConnectionsMax,
        "Streams of events of one app at the same time."),
    number<&Config::connections_max_per_address>(
        "max_connections_per_address", described("a quarter of max_connections, from 8 on"), 1,
        kConnectionsMax, "Connections of one address; loopback and proxies have no limit."),
    number<&Config::app_requests_max>("max_requests_per_sec_per_app", {"5000"}, 1, kRateMax,
                                      "Requests of one app in a second."),
    number<&Config::app_bytes_max>("max_bytes_per_sec_per_app", {"134217728"}, kKiB, kKiB* kGiB,
                                   "Bytes of request bodies of one app in a second."),
    number<&Config::address_requests_max>(
        "max_requests_per_sec_per_address", {"5000"}, 1, kRateMax,
        "Requests from one address in a second; 20 times as many from loopback and proxies."),
    number<&Config::address_bytes_max>(
        "max_bytes_per_sec_per_address", {"134217728"}, kKiB, kKiB* kGiB,
        "Bytes of request bodies from one address in a second; 20 times as many likewise."),
    number<&Config::memory_bytes_max>(
        "memory_budget_bytes", {"67108864"}, kKiB* kKiB, kKiB* kGiB,
        "Request bodies, unsent answers and half lines of agents in memory."),
    number<&Config::memory_bytes_max_per_app>(
        "memory_budget_bytes_per_app", described("a quarter of memory_budget_bytes"), kKiB,
        kKiB* kGiB, "The same of one app; one large thing may bring it to half of the whole."),
    number<&Config::cancel_grace>("cancel_grace_ms", {"2000"}, 0, kGraceMsMax,
                                  "Time for an agent to acknowledge a cancel."),
    number<&Config::kill_grace>("kill_grace_ms", {"2000"}, 0, kGraceMsMax,
                                "Time between SIGTERM and SIGKILL."),
    choice<&Config::pid_namespace, kPidNamespaces>(
        "pid_namespace", {"auto"}, "one of auto, on, off.",
        "Whether each agent gets a PID namespace of its own; auto: where the kernel allows it."),
    {"jail", KeyKind::text, "auto", false, 0, 0, "one of auto, off, files, full.",
     "How agents are kept from what is not their own; auto: as well as the system allows.",
     &set_jail_mode, &show_jail_mode},
    jail_paths<&Config::jail_read>("jail_read", "What jailed agents can read beside their own."),
    jail_paths<&Config::jail_write>("jail_write", "What jailed agents can write beside their own."),
    bound<kMemoryKey>(KeyKind::text, "none", "a number of bytes from 16MiB on, such as 3GiB.",
                      "Memory of one agent with all that it starts."),
    bound<kPidsKey>(KeyKind::number, "none", "", "Processes of one agent, itself included.", 8,
                    4'000'000),
    bound<kCpuKey>(KeyKind::number, "none", "",
                   "Processor time of one agent; 200: of two processors. Needs control groups.", 1,
                   100'000),
    bound<kNetKey>(KeyKind::text, "open", "one of open, proxy, none.",
                   "Which network agents have; proxy: what net_allow names."),
    bound<kNetAllowKey>(KeyKind::list, "api.anthropic.com:443",
                        "a list of targets like api.example.org:443.",
                        "What agents reach where net is proxy."),
    flag<&Config::allow_root>(
        "allow_root", {"false"},
        "Whether the gateway may run as root without a warning; --allow-root alone means true."),
    number<&Config::drain_grace>("drain_grace_secs", {"30"}, 0, kDaySecs,
                                 "Time for running work to end at shutdown."),
    number<&Config::permission_timeout>("permission_timeout_secs", {"120"}, 1, kDaySecs,
                                        "Time to answer a permission question."),
    choice<&Config::permission_mode, kPermissionModes>(
        "permission_mode", {"approve_reads"}, "one of approve_reads, approve_all, deny_all, ask.",
        "How permission questions are answered by default."),
    number<&Config::journal_max_age>("journal_max_age_secs", described("= session_hard_ttl_secs"),
                                     1, kRetentionSecsMax, "Age at which events are removed."),
    number<&Config::journal_bytes_max_per_session>("journal_max_bytes_per_session", {"268435456"},
                                                   kKiB, kKiB* kGiB, "Events kept of one session."),
    number<&Config::webhook_timeout>("webhook_timeout_secs", {"10"}, 1, 60,
                                     "Time for a webhook to answer."),
    number<&Config::webhook_pause_max>("webhook_max_pause_secs", {"3600"}, 1, kDaySecs,
                                       "Longest pause between two attempts at a delivery."),
    number<&Config::webhook_give_up>("webhook_give_up_secs", {"86400"}, 1, kRetentionSecsMax,
                                     "Age from which a failing delivery is dead."),
    number<&Config::delivery_ttl>("delivery_ttl_secs", {"259200"}, 1, kRetentionSecsMax,
                                  "Age from which ended deliveries are removed."),
    number<&Config::audit_max_age>("audit_max_age_secs", described("kept for ever"), 1,
                                   kRetentionSecsMax,
                                   "Age at which runs and lines of the audit are removed."),
    number<&Config::reader_buffer_bytes>("reader_buffer_bytes", {"1048576"}, kKiB, kGiB,
                                         "What a slow reader of a stream may lag behind."),
    choice<&Config::log_level, kLogLevels>("log_level", {"info"},
                                           "one of debug, info, warn, error.",
                                           "The least important lines that are logged."),
    choice<&Config::log_format, kLogFormats>("log_format",
                                             described("text on a terminal, else json"),
                                             "one of text, json.", "Form of the log on stderr."),
};

char changed_case(char c, char from, char to) {
  return c >= from && c <= from + 25 ? static_cast<char>(c - from + to) : c;
}

}  // namespace

std::span<const KeyRow> key_rows() { return kRows; }

const KeyRow* find_key(std::string_view name) {
  const auto* row = std::ranges::find(kRows, name, &KeyRow::name);
  return row == std::end(kRows) ? nullptr : row;
}

std::string environment_name(std::string_view key) {
  std::string name = "CLAWDFORGE_";
  for (const char c : key) name += changed_case(c, 'a', 'A');
  return name;
}

std::string flag_name(std::string_view key) {
  std::string name = "--";
  for (const char c : key) name += c == '_' ? '-' : c;
  return name;
}

std::string allowed_sentence(const KeyRow& row) {
  if (row.kind != KeyKind::number) return fmt::format("it must be {}", row.allowed);
  return fmt::format("it must be a whole number from {} to {}.", row.min, row.max);
}

std::string toml_string(std::string_view text) {
  std::string out;
  append_json_string(out, text);  // each of its escapes means the same in TOML
  return out;
}

std::vector<ConfigKey> config_keys() {
  std::vector<ConfigKey> keys;
  for (const KeyRow& row : kRows) {
    std::string allowed = row.kind == KeyKind::number
                              ? fmt::format("{} to {}", row.min, row.max)
                              : std::string(row.allowed.substr(0, row.allowed.size() - 1));
    keys.push_back(
        {row.name, row.default_text, std::move(allowed), row.help, row.kind == KeyKind::secret});
  }
  return keys;
}

}  // namespace clawdforge
