#include "config/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/json_text.h"
#include "config/config_file.h"
#include "config/config_flags.h"
#include "config/config_keys.h"
#include "config/config_render.h"
#include "config/text/config_text.h"

namespace clawdforge {
namespace {

constexpr std::string_view kPrefix = "CLAWDFORGE_";
constexpr std::string_view kFileVariable = "CLAWDFORGE_CONFIG";
constexpr std::string_view kOldRangesVariable = "ALLOW_CIDRS";
constexpr std::int64_t kDefaultTimeoutSecs = 120;
constexpr std::int64_t kRunsPerCore = 2;

// One loading: the sources are taken from the weakest to the strongest, and each value is
// checked, also one that a stronger source replaces.
class Loading {
 public:
  explicit Loading(ConfigSources sources) : sources_(std::move(sources)) {}

  Result<Config> run(std::optional<std::string_view> file_text);

 private:
  std::string variable(std::string_view name) const;
  Result<void> find_origin();
  Result<void> take(const KeyRow& row, std::string_view text, std::string_view where,
                    std::string source);
  Result<void> take_defaults();
  Result<void> take_file(std::string_view text, std::string_view name);
  Result<void> take_named_file(const Flags& flags);
  Result<void> take_environment();
  Result<void> take_admin_token();
  void warn_of_unknown_variables();
  Result<void> finish_paths();
  void finish_numbers();
  Result<void> check_pairs() const;
  bool is_set(std::string_view key) const { return set_by_.contains(key); }
  std::string set_by(std::string_view key) const;

  ConfigSources sources_;
  PathOrigin origin_;
  Config config_;
  std::map<std::string_view, std::string> set_by_;  // key: source
  std::string tables_source_;
};

// An empty variable is an unset one.
std::string Loading::variable(std::string_view name) const {
  const auto found = sources_.environment.find(std::string(name));
  return found == sources_.environment.end() ? std::string() : found->second;
}

Result<void> Loading::find_origin() {
  origin_.working_dir = sources_.working_dir;
  if (origin_.working_dir.empty()) {
    std::error_code error;
    origin_.working_dir = std::filesystem::current_path(error).string();
    if (error) {
      return refuse_config(fmt::format("The working directory is gone: {}.", error.message()));
    }
  }
  origin_.home = variable("HOME");
  return {};
}

Result<void> Loading::take(const KeyRow& row, std::string_view text, std::string_view where,
                           std::string source) {
  const std::string fault = row.set(row, text, origin_, config_);
  if (!fault.empty()) {
    const bool is_secret = row.kind == KeyKind::secret;
    return refuse_config(fmt::format(
        "{} is {}: {}", where, is_secret ? "refused" : in_quotes(mask_passwords(text)), fault));
  }
  set_by_[row.name] = std::move(source);
  return {};
}

Result<void> Loading::take_defaults() {
  for (const KeyRow& row : key_rows()) {
    if (!row.default_is_value) continue;
    auto taken = take(row, row.default_text, row.name, "default");
    if (!taken) return taken;
  }
  set_by_.clear();
  return {};
}

Result<void> Loading::take_file(std::string_view text, std::string_view name) {
  auto content = parse_config_file(text, name);
  if (!content) return std::unexpected(content.error());
  for (const FileValue& value : content->values) {
    auto taken = take(*value.row, value.text,
                      fmt::format("{} in {}, line {},", value.row->name, name, value.line),
                      fmt::format("file {}, line {}", name, value.line));
    if (!taken) return taken;
  }
  config_.agents = std::move(content->agents);
  config_.defaults = std::move(content->defaults);
  config_.mcp_servers = std::move(content->mcp_servers);
  for (auto& [table, workspace] : content->workspaces) {
    auto path = parse_path(workspace.path, origin_);
    if (!path) {
      return refuse_config(
          fmt::format("workspaces.{}.path in {} is wrong: {}", table, name, path.error()));
    }
    workspace.path = std::move(*path);
  }
  config_.workspaces = std::move(content->workspaces);
  tables_source_ = fmt::format("file {}", name);
  return {};
}

Result<void> Loading::take_named_file(const Flags& flags) {
  const std::string path = flags.file.empty() ? variable(kFileVariable) : flags.file;
  if (path.empty()) return {};
  auto text = read_config_file(path);
  if (!text) return std::unexpected(text.error());
  return take_file(*text, path);
}

Result<void> Loading::take_environment() {
  for (const KeyRow& row : key_rows()) {
    if (row.kind == KeyKind::secret) continue;
    std::string name = environment_name(row.name);
    if (row.name == "allow_cidrs" && variable(name).empty()) name = kOldRangesVariable;
    const std::string text = variable(name);
    if (text.empty()) continue;
    auto taken = take(row, text, name, fmt::format("environment {}", name));
    if (!taken) return taken;
  }
  return take_admin_token();
}

Result<void> Loading::take_admin_token() {
  const KeyRow& row = *find_key("admin_token");
  const std::string name = environment_name(row.name);
  // `serve` takes the token out of the environment first; other commands leave it there.
  if (sources_.admin_token.empty()) sources_.admin_token = Secret(variable(name));
  if (sources_.admin_token.empty()) return {};
  return take(row, sources_.admin_token.reveal(), name, fmt::format("environment {}", name));
}

void Loading::warn_of_unknown_variables() {
  // Of the clients, which may share our environment; and the file's own name.
  std::vector<std::string> known = {"CLAWDFORGE_URL", "CLAWDFORGE_TOKEN", "CLAWDFORGE_MCP_LOG",
                                    std::string(kFileVariable)};
  for (const KeyRow& row : key_rows()) known.push_back(environment_name(row.name));
  for (const auto& [name, value] : sources_.environment) {
    if (!name.starts_with(kPrefix) || std::ranges::find(known, name) != known.end()) continue;
    std::string warning;
    append_printable(warning, fmt::format("{} is not a known variable and is ignored{}",
                                          shortened(name), did_you_mean(name, known, kPrefix)));
    config_.warnings.push_back(std::move(warning));
  }
}

Result<void> Loading::finish_paths() {
  const auto use = [this](std::string_view key, const std::string& text) {
    const KeyRow& row = *find_key(key);
    const std::string fault = row.set(row, text, origin_, config_);
    if (fault.empty()) return Result<void>();
    return Result<void>(
        refuse_config(fmt::format("The default of {} is {}: {}", key, in_quotes(text), fault)));
  };
  if (!is_set("data_dir")) {
    const std::string state = variable("XDG_STATE_HOME");
    if (!state.starts_with('/') && origin_.home.empty()) {
      return refuse_config(
          "There is no place for the data: set CLAWDFORGE_DATA_DIR, or HOME for its default.");
    }
    // A relative XDG_STATE_HOME does not count, says its specification.
    auto used = use("data_dir", state.starts_with('/') ? state + "/clawdforge"
                                                       : origin_.home + "/.local/state/clawdforge");
    if (!used) return used;
  }
  if (is_set("ledger")) return {};
  return use("ledger", fmt::format("sqlite:{}/clawdforge.db", config_.data_dir));
}

void Loading::finish_numbers() {
  if (!is_set("default_timeout_secs")) {
    config_.default_timeout =
        std::min(std::chrono::seconds(kDefaultTimeoutSecs), config_.max_timeout);
  }
  if (!is_set("max_runs")) {
    const std::int64_t cores = std::max(sources_.cores, 1);
    config_.runs_max = std::min(cores * kRunsPerCore, find_key("max_runs")->max);
  }
  if (!is_set("max_agents")) config_.agents_max = config_.live_sessions_max;
  if (!is_set("journal_max_age_secs")) config_.journal_max_age = config_.session_hard_ttl;
  if (!is_set("log_format")) {
    config_.log_format = sources_.stderr_is_terminal ? LogFormat::text : LogFormat::json;
  }
}

std::string Loading::set_by(std::string_view key) const {
  const auto found = set_by_.find(key);
  return found == set_by_.end() ? "default" : found->second;
}

Result<void> Loading::check_pairs() const {
  if (config_.default_timeout > config_.max_timeout) {
    return refuse_config(fmt::format(
        "default_timeout_secs is {} ({}), but must not be above max_timeout_secs, which is {} "
        "({}).",
        config_.default_timeout.count(), set_by("default_timeout_secs"),
        config_.max_timeout.count(), set_by("max_timeout_secs")));
  }
  if (config_.tls_cert.empty() != config_.tls_key.empty()) {
    const bool has_cert = config_.tls_key.empty();
    return refuse_config(fmt::format(
        "{} is set ({}), but {} is not: TLS needs both.", has_cert ? "tls_cert" : "tls_key",
        set_by(has_cert ? "tls_cert" : "tls_key"), has_cert ? "tls_key" : "tls_cert"));
  }
  return {};
}

Result<Config> Loading::run(std::optional<std::string_view> file_text) {
  const auto flags = parse_flags(sources_.flags);
  if (!flags) return std::unexpected(flags.error());
  Result<void> done = find_origin();
  if (done) done = take_defaults();
  if (done) done = file_text ? take_file(*file_text, "the file") : take_named_file(*flags);
  if (done) done = take_environment();
  for (const FlagValue& value : flags->values) {
    const std::string flag = flag_name(value.row->name);
    if (done) done = take(*value.row, value.text, flag, fmt::format("flag {}", flag));
  }
  if (done) done = finish_paths();
  finish_numbers();
  if (done) done = check_pairs();
  if (!done) return std::unexpected(done.error());
  warn_of_unknown_variables();
  config_.lines = config_lines(config_, set_by_, tables_source_);
  return std::move(config_);
}

}  // namespace

Result<Config> load_config(ConfigSources sources) {
  return Loading(std::move(sources)).run(std::nullopt);
}

Result<Config> load_config_with_file_text(ConfigSources sources, std::string_view toml) {
  return Loading(std::move(sources)).run(toml);
}

}  // namespace clawdforge
