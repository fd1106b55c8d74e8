#include "custody/keeper.h"

#include <algorithm>
#include <boost/json.hpp>
#include <utility>
#include <variant>

#include "base/async/async_tokens.h"
#include "base/async/task_group.h"
#include "json/json_fields.h"
#include "json/json_parse.h"
#include "process/tree/child.h"

namespace clawdforge {
namespace {

// `auth status --json` says it. Another command says nothing of it.
std::optional<bool> logged_in_by(const std::string& output) {
  const auto json = parse_json(output, kJsonDepthMax);
  if (!json || !json->is_object()) return std::nullopt;
  const auto* const found = json->as_object().if_contains("loggedIn");
  if (found == nullptr || !found->is_bool()) return std::nullopt;
  return found->as_bool();
}

}  // namespace

Task<void> Keeper::end_in_time() {
  const auto [error] = co_await deadline_.async_wait(kAwait);
  if (!error && child_ != nullptr) child_->let_go();
}

// All of it is read, so that the program is not stopped by a full pipe; a little is kept.
Task<std::string> Keeper::output() {
  std::string kept;
  while (true) {
    const auto piece = co_await child_->read(kKeeperWordBytesMax);
    if (!piece || piece->empty()) break;
    kept.append(*piece, 0, kKeeperWordBytesMax - std::min(kKeeperWordBytesMax, kept.size()));
  }
  co_return kept;
}

Task<KeeperWord> Keeper::run(ChildPlan plan) {
  auto spawned = spawner_.spawn(plan);
  if (!spawned) co_return KeeperWord{};
  const std::unique_ptr<Child> child = std::move(*spawned);
  child_ = child.get();
  child->close_input();
  TaskGroup watching(executor_);
  deadline_.expires_after(kKeeperTimeMax);
  watching.spawn(end_in_time());

  KeeperWord word;
  word.logged_in = logged_in_by(co_await output());
  const ExitStatus status = co_await child->exit();
  word.was_there = !std::holds_alternative<NotStarted>(status);
  child->let_go();
  co_await child->gone();
  deadline_.cancel();
  co_await watching.join();
  child_ = nullptr;
  co_return word;
}

}  // namespace clawdforge
