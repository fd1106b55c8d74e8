#include "ledger/rows/worktree_rows.h"

#include <utility>

#include "ledger/core/ledger_worker.h"
#include "ledger/core/row_values.h"

namespace clawdforge {
namespace {

constexpr std::string_view kAddWorktree =
    "INSERT INTO worktrees (owner_id, repository, path, branch, keeps_branch, created_at) "
    "VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (owner_id) DO NOTHING";
constexpr std::string_view kKeepBranch =
    "UPDATE worktrees SET keeps_branch = 1 WHERE owner_id = $1";
constexpr std::string_view kWorktreesWithoutSession =
    "SELECT owner_id, repository, path, branch, keeps_branch FROM worktrees WHERE NOT EXISTS "
    "(SELECT 1 FROM sessions WHERE sessions.session_id = worktrees.owner_id) "
    "ORDER BY created_at LIMIT $1";
constexpr std::string_view kFindWorktree =
    "SELECT owner_id, repository, path, branch, keeps_branch FROM worktrees WHERE owner_id = $1";
constexpr std::string_view kRemoveWorktree = "DELETE FROM worktrees WHERE owner_id = $1";

Worktree worktree_from(const SqlRow& row) {
  return {.owner_id = text_in(row.at(0)).value_or(""),
          .repository = text_in(row.at(1)).value_or(""),
          .path = text_in(row.at(2)).value_or(""),
          .branch = text_in(row.at(3)).value_or(""),
          .keeps_branch = whole_in(row.at(4)).value_or(1) != 0};
}

}  // namespace

Async<void> WorktreeRows::add(Worktree worktree, TimePoint now, Lane lane) {
  return worker_.call<void>(
      std::move(lane), Access::write, [worktree = std::move(worktree), now](SqlDriver& driver) {
        return without_rows(driver.execute(
            kAddWorktree, {worktree.owner_id, worktree.repository, worktree.path, worktree.branch,
                           std::int64_t{worktree.keeps_branch ? 1 : 0}, unix_seconds(now)}));
      });
}

Async<void> WorktreeRows::keep_branch(std::string owner_id, Lane lane) {
  return worker_.call<void>(std::move(lane), Access::write,
                            [id = std::move(owner_id)](SqlDriver& driver) {
                              return without_rows(driver.execute(kKeepBranch, {id}));
                            });
}

Async<std::optional<Worktree>> WorktreeRows::find(std::string owner_id) const {
  return worker_.call<std::optional<Worktree>>(
      Lane(), Access::read,
      [id = std::move(owner_id)](SqlDriver& driver) -> Result<std::optional<Worktree>> {
        auto result = driver.execute(kFindWorktree, {id});
        if (!result) return std::unexpected(std::move(result.error()));
        if (result->rows.empty()) return std::nullopt;
        return worktree_from(result->rows.front());
      });
}

Async<std::vector<Worktree>> WorktreeRows::without_session(std::int64_t limit) const {
  return worker_.call<std::vector<Worktree>>(
      Lane(), Access::read, [limit](SqlDriver& driver) -> Result<std::vector<Worktree>> {
        auto result = driver.execute(kWorktreesWithoutSession, {limit});
        if (!result) return std::unexpected(std::move(result.error()));
        std::vector<Worktree> found;
        for (const SqlRow& row : result->rows) found.push_back(worktree_from(row));
        return found;
      });
}

Async<void> WorktreeRows::remove(std::string owner_id) {
  return worker_.call<void>(Lane(), Access::write, [id = std::move(owner_id)](SqlDriver& driver) {
    return without_rows(driver.execute(kRemoveWorktree, {id}));
  });
}

}  // namespace clawdforge
