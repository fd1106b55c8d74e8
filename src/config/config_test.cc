#include "config/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

namespace clawdforge {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kToken = "a-token-of-20-chars.";

// Nothing is configured, as on a fresh account.
ConfigSources nothing() {
  ConfigSources sources;
  sources.environment["HOME"] = "/home/cf";
  sources.cores = 3;
  sources.working_dir = "/srv/dir";
  return sources;
}

ConfigSources with_flags(std::vector<std::string> flags) {
  ConfigSources sources = nothing();
  sources.flags = std::move(flags);
  return sources;
}

ConfigSources with_variable(const std::string& name, const std::string& value) {
  ConfigSources sources = nothing();
  sources.environment[name] = value;
  return sources;
}

Config loaded(ConfigSources sources, std::string_view toml = "") {
  auto config = load_config_with_file_text(std::move(sources), toml);
  if (!config) throw std::runtime_error(config.error().message);
  return std::move(*config);
}

std::string refusal(ConfigSources sources, std::string_view toml = "") {
  const auto config = load_config_with_file_text(std::move(sources), toml);
  if (config) return "(taken)";
  EXPECT_EQ(config.error().kind, Errc::invalid);
  return config.error().message;
}

Config::Line line_of(const Config& config, std::string_view key) {
  for (const Config::Line& line : config.lines) {
    if (line.key == key) return line;
  }
  return {};
}

TEST(ConfigDefaults, AreThoseOfTheContract) {
  const Config config = loaded(nothing());
  EXPECT_EQ(config.listen.host, "127.0.0.1");
  EXPECT_EQ(config.listen.port, 8800);
  EXPECT_EQ(config.data_dir, "/home/cf/.local/state/clawdforge");
  EXPECT_EQ(config.ledger, "sqlite:/home/cf/.local/state/clawdforge/clawdforge.db");
  EXPECT_TRUE(config.admin_token.empty());
  EXPECT_TRUE(config.allow_cidrs.empty());
  EXPECT_TRUE(config.trusted_proxies.empty());
  EXPECT_EQ(config.claude_bin, "claude");
  EXPECT_EQ(config.acpx_bin, "acpx");
  EXPECT_EQ(config.default_model, "sonnet");
  EXPECT_EQ(config.event_format, EventFormat::acp);
  EXPECT_EQ(config.default_timeout, std::chrono::seconds(120));
  EXPECT_EQ(config.max_timeout, std::chrono::seconds(3600));
  EXPECT_EQ(config.runs_max, 6);
  EXPECT_EQ(config.runs_max_per_app, std::nullopt);
  EXPECT_EQ(config.queued_runs_max, 64);
  EXPECT_EQ(config.live_sessions_max, 16);
  EXPECT_EQ(config.sessions_max_per_app, std::nullopt);
  EXPECT_EQ(config.agents_max, 16);
  EXPECT_EQ(config.session_ttl, std::chrono::seconds(3600));
  EXPECT_EQ(config.session_hard_ttl, std::chrono::seconds(86400));
  EXPECT_EQ(config.sweep_interval, std::chrono::seconds(60));
  EXPECT_EQ(config.body_bytes_max, 16 * 1024 * 1024);
  EXPECT_EQ(config.file_bytes_max, 100 * 1024 * 1024);
  EXPECT_EQ(config.upload_bytes_max_per_app, 1024LL * 1024 * 1024);
  EXPECT_EQ(config.journal_bytes_max_per_app, 4LL * 1024 * 1024 * 1024);
  EXPECT_EQ(config.free_disk_bytes_min, 256 * 1024 * 1024);
  EXPECT_EQ(config.connections_max, 10'000);
  EXPECT_EQ(config.cancel_grace, std::chrono::milliseconds(2000));
  EXPECT_EQ(config.kill_grace, std::chrono::milliseconds(2000));
  EXPECT_EQ(config.drain_grace, std::chrono::seconds(30));
  EXPECT_EQ(config.permission_timeout, std::chrono::seconds(120));
  EXPECT_EQ(config.permission_mode, PermissionMode::approve_reads);
  EXPECT_EQ(config.journal_max_age, std::chrono::seconds(86400));
  EXPECT_EQ(config.journal_bytes_max_per_session, 256 * 1024 * 1024);
  EXPECT_EQ(config.reader_buffer_bytes, 1024 * 1024);
  EXPECT_EQ(config.log_level, LogLevel::info);
  EXPECT_EQ(config.log_format, LogFormat::json);
  EXPECT_TRUE(config.warnings.empty());
}

TEST(ConfigDefaults, FollowOtherKeys) {
  const Config config = loaded(with_flags({"--max-live-sessions=40", "--session-hard-ttl-secs=7",
                                           "--max-timeout-secs=60", "--data-dir=/d"}));
  EXPECT_EQ(config.agents_max, 40);
  EXPECT_EQ(config.journal_max_age, std::chrono::seconds(7));
  EXPECT_EQ(config.default_timeout, std::chrono::seconds(60));
  EXPECT_EQ(config.ledger, "sqlite:/d/clawdforge.db");
}

TEST(ConfigDefaults, LogAsTextOnATerminal) {
  ConfigSources sources = nothing();
  sources.stderr_is_terminal = true;
  EXPECT_EQ(loaded(std::move(sources)).log_format, LogFormat::text);
}

TEST(ConfigDataDir, PrefersAnAbsoluteXdgStateHome) {
  EXPECT_EQ(loaded(with_variable("XDG_STATE_HOME", "/state/")).data_dir, "/state/clawdforge");
  EXPECT_EQ(loaded(with_variable("XDG_STATE_HOME", "relative")).data_dir,
            "/home/cf/.local/state/clawdforge");
}

TEST(ConfigDataDir, NeedsAPlace) {
  ConfigSources homeless = nothing();
  homeless.environment.clear();
  EXPECT_EQ(refusal(std::move(homeless)),
            "There is no place for the data: set CLAWDFORGE_DATA_DIR, or HOME for its default.");
}

TEST(ConfigDataDir, IsMadeAbsolute) {
  EXPECT_EQ(loaded(with_flags({"--data-dir", "x/../y/"})).data_dir, "/srv/dir/y");
  EXPECT_EQ(loaded(with_flags({"--data-dir", "~/cf"})).data_dir, "/home/cf/cf");
  EXPECT_EQ(loaded(with_flags({"--data-dir", "/"})).data_dir, "/");
  EXPECT_THAT(refusal(with_flags({"--data-dir="})), HasSubstr("--data-dir is \"\": "));
}

TEST(ConfigPaths, OfProgramsStayNamesWithoutASlash) {
  EXPECT_EQ(loaded(with_flags({"--claude-bin", "my-claude"})).claude_bin, "my-claude");
  EXPECT_EQ(loaded(with_flags({"--claude-bin", "./claude"})).claude_bin, "/srv/dir/claude");
}

TEST(ConfigEnvironment, TakesTheOldNameOfTheRanges) {
  ConfigSources sources = with_variable("ALLOW_CIDRS", "10.0.0.0/8, 192.168.1.1,");
  const Config old = loaded(std::move(sources));
  ASSERT_EQ(old.allow_cidrs.size(), 2U);
  EXPECT_EQ(old.allow_cidrs[1].text(), "192.168.1.1/32");
  EXPECT_EQ(line_of(old, "allow_cidrs").source, "environment ALLOW_CIDRS");

  sources = with_variable("ALLOW_CIDRS", "10.0.0.0/8");
  sources.environment["CLAWDFORGE_ALLOW_CIDRS"] = "172.16.0.0/12";
  const Config both = loaded(std::move(sources));
  ASSERT_EQ(both.allow_cidrs.size(), 1U);
  EXPECT_EQ(both.allow_cidrs[0].text(), "172.16.0.0/12");
}

TEST(ConfigEnvironment, TakesAnEmptyVariableAsUnset) {
  const Config config = loaded(with_variable("CLAWDFORGE_MAX_RUNS", ""), "max_runs = 5");
  EXPECT_EQ(config.runs_max, 5);
}

TEST(ConfigEnvironment, WarnsOfUnknownVariablesButNotOfTheClients) {
  ConfigSources sources = with_variable("CLAWDFORGE_MAX_RUN", "4");
  sources.environment["CLAWDFORGE_FOO"] = "1";
  for (const char* name : {"CLAWDFORGE_URL", "CLAWDFORGE_TOKEN", "CLAWDFORGE_MCP_LOG", "CLAWD"}) {
    sources.environment[name] = "x";
  }
  const Config config = loaded(std::move(sources));
  ASSERT_EQ(config.warnings.size(), 2U);
  EXPECT_EQ(config.warnings[0], "CLAWDFORGE_FOO is not a known variable and is ignored.");
  EXPECT_EQ(config.warnings[1],
            "CLAWDFORGE_MAX_RUN is not a known variable and is ignored; did you mean "
            "CLAWDFORGE_MAX_RUNS?");
}

TEST(ConfigNumbers, AreRefusedWithKeySourceValueAndRange) {
  EXPECT_EQ(refusal(with_variable("CLAWDFORGE_MAX_RUNS", "0")),
            "CLAWDFORGE_MAX_RUNS is \"0\": it must be a whole number from 1 to 1024.");
  EXPECT_EQ(refusal(with_flags({"--max-runs", "4k"})),
            "--max-runs is \"4k\": it must be a whole number from 1 to 1024.");
  EXPECT_EQ(refusal(nothing(), "\n\nmax_runs = -1"),
            "max_runs in the file, line 3, is \"-1\": it must be a whole number from 1 to 1024.");
}

TEST(ConfigNumbers, ArePlainDecimals) {
  for (const char* text : {" 4", "4 ", "+4", "04", "0x4", "4.0", "1e2", "4KiB", "-", "--4",
                           "99999999999999999999", "-99999999999999999999"}) {
    EXPECT_THAT(refusal(with_variable("CLAWDFORGE_MAX_RUNS", text)),
                HasSubstr("must be a whole number"))
        << text;
  }
}

TEST(ConfigNumbers, AreCheckedAlsoWhereAStrongerSourceWins) {
  EXPECT_THAT(refusal(with_flags({"--max-runs=4"}), "max_runs = 0"),
              HasSubstr("max_runs in the file, line 1,"));
}

TEST(ConfigListen, TakesAddressAndPort) {
  const auto listen = [](const char* text) {
    return loaded(with_flags({"--listen", text})).listen;
  };
  EXPECT_EQ(listen("0.0.0.0:0").host, "0.0.0.0");
  EXPECT_EQ(listen("0.0.0.0:0").port, 0);
  EXPECT_EQ(listen("[::1]:65535").host, "::1");
  EXPECT_EQ(listen("[::1]:65535").port, 65535);
  EXPECT_EQ(listen("localhost:80").host, "127.0.0.1");
  EXPECT_EQ(line_of(loaded(with_flags({"--listen", "[::1]:1"})), "listen").value, "\"[::1]:1\"");
}

TEST(ConfigListen, RefusesNamesAndHalves) {
  for (const char* text : {"", "8800", ":8800", "example.org:80", "::1:80", "[::1]", "[1.2.3.4]:1",
                           "[localhost]:1", "1.2.3.4", "[]:1", "[fe80::1%lo]:1"}) {
    EXPECT_THAT(refusal(with_flags({"--listen", text})), HasSubstr("it must be an IP address"))
        << text;
  }
  for (const char* text : {"1.2.3.4:", "1.2.3.4:65536", "1.2.3.4:-1", "1.2.3.4:080", "1.2.3.4:x"}) {
    EXPECT_THAT(refusal(with_flags({"--listen", text})), HasSubstr("its port must be")) << text;
  }
}

TEST(ConfigRanges, AreListsInEverySource) {
  for (const char* toml :
       {R"(allow_cidrs = ["10.0.0.0/8", "::1"])", R"(allow_cidrs = "10.0.0.0/8, ::1")"}) {
    const Config config = loaded(nothing(), toml);
    ASSERT_EQ(config.allow_cidrs.size(), 2U);
    EXPECT_EQ(config.allow_cidrs[1].text(), "::1/128");
  }
  EXPECT_TRUE(loaded(with_flags({"--allow-cidrs="}), R"(allow_cidrs = ["10.0.0.0/8"])")
                  .allow_cidrs.empty());
  EXPECT_THAT(refusal(with_flags({"--trusted-proxies", "10.0.0.1/8"})),
              HasSubstr("did you mean 10.0.0.0/8?"));
  EXPECT_THAT(refusal(nothing(), "allow_cidrs = [1]"), HasSubstr("a list of address ranges"));
  EXPECT_THAT(refusal(nothing(), R"(allow_cidrs = ["10.0.0.0/8,11.0.0.0/8"])"),
              HasSubstr("a list of address ranges"));
}

TEST(ConfigLedger, IsSqliteOrPostgres) {
  EXPECT_EQ(loaded(with_flags({"--ledger", "sqlite:x.db"})).ledger, "sqlite:/srv/dir/x.db");
  EXPECT_EQ(loaded(with_flags({"--ledger", "postgresql://h/d"})).ledger, "postgresql://h/d");
  EXPECT_EQ(loaded(with_flags({"--ledger", "postgres://h/d"})).ledger, "postgres://h/d");
  for (const char* text : {"x.db", "sqlite:", "sqlite::memory:", "mysql://h/d", "Sqlite:x"}) {
    EXPECT_THAT(refusal(with_flags({"--ledger", text})), HasSubstr("--ledger is \"")) << text;
  }
}

TEST(ConfigLedger, NeverShowsItsPassword) {
  for (const char* text :
       {"postgresql://me:hunter2@h/d", "postgres://me:hunter2@x/hunter2@h/d",
        "postgresql://h/d?password=hunter2&x=1", "postgres://h/d?sslPassword=hunter2",
        "postgres://h/d?passw%6Frd=hunter2"}) {
    const std::string shown = render_config(loaded(with_flags({"--ledger", text})));
    EXPECT_THAT(shown, Not(HasSubstr("hunter2"))) << text;
    EXPECT_THAT(shown, HasSubstr("***")) << text;
  }
  for (const char* text : {"mysql://me:hunter2@h/d", "host=h password=hunter2"}) {
    const std::string sentence = refusal(with_flags({"--ledger", text}));
    EXPECT_THAT(sentence, Not(HasSubstr("hunter2"))) << text;
  }
}

TEST(ConfigAdminToken, ComesOnlyFromTheEnvironment) {
  ConfigSources sources = nothing();
  sources.admin_token = Secret(std::string(kToken));
  const Config config = loaded(std::move(sources));
  EXPECT_EQ(config.admin_token.reveal(), kToken);
  EXPECT_EQ(line_of(config, "admin_token").value, "(set)");
  EXPECT_THAT(render_config(config), Not(HasSubstr(kToken)));
  EXPECT_EQ(line_of(loaded(nothing()), "admin_token").value, "(made at first start)");

  for (const std::string& sentence :
       {refusal(nothing(), "admin_token = \"a-token-of-20-chars.\""),
        refusal(with_flags({"--admin-token", kToken})),
        refusal(with_flags({"--admin-token=a-token-of-20-chars."}))}) {
    EXPECT_THAT(sentence, HasSubstr("CLAWDFORGE_ADMIN_TOKEN"));
    EXPECT_THAT(sentence, Not(HasSubstr(kToken)));
  }
}

TEST(ConfigAdminToken, MustBeLongAndPrintableAndIsNotShown) {
  for (const char* text : {"nineteen-characters", "twenty characters!!!!", "twenty-characters\n!!!",
                           "zw\xc3\xb6lf-zw\xc3\xb6lf-zw\xc3\xb6lf"}) {
    ConfigSources sources = nothing();
    sources.admin_token = Secret(std::string(text));
    EXPECT_EQ(refusal(std::move(sources)),
              "CLAWDFORGE_ADMIN_TOKEN is refused: it must have 20 to 1024 printable ASCII "
              "characters and no spaces.");
  }
}

TEST(ConfigChoices, AreRefusedWithTheirList) {
  EXPECT_EQ(refusal(with_flags({"--log-level", "INFO"})),
            "--log-level is \"INFO\": it must be one of debug, info, warn, error.");
  EXPECT_EQ(loaded(with_flags({"--permission-mode=ask"})).permission_mode, PermissionMode::ask);
  EXPECT_EQ(loaded(with_flags({"--event-format=simple"})).event_format, EventFormat::simple);
}

TEST(ConfigPairs, AreCheckedTogether) {
  EXPECT_EQ(refusal(with_variable("CLAWDFORGE_DEFAULT_TIMEOUT_SECS", "7200")),
            "default_timeout_secs is 7200 (environment CLAWDFORGE_DEFAULT_TIMEOUT_SECS), but must "
            "not be above max_timeout_secs, which is 3600 (default).");
  EXPECT_EQ(refusal(with_flags({"--tls-cert", "c.pem"})),
            "tls_cert is set (flag --tls-cert), but tls_key is not: TLS needs both.");
  EXPECT_EQ(refusal(nothing(), "tls_key = \"k.pem\""),
            "tls_key is set (file the file, line 1), but tls_cert is not: TLS needs both.");
  const Config config = loaded(with_flags({"--tls-cert", "c.pem", "--tls-key", "/k.pem"}));
  EXPECT_EQ(config.tls_cert, "/srv/dir/c.pem");
  EXPECT_EQ(config.tls_key, "/k.pem");
}

TEST(ConfigFlags, AreRefusedWhenUnknownRepeatedOrWithoutAValue) {
  EXPECT_EQ(refusal(with_flags({"--max-rums", "4"})),
            "--max-rums is not a known flag; did you mean --max-runs?");
  EXPECT_EQ(refusal(with_flags({"--max_runs=4"})),
            "--max_runs is not a known flag; did you mean --max-runs?");
  EXPECT_EQ(refusal(with_flags({"--session-ttl=4"})),
            "--session-ttl is not a known flag; did you mean --session-ttl-secs?");
  EXPECT_EQ(refusal(with_flags({"--nothing-like-it"})), "--nothing-like-it is not a known flag.");
  EXPECT_EQ(refusal(with_flags({"--max-runs", "4", "--max-runs=5"})), "--max-runs comes twice.");
  EXPECT_EQ(refusal(with_flags({"--max-runs"})),
            "--max-runs needs a value, like --max-runs VALUE.");
  EXPECT_TRUE(load_config(with_flags({"--allow-root", "--max-runs", "4"}))->allow_root);
  EXPECT_FALSE(load_config(with_flags({"--allow-root=false"}))->allow_root);
  EXPECT_EQ(refusal(with_flags({"--max-runs", "--listen", "x"})),
            "--max-runs needs a value, like --max-runs VALUE.");
  EXPECT_EQ(refusal(with_flags({"--config="})), "--config needs a value, like --config FILE.");
  EXPECT_EQ(refusal(with_flags({"extra"})),
            "\"extra\" is not a flag; flags look like --max-runs 4.");
  EXPECT_THAT(refusal(with_flags({"--"})), HasSubstr("-- is not a known flag"));
}

TEST(ConfigFile, RefusesUnknownKeysWithLineAndGuess) {
  EXPECT_EQ(refusal(nothing(), "# hello\nmax_rans = 4"),
            "\"max_rans\" in the file, line 2, is not a known key; did you mean max_runs?");
  EXPECT_EQ(refusal(nothing(), "[server]\nport = 1"),
            "\"server\" in the file, line 1, is not a known key.");
  EXPECT_THAT(refusal(nothing(), "config = \"x\""), HasSubstr("is not a known key"));
  EXPECT_THAT(refusal(nothing(), "\"a\\nb\" = 1"), HasSubstr("\"a?b\" in the file, line 1,"));
}

TEST(ConfigFile, RefusesWrongTypes) {
  EXPECT_EQ(refusal(nothing(), "max_runs = \"4\""),
            "max_runs in the file, line 1, is a string: it must be a whole number from 1 to 1024.");
  EXPECT_THAT(refusal(nothing(), "max_runs = 4.0"), HasSubstr("is a number with a point: "));
  EXPECT_THAT(refusal(nothing(), "max_runs = true"), HasSubstr("is true or false: "));
  EXPECT_THAT(refusal(nothing(), "default_model = 4"), HasSubstr("is a whole number: "));
  EXPECT_THAT(refusal(nothing(), "default_model = [\"a\"]"), HasSubstr("is an array: "));
  EXPECT_THAT(refusal(nothing(), "listen.port = 1"), HasSubstr("is a table: "));
  EXPECT_THAT(refusal(nothing(), "default_model = 2020-01-01"), HasSubstr("is a date or time: "));
  EXPECT_THAT(refusal(nothing(), "agents = 1"), HasSubstr("agents are tables"));
  EXPECT_THAT(refusal(nothing(), "agents.x = 1"), HasSubstr("agents are tables"));
}

TEST(ConfigFile, RefusesBadTomlInOneSentence) {
  EXPECT_THAT(refusal(nothing(), "listen = \"127.0.0.1:1\"\nmax_runs = \n"),
              HasSubstr("the file is not valid TOML in line 2: "));
  EXPECT_THAT(refusal(nothing(), "max_runs = 1\nmax_runs = 2"), HasSubstr("line 2"));
}

// The packaged parser calls these letters unreachable; it must refuse them all the same.
TEST(ConfigFile, RefusesLettersBeyondAsciiOutsideOfStrings) {
  for (int letter = 0xa1; letter < 0x500; ++letter) {
    const std::string utf8 = {static_cast<char>(0xc0 | (letter >> 6)),
                              static_cast<char>(0x80 | (letter & 0x3f))};
    EXPECT_THAT(refusal(nothing(), utf8 + " = 1"), HasSubstr("not valid TOML in line 1")) << letter;
    const Config config = loaded(nothing(), "default_model = \"\"\"\\\n" + utf8 + "\"\"\"");
    EXPECT_EQ(config.default_model, utf8) << letter;
  }
}

TEST(ConfigFile, IsRefusedBeforeItsDepthUsesUpTheStack) {
  std::string keys;
  for (int i = 0; i < 200'000; ++i) keys += "a.";
  EXPECT_EQ(refusal(nothing(), keys + "a = 1"), "the file is larger than 32768 bytes.");
  EXPECT_THAT(refusal(nothing(), keys.substr(0, 32'000) + "a = 1"),
              HasSubstr("is not a known key"));
}

TEST(ConfigFile, IsNamedByFlagOrEnvironment) {
  const std::filesystem::path directory =
      std::filesystem::path(testing::TempDir()) / ("config_test." + std::to_string(getpid()));
  std::filesystem::create_directories(directory);
  const std::string file = directory / "cf.toml";
  std::ofstream(file) << "max_runs = 7\n";
  const std::string missing = directory / "missing.toml";

  const auto by_flag = load_config(with_flags({"--config", file}));
  ASSERT_TRUE(by_flag.has_value());
  EXPECT_EQ(by_flag->runs_max, 7);
  EXPECT_EQ(line_of(*by_flag, "max_runs").source, "file " + file + ", line 1");

  ConfigSources sources = with_variable("CLAWDFORGE_CONFIG", missing);
  sources.flags = {"--config=" + file};
  EXPECT_TRUE(load_config(std::move(sources)).has_value());

  const auto unreadable = load_config(with_variable("CLAWDFORGE_CONFIG", missing));
  ASSERT_FALSE(unreadable.has_value());
  EXPECT_EQ(unreadable.error().message,
            "The configuration file " + missing + " cannot be read: No such file or directory.");
  const auto folder = load_config(with_flags({"--config", directory}));
  ASSERT_FALSE(folder.has_value());
  EXPECT_THAT(folder.error().message, HasSubstr("Is a directory"));
  std::filesystem::remove_all(directory);
}

constexpr std::string_view kAgents = R"(
[agents.claude]
protocol = "acpx"
command = ["claude", "--x"]
env = ["ANTHROPIC_API_KEY"]
set_env = { DISABLE_TELEMETRY = "1", MY_API_KEY = "hunter2", DB = "postgres://u:hunter2@h" }
permission_mode = "deny_all"
[agents.My-Agent_2]
command = ["x"]
)";

TEST(ConfigAgents, AreRead) {
  const Config config = loaded(nothing(), kAgents);
  ASSERT_EQ(config.agents.size(), 2U);
  const AgentTable& claude = config.agents.at("claude");
  EXPECT_EQ(claude.protocol, AgentProtocol::acpx);
  EXPECT_THAT(claude.command, testing::ElementsAre("claude", "--x"));
  EXPECT_THAT(claude.env, testing::ElementsAre("ANTHROPIC_API_KEY"));
  EXPECT_EQ(claude.set_env.at("MY_API_KEY"), "hunter2");
  EXPECT_EQ(claude.permission_mode, PermissionMode::deny_all);
  const AgentTable& other = config.agents.at("My-Agent_2");
  EXPECT_EQ(other.protocol, std::nullopt);
  EXPECT_EQ(other.permission_mode, std::nullopt);
}

std::string modes_line(const std::string& modes) {
  return "[agents.x]\ncommand = [\"x\"]\npermission_modes = " + modes;
}

TEST(ConfigAgents, SayWhichModesTheyCanBeHeldTo) {
  const Config list = loaded(nothing(), modes_line(R"(["ask", "deny_all"])"));
  const auto& modes = list.agents.at("x").permission_modes;
  ASSERT_TRUE(modes);
  EXPECT_EQ(modes->size(), 2U);
  EXPECT_TRUE(modes->contains(PermissionMode::ask));
  EXPECT_THAT(render_config(list), HasSubstr(R"(["deny_all", "ask"])"));

  const std::string table =
      R"({ deny_all = { env = { A = "1" }, args = ["--no"], mode = "off" }, approve_all = {  } })";
  const Config config = loaded(nothing(), modes_line(table));
  const ModeSwitches& held = config.agents.at("x").permission_modes->at(PermissionMode::deny_all);
  EXPECT_EQ(held.env.at("A"), "1");
  EXPECT_THAT(held.arguments, testing::ElementsAre("--no"));
  EXPECT_EQ(held.agent_mode, "off");
  EXPECT_THAT(render_config(config), HasSubstr(table));
  EXPECT_FALSE(loaded(nothing(), kAgents).agents.at("claude").permission_modes);
}

TEST(ConfigAgents, ModesAreRefusedWithWhatIsWrong) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {R"("ask")", "an array of modes"},
      {"[]", "must name a mode"},
      {"{}", "must name a mode"},
      {R"(["yolo"])", "one of deny_all"},
      {"[1]", "an array of modes"},
      {"{ ask = 1 }", "ask must be a table"},
      {"{ yolo = {} }", "one of deny_all"},
      {"{ ask = { flags = [] } }", "only env, args and mode"},
      {"{ ask = { args = [1] } }", "an array of strings"},
      {"{ ask = { mode = 1 } }", "must be a string"},
      {"{ ask = { env = [] } }", "a table of strings"},
  };
  for (const auto& [modes, sentence] : cases) {
    const std::string said = refusal(nothing(), modes_line(modes));
    EXPECT_THAT(said, HasSubstr("agents.x.permission_modes in the file, line 3,")) << modes;
    EXPECT_THAT(said, HasSubstr(sentence)) << modes;
  }
  EXPECT_THAT(refusal(nothing(), modes_line("[\"ask\"]\nprotocol = \"acpx\"")),
              HasSubstr("acpx cannot hold an agent to ask"));
}

TEST(ConfigAgents, AreRefusedWithKeyAndLine) {
  const auto agent = [](const std::string& rest) {
    return refusal(nothing(), "[agents.x]\ncommand = [\"x\"]\n" + rest);
  };
  EXPECT_EQ(agent("comand = 1"),
            "\"agents.x.comand\" in the file, line 3, is not a known key; did you mean "
            "agents.x.command?");
  EXPECT_EQ(
      agent("protocol = \"mcp\""),
      "agents.x.protocol in the file, line 3, is wrong: it must be one of acp, acpx, claude.");
  EXPECT_THAT(agent("protocol = 1"), HasSubstr("it must be a string."));
  EXPECT_THAT(agent("permission_mode = \"no\""), HasSubstr("one of deny_all"));
  for (const char* env : {"env = \"A\"", "env = [\"\"]", "env = [\"A=B\"]", "env = [\"1A\"]",
                          "env = [1]", "env = [\"A\\u0000\"]"}) {
    EXPECT_THAT(agent(env), HasSubstr("names of environment variables")) << env;
  }
  for (const char* set_env :
       {"set_env = [\"A\"]", "set_env = { A = 1 }", "set_env = { \"\" = \"x\" }",
        "set_env = { \"A=\" = \"x\" }", "set_env = { A = \"\\u0000\" }"}) {
    EXPECT_THAT(agent(set_env), HasSubstr("agents.x.set_env in the file, line 3,")) << set_env;
  }
  for (const char* toml :
       {"[agents.x]\ncommand = []", "[agents.x]\ncommand = [\"\"]", "[agents.x]\ncommand = \"x\"",
        "[agents.x]\ncommand = [1]", "[agents.x]\ncommand = [\"a\\u0000\"]", "[agents.x]\n"}) {
    EXPECT_THAT(refusal(nothing(), toml), HasSubstr("agents.x")) << toml;
  }
  EXPECT_THAT(refusal(nothing(), "[agents.codex]\nprotocol = \"acpx\""), HasSubstr("no command"));
  EXPECT_EQ(loaded(nothing(), "[agents.claude]\nenv = [\"A\"]").agents.at("claude").command.size(),
            0U);
  EXPECT_THAT(refusal(nothing(), "[agents.\"a b\"]\ncommand = [\"x\"]"),
              HasSubstr("is not a name for an agent"));
}

TEST(ConfigText, ShowsEveryKeyWithValueAndSource) {
  ConfigSources sources = with_variable("CLAWDFORGE_LOG_LEVEL", "debug");
  sources.flags = {"--max-runs", "4"};
  const Config config = loaded(std::move(sources), "default_model = \"o\\\"pus\"");
  EXPECT_EQ(config.lines.size(), config_keys().size());
  EXPECT_EQ(line_of(config, "max_runs").value, "4");
  EXPECT_EQ(line_of(config, "max_runs").source, "flag --max-runs");
  EXPECT_EQ(line_of(config, "log_level").source, "environment CLAWDFORGE_LOG_LEVEL");
  EXPECT_EQ(line_of(config, "default_model").value, R"("o\"pus")");
  EXPECT_EQ(line_of(config, "default_model").source, "file the file, line 1");
  EXPECT_EQ(line_of(config, "max_agents").value, "16");
  EXPECT_EQ(line_of(config, "max_agents").source, "default");
  const std::string text = render_config(config);
  for (const ConfigKey& key : config_keys()) EXPECT_THAT(text, HasSubstr(std::string(key.name)));
}

TEST(ConfigText, MasksWhatLooksSecretInAnAgentsVariables) {
  const std::string text = render_config(loaded(nothing(), kAgents));
  EXPECT_THAT(text, HasSubstr(R"x(DISABLE_TELEMETRY = "1", MY_API_KEY = "(set)")x"));
  EXPECT_THAT(text, Not(HasSubstr("hunter2")));
  EXPECT_THAT(text, HasSubstr("agents.claude.command"));
}

TEST(ConfigText, IsAFileThatMeansTheSame) {
  const Config first =
      loaded(with_flags({"--allow-cidrs=10.0.0.0/8,::1", "--max-runs=3"}), kAgents);
  const Config second = loaded(nothing(), render_config(first));
  for (const Config::Line& line : first.lines) {
    EXPECT_EQ(line_of(second, line.key).value, line.value) << line.key;
  }
}

TEST(Config, HasBudgetsOfAllAppsAsTextOrAsTables) {
  const std::vector<Budget> wanted = {{BudgetWindow::day, BudgetUnit::usd, 2'500'000'000},
                                      {BudgetWindow::total, BudgetUnit::asks, 7}};
  EXPECT_EQ(loaded(nothing(), "budgets = \"day:usd:2.5,total:asks:7\"").budgets, wanted);
  EXPECT_EQ(loaded(nothing(),
                   "[[budgets]]\nwindow = \"day\"\nunit = \"usd\"\nlimit = 2.5\n"
                   "[[budgets]]\nwindow = \"total\"\nunit = \"asks\"\nlimit = 7\n")
                .budgets,
            wanted);
  for (const char* toml :
       {"budgets = 3", "budgets = \"day:eur:1\"", "[[budgets]]\nwindow = \"day\"\n",
        "[[budgets]]\nwindow = \"year\"\nunit = \"usd\"\nlimit = 1\n"}) {
    EXPECT_THAT(refusal(nothing(), toml), HasSubstr("budgets")) << toml;
  }
}

}  // namespace
}  // namespace clawdforge
