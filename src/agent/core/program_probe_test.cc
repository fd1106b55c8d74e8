#include "agent/core/program_probe.h"

#include "agent/core/agent_fixture.h"
#include "base/async/async_tokens.h"
#include "base/async/task_group.h"

namespace clawdforge {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

Task<bool> look_once(ProgramProbe* probe) {
  co_await probe->look();
  co_return true;
}

class ProgramProbeTest : public AgentTest {
 protected:
  void write_agent(const std::string& script) { write_program("agent", script); }
  ProgramProbe make_probe() {
    return ProgramProbe(io_.get_executor(), *spawner_, root_ / "bin" / "agent",
                        {{"PATH", "/usr/bin:/bin"}}, root_ / "work");
  }
};

TEST_F(ProgramProbeTest, FindsTheVersion) {
  write_agent("echo \"$1 \x1b[1m2.1.325\" '(Claude Code)'; echo more");
  ProgramProbe probe = make_probe();
  EXPECT_FALSE(probe.finding().is_present);
  run_to_end(io_, look_once(&probe));
  EXPECT_TRUE(probe.finding().is_present);
  EXPECT_EQ(probe.finding().version, "--version [1m2.1.325 (Claude Code)");
}

TEST_F(ProgramProbeTest, NoticesThatTheProgramHasGone) {
  write_agent("echo 1.0");
  ProgramProbe probe = make_probe();
  run_to_end(io_, look_once(&probe));
  EXPECT_TRUE(probe.finding().is_present);
  write_agent("echo 1.0; exit 1");
  run_to_end(io_, look_once(&probe));
  EXPECT_FALSE(probe.finding().is_present);
  EXPECT_EQ(probe.finding().version, "");
  fs::remove(root_ / "bin" / "agent");
  run_to_end(io_, look_once(&probe));
  EXPECT_FALSE(probe.finding().is_present);
}

TEST_F(ProgramProbeTest, BoundsWhatItReads) {
  write_agent("head -c 1000000 /dev/zero | tr '\\0' v");
  ProgramProbe probe = make_probe();
  run_to_end(io_, look_once(&probe));
  EXPECT_TRUE(probe.finding().is_present);
  EXPECT_EQ(probe.finding().version, std::string(kVersionCharactersMax - 1, 'v') + "…");
}

Task<bool> run_it(ProgramProbe* probe) {
  co_await probe->run();
  co_return true;
}

Task<void> stop_probe_when(ProgramProbe* probe, fs::path mark) {
  Timer timer(co_await boost::asio::this_coro::executor);
  while (!fs::exists(mark)) {
    timer.expires_after(5ms);
    co_await timer.async_wait(kAwait);
  }
  probe->stop();
}

TEST_F(ProgramProbeTest, StopsWhileItLooksAndBetween) {
  for (const std::string script : {"touch looked; exec sleep 600", "touch looked; echo 1"}) {
    fs::remove(root_ / "work" / "looked");
    write_agent(script);
    ProgramProbe probe = make_probe();
    TaskGroup group(io_.get_executor());
    group.spawn(stop_probe_when(&probe, root_ / "work" / "looked"));
    run_to_end(io_, run_it(&probe), 30s);
    EXPECT_EQ(spawner_->alive(), 0U);
  }
}

}  // namespace
}  // namespace clawdforge
