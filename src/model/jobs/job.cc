#include "model/jobs/job.h"

#include <algorithm>
#include <array>
#include <utility>

namespace clawdforge {
namespace {

constexpr std::array<std::pair<JobKind, std::string_view>, 2> kJobKinds = {
    {{JobKind::run, "run"}, {JobKind::turn, "turn"}}};
constexpr std::array<std::pair<JobState, std::string_view>, 6> kJobStates = {
    {{JobState::queued, "queued"},
     {JobState::running, "running"},
     {JobState::succeeded, "succeeded"},
     {JobState::failed, "failed"},
     {JobState::cancelled, "cancelled"},
     {JobState::interrupted, "interrupted"}}};

template <class Table>
auto value_named(const Table& table, std::string_view name)
    -> std::optional<typename Table::value_type::first_type> {
  const auto found = std::ranges::find(table, name, &Table::value_type::second);
  if (found == table.end()) return std::nullopt;
  return found->first;
}

}  // namespace

std::string_view name_of(JobKind kind) {
  return std::ranges::find(kJobKinds, kind, &decltype(kJobKinds)::value_type::first)->second;
}

std::string_view name_of(JobState state) {
  return std::ranges::find(kJobStates, state, &decltype(kJobStates)::value_type::first)->second;
}

std::optional<JobKind> job_kind_from(std::string_view name) { return value_named(kJobKinds, name); }

std::optional<JobState> job_state_from(std::string_view name) {
  return value_named(kJobStates, name);
}

}  // namespace clawdforge
