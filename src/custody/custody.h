// Custody keeps the login of an agent good: it looks at its file, has it renewed in time by the
// agent's own program, and tells whether work may begin. Agents read the login and cannot write it,
// so one process at a time spends a refresh token. Owned by the daemon; io thread only. Its owner
// calls stop() and waits for run() before it dies.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "agent/core/agent_catalog.h"
#include "agent/core/agent_environment.h"
#include "base/async/task_group.h"
#include "base/clock.h"
#include "base/telemetry/log.h"
#include "base/telemetry/metrics.h"
#include "custody/keeper.h"
#include "custody/login_states.h"
#include "custody/login_watch.h"
#include "ledger/rows/audit_rows.h"
#include "process/launch/child_plan.h"
#include "storage/disk/disk.h"

namespace clawdforge {

class Custody final : public LoginGate {
 public:
  struct Dependencies {
    IoExecutor executor;
    Spawner& spawner;
    Disk& disk;
    AuditRows& audit;
    const AgentCatalog& catalog;
    const Clock& clock;
    Log& log;
    Metrics& metrics;
  };
  struct Options {
    AgentSpec spec;           // whose login it is; others may have the same
    std::string login_dir;    // made where it is not there
    std::string keeper_dir;   // likewise: the keeper's home
    std::string earlier_dir;  // where the login is as long as login_dir has none; empty: nowhere
    Environment environment;  // ours
    // What the program that renews it calls its version; none: it is not there.
    std::function<std::optional<std::string>()> version;
    // The keeper's, which may write to this directory; none: it is not jailed.
    std::function<std::optional<JailPlan>(const std::string& dir)> jail;
  };

  Custody(Dependencies deps, Options options);

  // Looks for the first time; false: the directories cannot be made, which is logged.
  Task<void> begin();
  // Until stop().
  Task<void> run();
  // No keeper is started any more; returns when the one that runs has ended.
  Task<void> stop();

  bool keeps(std::string_view agent) const override;
  std::optional<LoginRefusal> refusal(std::string_view agent) const override;
  Signal& changed() override { return changed_; }
  void note_waiting(int change) override;
  void note_refused(std::string_view agent, std::chrono::steady_clock::time_point begun) override;

  // What an agent is shown of its login.
  LoginView view_of(const AgentSpec& spec, bool is_jailed) const;

  struct Standing {
    CustodyState state = CustodyState::external;
    std::optional<TimePoint> expires_at;
    std::optional<TimePoint> sign_in_ends_at;
  };
  Standing standing() const;
  // The name of the state, of an agent of GET /agents; none: its login is never kept.
  std::optional<std::string> state_of(std::string_view agent) const;
  void show() const;  // brings the gauges up to date
  // How long stop() may take.
  std::chrono::seconds end_max() const;

 private:
  bool is_kept(const AgentSpec& spec) const;
  bool is_too_old(const AgentSpec& spec) const;
  bool is_external() const;
  std::string file_in(const std::string& dir) const { return dir + "/" + options_.spec.login.file; }
  // Also where the loop is not waiting just now.
  void wake() {
    has_news_ = true;
    woken_.notify_all();
  }
  Task<void> look();
  Task<void> keep(KeeperTask task);
  ChildPlan keeper_plan(KeeperTask task) const;
  void warn_of_place();
  void tell_changes();
  void tell_of_state(CustodyState before, CustodyState now);
  void tell_of_end();
  void note_event(std::string event, std::string meta = "{}");
  Task<void> write_event(AuditEvent event);

  Dependencies deps_;
  const Options options_;
  std::string dir_;  // of the login, now
  LoginStates states_;
  Keeper keeper_;
  LoginWatch watch_;
  Signal changed_;
  Signal woken_;
  Signal ended_;
  TaskGroup tasks_;
  bool is_begun_ = false;
  bool is_stopped_ = false;
  bool is_running_ = false;
  bool has_news_ = false;  // since the file was last looked at
  CustodyState told_ = CustodyState::external;
  bool had_login_ = false;
  std::optional<TimePoint> end_told_at_;
  std::string place_told_;
  mutable std::map<std::string, bool> has_other_login_;  // by agent: what variables say of it
  std::array<Gauge*, kCustodyStates> state_gauges_{};
  Gauge& expires_;
  Gauge& held_;
  Counter& renewed_;
  Counter& failed_;
};

}  // namespace clawdforge
