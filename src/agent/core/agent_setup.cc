#include "agent/core/agent_setup.h"

#include <algorithm>
#include <utility>

#include "agent/failure/masking.h"
#include "agent/memory/agent_memory.h"
#include "process/tree/child.h"
#include "process/tree/spawner.h"

namespace clawdforge {
namespace {

constexpr std::size_t kToldVersionCharacters = 100;
constexpr std::size_t kLoggedTailBytesMax = 2048;

}  // namespace

AgentGauges AgentGauges::in(Metrics& metrics) {
  return {.outbox_bytes = &metrics.gauge("clawdforge_agent_outbox_bytes",
                                         "Sent to sessions' agents and not read by them."),
          .early_bytes = &metrics.gauge("clawdforge_agent_early_bytes",
                                        "Said by sessions' agents while they are started."),
          .line_bytes = &metrics.gauge("clawdforge_agent_line_bytes",
                                       "Messages of sessions' agents that have only begun."),
          .output_bytes = &metrics.gauge("clawdforge_run_output_bytes",
                                         "Printed by the agents of runs so far.")};
}

void AgentSetup::adopt(AppName new_app) {
  if (tree) tree->app = new_app;
  app = std::move(new_app);
}

std::optional<std::int64_t> AgentSetup::now() const {
  if (clock == nullptr) return std::nullopt;
  return unix_seconds(clock->now());
}

std::string AgentSetup::note_version(std::string_view told) const {
  std::string shown = masked_line(told, kToldVersionCharacters);
  if (lore != nullptr) lore->version = shown;
  return shown;
}

void AgentSetup::note_choices(std::vector<std::string> models,
                              std::vector<std::string> efforts) const {
  if (lore == nullptr) return;
  if (!models.empty()) {
    models.resize(std::min(models.size(), kToldChoicesMax));
    lore->models = std::move(models);
  }
  if (!efforts.empty()) {
    efforts.resize(std::min(efforts.size(), kToldChoicesMax));
    lore->efforts = std::move(efforts);
  }
}

ProcessMark AgentSetup::mark_of(const Child& child) const {
  const ProcessId id = child.id();
  return {.pid = id.pid, .start_time = id.start_time, .boot_id = boot_id};
}

std::string AgentSetup::shown_tail(std::string_view tail) const {
  const std::size_t full = Spawner::Options{}.tail_bytes_max;
  if (tail.size() >= full) {
    const std::size_t blank = tail.substr(0, full / 8).find_first_of(" \t\n");
    if (blank != std::string_view::npos) tail.remove_prefix(blank + 1);
  }
  return masked(tail, secrets);
}

void AgentSetup::report_end(const Failure& why, std::string_view shown) const {
  if (log == nullptr) return;
  if (shown.size() > kLoggedTailBytesMax) shown.remove_prefix(shown.size() - kLoggedTailBytesMax);
  const std::string last = valid_utf8(shown);  // the cut may have gone through a character
  log->warn("an agent ended too early", {{"agent", std::string_view(spec.name)},
                                         {"app", std::string_view(app)},
                                         {"code", why.code},
                                         {"why", std::string_view(why.message)},
                                         {"stderr", std::string_view(last)}});
}

}  // namespace clawdforge
