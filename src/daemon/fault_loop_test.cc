// For each use case the n-th statement of the ledger fails, for n = 1, 2, 3 … until the use
// case passes untouched: once as a fault that goes by itself, once as one that stays until
// the answer is there. The whole gateway stands behind it, with agents that are real
// processes. Whatever fails, the answer is clear, and afterwards nothing is missing and
// nothing is left over.
#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include "agent/acp/acp_fixture.h"
#include "client/client.h"
#include "config/config.h"
#include "daemon/gateway.h"
#include "ledger/core/migrations.h"
#include "ledger/ledger.h"
#include "ledger/sqlite/sqlite_driver.h"

namespace clawdforge {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr std::string_view kAdminToken = "admin-token-of-the-fault-loops";

enum class Mode { passing, staying };

// What the ledger's thread and the test's thread share.
class Faults {
 public:
  void arm(Mode mode, int nth) {
    const std::lock_guard lock(mutex_);
    mode_ = mode;
    left_ = nth;
    again_.clear();
    has_fired_ = false;
  }
  // Whether it has happened.
  bool disarm() {
    const std::lock_guard lock(mutex_);
    left_ = 0;
    again_.clear();
    return std::exchange(has_fired_, false);
  }
  bool fails(std::string_view statement) {
    const std::lock_guard lock(mutex_);
    // A statement that failed among others is tried again alone: the same fault again.
    if (statement == again_) {
      again_.clear();
      return true;
    }
    if (left_ == 0 || is_background(statement)) return false;
    if (left_ > 1) {
      --left_;
      return false;
    }
    has_fired_ = true;
    if (mode_ == Mode::staying) return true;
    left_ = 0;
    again_ = statement;
    return true;
  }

 private:
  // Of what goes on beside any use case.
  static bool is_background(std::string_view statement) {
    return statement.contains("data_version") || statement.contains("beats") ||
           statement.starts_with("SELECT COUNT(*) FROM sessions WHERE closed_at IS NULL");
  }

  std::mutex mutex_;
  Mode mode_ = Mode::passing;
  int left_ = 0;
  std::string again_;
  bool has_fired_ = false;
};

class FaultyDriver final : public SqlDriver {
 public:
  FaultyDriver(std::unique_ptr<SqlDriver> driver, Faults& faults)
      : driver_(std::move(driver)), faults_(faults) {}

  Result<SqlResult> execute(std::string_view statement, std::span<const SqlValue> params) override {
    if (faults_.fails(statement)) return ledger_unavailable("as the test wants it");
    return driver_->execute(statement, params);
  }
  Result<void> run_script(std::string_view script) override { return driver_->run_script(script); }
  std::string_view auto_id_type() const override { return driver_->auto_id_type(); }
  Result<void> begin(Access access) override {
    is_write_ = access == Access::write;
    return driver_->begin(access);
  }
  Result<void> commit() override {
    if (is_write_ && faults_.fails("COMMIT")) return ledger_unavailable("as the test wants it");
    return driver_->commit();
  }
  void rollback() override { driver_->rollback(); }
  Result<std::int64_t> change_mark() override { return driver_->change_mark(); }
  Result<void> tidy(Moment moment) override { return driver_->tidy(moment); }

 private:
  std::unique_ptr<SqlDriver> driver_;
  Faults& faults_;
  bool is_write_ = false;
};

// One result line, as the command line prints it.
constexpr const char* kClaude = R"sh(#!/bin/sh
[ "$1" = --version ] && { echo "2.1.325 (Claude Code)"; exit 0; }
cat >/dev/null
echo '{"type":"result","subtype":"success","is_error":false,"result":"done","stop_reason":"end_turn"}'
)sh";

// A prompt that begins with "wait" goes on until it is cancelled, one with "ask" asks.
constexpr const char* kBehaviour = R"py(
abilities = {"loadSession": True}
def load(m): reply(m, None)
def prompt(m):
    words = m["params"]["prompt"][-1]["text"]
    text("begun")
    if words.startswith("ask"):
        text("answer: " + json.dumps(permission(70, toolCallId="t1", title="T", kind="edit")))
    if words.startswith("wait"):
        while wait_for_line().get("method") != "session/cancel": pass
        return reply(m, {"stopReason": "cancelled"})
    reply(m, {"stopReason": "end_turn"})
on["session/prompt"] = prompt
on["session/load"] = load
)py";

class FaultLoopTest : public testing::Test {
 protected:
  void SetUp() override {
    std::signal(SIGPIPE, SIG_IGN);
    std::string pattern = (std::filesystem::temp_directory_path() / "fault-loop-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    std::ofstream(root_ / "claude") << kClaude;
    std::filesystem::permissions(root_ / "claude", std::filesystem::perms::owner_all);
    std::ofstream(root_ / "agent.py") << kScriptedAgent << kBehaviour << kScriptedAgentLoop;
    thread_ = std::thread([this] { serve(); });
    const auto end = std::chrono::steady_clock::now() + 30s;
    while (!is_ready_ && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    ASSERT_TRUE(is_ready_) << "it did not start";
    app_token_ = Secret(mint("app"));
  }
  void TearDown() override {
    if (is_ready_) ::kill(::getpid(), SIGTERM);
    if (thread_.joinable()) thread_.join();
    EXPECT_EQ(exit_, "ended well");
    EXPECT_EQ(own_children_, "") << "a child is alive";
    std::filesystem::remove_all(root_);
  }

  // Answers

  ClientAnswer call(std::string method, std::string target, std::string body = {},
                    bool as_admin = false, std::string content_type = "application/json") {
    ClientRequest request{
        .method = std::move(method),
        .target = std::move(target),
        .token = Secret(as_admin ? std::string(kAdminToken) : std::string(app_token_.reveal())),
        .body = std::move(body),
        .content_type = std::move(content_type),
        .file = {}};
    auto answer = call_server({.is_tls = false, .host = "127.0.0.1", .port = port_}, request, 40s);
    EXPECT_TRUE(answer) << request.method << " " << request.target << ": "
                        << answer.error().message;
    return answer.value_or(ClientAnswer{});
  }
  ClientAnswer admin(std::string method, std::string target, std::string body = {}) {
    return call(std::move(method), std::move(target), std::move(body), true);
  }
  static std::string field(const ClientAnswer& answer, const std::string& name) {
    const std::string key = "\"" + name + "\":\"";
    const std::size_t at = answer.body.find(key);
    if (at == std::string::npos) return {};
    const std::size_t begin = at + key.size();
    return answer.body.substr(begin, answer.body.find('"', begin) - begin);
  }
  static void expect_good(const ClientAnswer& answer) {
    EXPECT_EQ(answer.status, 200) << answer.body;
  }
  std::string mint(const std::string& name) {
    const auto minted = admin("POST", "/admin/tokens", R"({"name":")" + name + "\"}");
    expect_good(minted);
    return field(minted, "token");
  }
  std::string new_session() {
    const auto created =
        call("POST", "/sessions", R"({"agent":"scripted","permission_mode":"ask"})");
    expect_good(created);
    return field(created, "session_id");
  }
  void close(const std::string& id) { expect_good(call("DELETE", "/sessions/" + id)); }
  std::int64_t gauge(const std::string& name) {
    const std::string text = admin("GET", "/metrics").body;
    const std::size_t at = text.find("\n" + name + " ");
    if (at == std::string::npos) return -1;
    return std::stoll(text.substr(at + name.size() + 2));
  }
  std::int64_t count(const std::string& query) {
    auto driver = SqliteDriver::open(root_ / "data" / "clawdforge.db", {});
    if (!driver) return -1;
    auto result = (*driver)->execute(query);
    return result ? std::get<std::int64_t>(result->rows.at(0).at(0)) : -1;
  }
  template <class Condition>
  void wait_until(Condition holds, const char* what) {
    const auto end = std::chrono::steady_clock::now() + 30s;
    while (!holds()) {
      ASSERT_LT(std::chrono::steady_clock::now(), end) << what;
      std::this_thread::yield();
    }
  }

  // A refusal is of the 500s, with a code of its own; no other is due to a fault.
  static void expect_clear(const ClientAnswer& answer) {
    if (answer.status < 400) return;
    EXPECT_EQ(answer.status, 503) << answer.body;
    EXPECT_EQ(field(answer, "code"), "ledger_unavailable") << answer.body;
    EXPECT_FALSE(answer.header("Retry-After").empty());
  }

  struct UseCase {
    std::function<void()> prepare;
    std::function<ClientAnswer()> act;
    std::function<void(bool)> tidy;  // whether it was answered well
  };
  void loop(const UseCase& use, std::vector<Mode> modes = {Mode::passing, Mode::staying}) {
    for (const Mode mode : modes) {
      bool has_fired = true;
      int nth = 1;
      for (; has_fired && nth < 100; ++nth) {
        SCOPED_TRACE((mode == Mode::passing ? "passing, " : "staying, ") + std::to_string(nth));
        if (use.prepare) use.prepare();
        faults_.arm(mode, nth);
        const ClientAnswer answer = use.act();
        has_fired = faults_.disarm();
        expect_clear(answer);
        if (!has_fired) EXPECT_LT(answer.status, 300) << answer.body;
        if (use.tidy) use.tidy(answer.status < 300);
        if (HasFailure()) return;
      }
      EXPECT_GT(nth, 2) << "nothing could fail";
      expect_well();
    }
  }

  // `act` takes an app's token away; it works until that has succeeded.
  void old_token_loop(Mode mode, const std::function<ClientAnswer(const std::string& name)>& act) {
    int number = 0;
    std::string name;
    std::string old;
    const auto whoami = [&](const std::string& token) {
      const Secret own = std::exchange(app_token_, Secret(std::string(token)));
      const int status = call("GET", "/whoami").status;
      app_token_ = Secret(std::string(own.reveal()));
      return status;
    };
    loop({.prepare =
              [&] {
                name = "app-" + std::to_string(++number);
                old = mint(name);
              },
          .act = [&] { return act(name); },
          .tidy =
              [&](bool is_good) {
                const int status = whoami(old);
                // After many tokens that are not known any more the address is told to wait.
                EXPECT_TRUE(is_good ? status == 401 || status == 429 : status == 200) << status;
              }},
         {mode});
  }

  // A run and a turn work, and no process or file is left without an owner.
  void expect_well() {
    wait_until([&] { return call("GET", "/readyz").status == 200; }, "it is ready again");
    expect_good(call("POST", "/run", R"({"prompt":"well"})"));
    const std::string canary = new_session();
    expect_good(call("POST", "/sessions/" + canary + "/turn", R"({"prompt":"well"})"));
    close(canary);
    expect_good(admin("POST", "/admin/sweep"));
    for (const char* table : {"runs", "turns"}) {
      const std::string open =
          std::string("SELECT COUNT(*) FROM ") + table + " WHERE ended_at IS NULL";
      wait_until([&] { return count(open) == 0; }, table);
    }
    wait_until([&] { return count("SELECT COUNT(*) FROM sessions WHERE closed_at IS NULL") == 0; },
               "a session without an owner");
    for (const char* name : {"clawdforge_runs_running", "clawdforge_runs_waiting",
                             "clawdforge_agents_running", "clawdforge_agents_waiting"}) {
      wait_until([&] { return gauge(name) == 0; }, name);
    }
  }

  Faults faults_;
  std::filesystem::path root_;
  std::uint16_t port_ = 0;
  Secret app_token_;

 private:
  void serve() {
    exit_ = run();
    if (exit_ != "ended well") ADD_FAILURE() << exit_;
  }
  std::string run();

  std::atomic<bool> is_ready_ = false;
  std::string exit_;
  std::string own_children_;
  std::thread thread_;
};

std::string FaultLoopTest::run() {
  ConfigSources sources;
  sources.flags = {"--listen=127.0.0.1:0",
                   "--data-dir=" + (root_ / "data").string(),
                   "--claude-bin=" + (root_ / "claude").string(),
                   "--kill-grace-ms=200",
                   "--cancel-grace-ms=2000",
                   "--log-level=error"};
  sources.admin_token = Secret(std::string(kAdminToken));
  sources.environment = {
      {"PATH", "/usr/bin:/bin"}, {"HOME", root_.string()}, {"ANTHROPIC_API_KEY", "of a test"}};
  sources.cores = 2;
  const auto config = load_config_with_file_text(
      std::move(sources), "[agents.scripted]\ncommand = [\"/usr/bin/python3\", \"-S\", \"" +
                              (root_ / "agent.py").string() +
                              "\"]\npermission_modes = [\"approve_reads\", \"ask\"]\n");
  if (!config) return config.error().message;
  Log log(config->log_level, config->log_format);
  const SystemClock clock;
  RandomIds ids(clock);
  Metrics metrics;
  auto data_dir = DataDir::open(config->data_dir);
  if (!data_dir) return data_dir.error().message;
  IoContext io(1);
  auto file = SqliteDriver::open(root_ / "data" / "clawdforge.db", {});
  if (!file) return file.error().message;
  if (!migrate(**file, kSchemaFiles, "the test's ledger", clock.now())) return "not migrated";
  Ledger ledger(std::make_unique<FaultyDriver>(std::move(*file), faults_), InstanceId(ids.uuid()),
                io.get_executor(), {}, log, metrics);
  Spawner::Options options;
  options.kill_grace = 200ms;
  auto spawner = Spawner::make(io.get_executor(), options, log);
  if (!spawner) return spawner.error().message;
  Disk disk(io.get_executor());
  const ServiceNotice no_notice({});
  Gateway gateway(
      {io,
       *config,
       *data_dir,
       ledger,
       clock,
       ids,
       log,
       metrics,
       **spawner,
       disk,
       no_notice,
       "/nowhere/clawdforge",
       {{"PATH", "/usr/bin:/bin"}, {"HOME", root_.string()}, {"ANTHROPIC_API_KEY", "of a test"}}},
      sha256(kAdminToken));
  std::optional<Result<void>> outcome;
  boost::asio::co_spawn(io.get_executor(), gateway.run(),
                        [&](std::exception_ptr thrown, Result<void> result) {
                          if (thrown) std::rethrow_exception(thrown);
                          outcome = std::move(result);
                        });
  const std::filesystem::path port_file = root_ / "data" / "port";
  while (!is_ready_ && !outcome) {
    io.run_one();
    if (std::ifstream port(port_file); port >> port_) is_ready_ = true;
  }
  try {
    io.run();
  } catch (const std::exception& thrown) {
    return std::string("it threw: ") + thrown.what();
  }
  if ((*spawner)->alive() != 0) own_children_ = "a tree is alive";
  if (!outcome || !*outcome) return "it did not end well";
  return "ended well";
}

TEST_F(FaultLoopTest, Minting) {
  int number = 0;
  std::string name;
  loop({.prepare = [&] { name = "app-" + std::to_string(++number); },
        .act = [&] { return admin("POST", "/admin/tokens", R"({"name":")" + name + "\"}"); },
        .tidy =
            [&](bool is_good) {
              // What was refused was not done.
              const auto again = admin("POST", "/admin/tokens", R"({"name":")" + name + "\"}");
              EXPECT_EQ(again.status, is_good ? 409 : 200) << again.body;
            }});
}

// One mode a test: after 20 wrong tokens in a minute the next ones are told 429.
TEST_F(FaultLoopTest, RotatingWithFaultsPassing) {
  old_token_loop(Mode::passing, [this](const std::string& name) {
    return admin("POST", "/admin/tokens/" + name + "/rotate");
  });
}

TEST_F(FaultLoopTest, RevokingWithFaultsPassing) {
  old_token_loop(Mode::passing, [this](const std::string& name) {
    return admin("DELETE", "/admin/tokens/" + name);
  });
}

TEST_F(FaultLoopTest, RotatingWithFaultsStaying) {
  old_token_loop(Mode::staying, [this](const std::string& name) {
    return admin("POST", "/admin/tokens/" + name + "/rotate");
  });
}

TEST_F(FaultLoopTest, RevokingWithFaultsStaying) {
  old_token_loop(Mode::staying, [this](const std::string& name) {
    return admin("DELETE", "/admin/tokens/" + name);
  });
}

TEST_F(FaultLoopTest, ARunWithAFile) {
  const std::string form =
      "--b\r\nContent-Disposition: form-data; name=\"file\"; "
      "filename=\"a.txt\"\r\n\r\nabc\r\n--b--\r\n";
  std::string token;
  const auto upload = [&] {
    return call("POST", "/files", form, false, "multipart/form-data; boundary=b");
  };
  loop({.prepare = {}, .act = upload, .tidy = {}});
  token = field(upload(), "file_token");
  loop({.prepare = {},
        .act = [&] { return call("POST", "/run", R"({"prompt":"p","files":[")" + token + "\"]}"); },
        .tidy = {}});
}

TEST_F(FaultLoopTest, MakingASession) {
  std::string id;
  loop({.prepare = {},
        .act =
            [&] {
              const auto created = call("POST", "/sessions", R"({"agent":"scripted"})");
              id = field(created, "session_id");
              return created;
            },
        .tidy =
            [&](bool is_good) {
              if (is_good) close(id);
            }});
}

TEST_F(FaultLoopTest, ATurnPlainAndStreamed) {
  std::string id;
  std::string body = R"({"prompt":"p"})";
  const UseCase turn{.prepare = [&] { id = new_session(); },
                     .act = [&] { return call("POST", "/sessions/" + id + "/turn", body); },
                     .tidy = [&](bool) { close(id); }};
  loop(turn);
  // A stream tells nothing that is not committed: it waits, with heartbeats, until the ledger
  // takes the turn's end. So it does not end while the fault stays.
  body = R"({"prompt":"p","stream":true})";
  loop(turn, {Mode::passing});
}

TEST_F(FaultLoopTest, CancellingATurn) {
  std::string id;
  std::thread asking;
  loop({.prepare =
            [&] {
              id = new_session();
              asking = std::thread([&] {
                expect_clear(call("POST", "/sessions/" + id + "/turn", R"({"prompt":"wait"})"));
              });
              wait_until(
                  [&] { return call("GET", "/sessions/" + id + "/events").body.contains("begun"); },
                  "the turn has begun");
            },
        .act = [&] { return call("POST", "/sessions/" + id + "/cancel"); },
        .tidy =
            [&](bool is_good) {
              if (!is_good) expect_good(call("POST", "/sessions/" + id + "/cancel"));
              asking.join();
              close(id);
            }});
}

TEST_F(FaultLoopTest, AnsweringAQuestion) {
  std::string id;
  std::string path;
  std::thread asking;
  loop({.prepare =
            [&] {
              id = new_session();
              asking = std::thread([&] {
                expect_clear(call("POST", "/sessions/" + id + "/turn", R"({"prompt":"ask"})"));
              });
              ClientAnswer open;
              wait_until(
                  [&] {
                    open = call("GET", "/sessions/" + id + "/permissions");
                    return open.body.contains("\"id\"");
                  },
                  "it asks");
              path = "/sessions/" + id + "/permissions/" + field(open, "id");
            },
        .act = [&] { return call("POST", path, R"({"decision":"allow"})"); },
        .tidy =
            [&](bool is_good) {
              // The agent may have been told what the ledger did not keep at once.
              const auto again = call("POST", path, R"({"decision":"allow"})");
              const bool is_taken = field(again, "code") == "already_answered";
              EXPECT_EQ(again.status, is_good || is_taken ? 409 : 200) << again.body;
              asking.join();
              close(id);
            }});
}

TEST_F(FaultLoopTest, ClosingASession) {
  std::string id;
  loop({.prepare = [&] { id = new_session(); },
        .act = [&] { return call("DELETE", "/sessions/" + id); },
        .tidy =
            [&](bool is_good) {
              if (!is_good) close(id);
            }});
}

TEST_F(FaultLoopTest, SweepingAndLists) {
  const auto age = [&] {
    const std::string id = new_session();
    const std::string old = new_session();
    close(old);
    auto driver = SqliteDriver::open(root_ / "data" / "clawdforge.db", {});
    ASSERT_TRUE(driver);
    ASSERT_TRUE((*driver)->begin(Access::write));
    ASSERT_TRUE((*driver)->execute("UPDATE sessions SET created_at = 1, last_turn_at = 1"));
    ASSERT_TRUE(
        (*driver)->execute("UPDATE sessions SET closed_at = 1 WHERE closed_at IS NOT NULL"));
    ASSERT_TRUE((*driver)->commit());
  };
  loop({.prepare = age,
        .act = [&] { return admin("POST", "/admin/sweep"); },
        .tidy = [&](bool) { expect_good(admin("POST", "/admin/sweep")); }});
  loop({.prepare = {}, .act = [&] { return call("GET", "/sessions"); }, .tidy = {}});
  for (const char* list : {"/admin/runs", "/admin/sessions", "/admin/events"}) {
    loop({.prepare = {}, .act = [&] { return admin("GET", list); }, .tidy = {}});
  }
}

}  // namespace
}  // namespace clawdforge
