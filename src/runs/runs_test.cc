#include "runs/runs.h"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <future>
#include <optional>

#include "agent/core/agent_catalog.h"
#include "agent/core/agent_starter.h"
#include "base/async/compute_worker.h"
#include "ledger/open_ledger.h"
#include "quota/apps.h"
#include "quota/policies.h"
#include "quota/quota.h"
#include "storage/disk/workspace_fixture.h"
#include "storage/work/run_dirs.h"
#include "storage/work/upload_files.h"
#include "uploads/uploads.h"

namespace clawdforge {
namespace {

// Answers with its prompt.
class EchoShot final : public OneShotAgent {
 public:
  explicit EchoShot(std::string text) : text_(std::move(text)) {}
  ProcessMark mark() const override { return {}; }
  Task<OneShotAnswer> answer() override {
    OneShotAnswer said;
    said.text = std::move(text_);
    co_return said;
  }
  void stop() override {}
  Task<void> finish() override { co_return; }

 private:
  std::string text_;
};

class EchoStarter final : public AgentStarter {
 public:
  Result<std::unique_ptr<SessionAgent>> start_session(StartOrder) override {
    return fail(Errc::unavailable, "agent_not_found", "There are no agents for sessions here.");
  }
  Result<std::unique_ptr<OneShotAgent>> start_one_shot(StartOrder, OneShotRequest asked) override {
    last = asked;
    return std::make_unique<EchoShot>(std::move(asked.prompt));
  }
  OneShotRequest last;
};

AgentSpec echo_spec() {
  AgentSpec spec;
  spec.name = "echo";
  spec.one_shot_protocol = OneShotProtocol::claude_print;
  spec.one_shot_modes[PermissionMode::approve_reads] = {};
  return spec;
}

Quota::Options places() {
  Quota::Options options;
  options.runs_max = 8;
  options.queued_runs_max = 8;
  return options;
}

class RunsTest : public WorkspaceTest {
 protected:
  RunsTest() {
    App news;
    news.name = AppName("news");
    auto minted = await(apps_.mint(std::move(news), {}));
    app_ = std::make_shared<const App>(std::move(minted.value().app));
  }
  ~RunsTest() override { EXPECT_TRUE(await(stopped(&runs_))); }
  static Async<void> stopped(Runs* runs) {
    co_await runs->stop();
    co_return Result<void>{};
  }

  Async<RunOutcome> execute(std::string prompt, std::string system = "") {
    RunRequest request;
    request.agent = "echo";
    request.prompt = std::move(prompt);
    request.system = std::move(system);
    request.timeout = std::chrono::hours(1);
    request.received = std::chrono::steady_clock::now();
    return runs_.execute(app_, std::move(request), nullptr);
  }

  Metrics metrics_;
  const SystemClock clock_;
  RandomIds ids_{clock_};
  std::unique_ptr<Ledger> ledger_ = std::move(
      *open_ledger(io_.get_executor(), "sqlite::memory:", InstanceId("i1"), log_, metrics_));
  ComputeWorker compute_{io_.get_executor()};
  UploadFiles upload_files_{root_, disk_};
  Uploads uploads_{ledger_->uploads, upload_files_, clock_, ids_, InstanceId("i1"), 1'000};
  RunDirs run_dirs_{root_, disk_, log_};
  const AgentCatalog catalog_{{echo_spec()}};
  EchoStarter starter_;
  Quota quota_{places(), metrics_};
  std::shared_ptr<const App> app_;
  Apps apps_{ledger_->apps, clock_, ids_, log_};
  const Policies policies_{{}, {}, {}};
  Runs runs_{{io_.get_executor(), ledger_->runs, quota_, apps_, policies_, catalog_, starter_,
              uploads_, run_dirs_, clock_, ids_, metrics_, InstanceId("i1"), &compute_}};
};

// While the compute worker is busy, a run that came later and has a small answer overtakes one with
// a large answer: the io thread does not read the large one itself.
TEST_F(RunsTest, ALargeAnswerIsReadByTheComputeWorker) {
  std::promise<void> let_go;
  compute_.post(Lane(), [held = let_go.get_future().share()] { held.wait(); });
  const std::string large = "[" + std::string(kComputeBytesMin, ' ') + "1]";
  std::optional<Result<RunOutcome>> outcome;
  boost::asio::co_spawn(io_, execute(large), [&](const std::exception_ptr&, auto answered) {
    outcome = std::move(answered);
  });
  const auto small = await(execute("[2]"));
  ASSERT_TRUE(small);
  EXPECT_EQ(small->result, "[2]");
  EXPECT_FALSE(outcome);

  let_go.set_value();
  while (!outcome) ASSERT_TRUE(await(execute("[3]")));
  ASSERT_TRUE(*outcome);
  EXPECT_EQ((*outcome)->result.front(), '[');
  const auto page = await(ledger_->runs.page({}));
  ASSERT_TRUE(page);
  EXPECT_EQ(page->runs.back().end->result_bytes, static_cast<std::int64_t>(large.size()))
      << "as the agent wrote it";
}

TEST_F(RunsTest, ASystemPromptReachesTheAgentInAFile) {
  ASSERT_TRUE(await(execute("[1]")));
  EXPECT_EQ(starter_.last.system_file, "");
  ASSERT_TRUE(await(execute("[1]", "be brief")));
  EXPECT_TRUE(starter_.last.system_file.ends_with("/tmp/system-prompt.txt"));
}

}  // namespace
}  // namespace clawdforge
