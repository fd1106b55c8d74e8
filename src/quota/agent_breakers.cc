#include "quota/agent_breakers.h"

#include <algorithm>

namespace clawdforge {

AgentBreakers::Pass::Pass(AgentBreakers& all, Model model)
    : all_(&all),
      model_(std::move(model)),
      of_agent_(all.agents_.try_emplace(model_.first, AgentBreaker::Scope::agent)
                    .first->second.let_through()) {
  const auto shut = all.models_.find(model_);
  if (shut == all.models_.end()) return;
  shut_model_ = shut->second;
  of_model_ = shut_model_->let_through();
}

void AgentBreakers::Pass::settle(std::optional<Failure>& failure, SteadyTime now) {
  of_agent_.settle(failure, now);
  of_model_.reset();  // its trial is over; what it says counts for the breaker that is there now
  all_->settle_model(model_, failure, now);
}

std::optional<Failure> AgentBreakers::refusal(const Model& model, SteadyTime now) const {
  if (const auto agent = agents_.find(model.first); agent != agents_.end()) {
    if (auto refused = agent->second.refusal(now)) return refused;
  }
  const auto shut = models_.find(model);
  return shut == models_.end() ? std::nullopt : shut->second->refusal(now);
}

void AgentBreakers::settle_model(const Model& model, std::optional<Failure>& failure,
                                 SteadyTime now) {
  auto found = models_.find(model);
  if (found == models_.end()) {
    if (!failure || !AgentBreaker::shuts(AgentBreaker::Scope::model, failure->cause)) return;
    make_room();
    found =
        models_.emplace(model, std::make_shared<AgentBreaker>(AgentBreaker::Scope::model)).first;
  }
  found->second->note(failure, now);
  if (!found->second->is_shut()) models_.erase(found);
}

void AgentBreakers::make_room() {
  if (models_.size() < kModelBreakersMax) return;
  models_.erase(std::ranges::min_element(models_, {},
                                         [](const auto& entry) { return entry.second->try_at(); }));
}

}  // namespace clawdforge
