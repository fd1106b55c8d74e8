// AgentBreakers has a breaker for each agent, and one for each model of an agent that turned out to
// be at a limit of its own. A run asks both: the agent's is shut for all models when there is no
// login or the account's allowance is used up; a model's is shut for its own limit, or for seconds
// when the API asks to slow down. Io thread only; it outlives its passes.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/result.h"
#include "quota/agent_breaker.h"

namespace clawdforge {

// Names of models are words of callers: where so many are shut, the one that would be tried first
// is forgotten for the next.
inline constexpr std::size_t kModelBreakersMax = 256;

class AgentBreakers {
 public:
  using SteadyTime = AgentBreaker::SteadyTime;
  using Model = std::pair<std::string, std::string>;  // an agent, and a name of a model

  // A run that was let through. Dropped without settle() it says nothing.
  class Pass {
   public:
    // How the run ended; none is success. A failure that shuts a breaker is told how long.
    void settle(std::optional<Failure>& failure, SteadyTime now);
    bool is_trial() const { return of_agent_.is_trial() || (of_model_ && of_model_->is_trial()); }

   private:
    friend class AgentBreakers;
    Pass(AgentBreakers& all, Model model);

    AgentBreakers* all_;
    Model model_;
    AgentBreaker::Pass of_agent_;
    std::shared_ptr<AgentBreaker> shut_model_;  // whose trial this run may be
    std::optional<AgentBreaker::Pass> of_model_;
  };

  // Why not, with the time to wait; none: let_through() now, in the same step.
  std::optional<Failure> refusal(const Model& model, SteadyTime now) const;
  Pass let_through(Model model) { return Pass(*this, std::move(model)); }

  std::size_t shut_models() const { return models_.size(); }

 private:
  using Models = std::map<Model, std::shared_ptr<AgentBreaker>>;

  void settle_model(const Model& model, std::optional<Failure>& failure, SteadyTime now);
  void make_room();

  std::map<std::string, AgentBreaker> agents_;
  Models models_;  // those that are shut
};

}  // namespace clawdforge
