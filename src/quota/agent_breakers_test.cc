#include "quota/agent_breakers.h"

#include <gtest/gtest.h>

namespace clawdforge {
namespace {
using namespace std::chrono_literals;

const AgentBreakers::SteadyTime kBegin{};

std::optional<Failure> failing(Cause cause, std::chrono::seconds retry_after = {}) {
  return Failure{.code = "a_code", .retry_after = retry_after, .cause = cause};
}

class AgentBreakersTest : public ::testing::Test {
 protected:
  std::optional<Failure> end_run(const std::string& model, std::optional<Failure> failure,
                                 AgentBreakers::SteadyTime now = kBegin) {
    breakers_.let_through({"claude", model}).settle(failure, now);
    return failure;
  }
  bool refuses(const std::string& model, AgentBreakers::SteadyTime now = kBegin,
               const std::string& agent = "claude") const {
    return breakers_.refusal({agent, model}, now).has_value();
  }

  AgentBreakers breakers_;
};

TEST_F(AgentBreakersTest, ALimitOfAModelIsThatModelsAlone) {
  end_run("opus", failing(Cause::model_limit, 1h));
  EXPECT_TRUE(refuses("opus", kBegin + 50min));
  EXPECT_FALSE(refuses("sonnet"));
  EXPECT_FALSE(refuses("opus", kBegin, "demo"));
  EXPECT_FALSE(refuses("opus", kBegin + 1h)) << "one tries";
}

TEST_F(AgentBreakersTest, TheAccountsLimitAndAMissingLoginAreThoseOfAllModels) {
  for (const Cause cause : {Cause::account_limit, Cause::login}) {
    end_run("opus", failing(cause));
    EXPECT_TRUE(refuses("opus"));
    EXPECT_TRUE(refuses("sonnet"));
    EXPECT_FALSE(refuses("opus", kBegin, "demo"));
    end_run("haiku", std::nullopt);
    EXPECT_FALSE(refuses("sonnet")) << "a run of any model shows that it works";
  }
  EXPECT_EQ(breakers_.shut_models(), 0u);
}

TEST_F(AgentBreakersTest, ARequestToSlowDownShutsForSeconds) {
  EXPECT_EQ(end_run("opus", failing(Cause::rate_limit))->retry_after, 10s);
  EXPECT_TRUE(refuses("opus", kBegin + 9s));
  EXPECT_FALSE(refuses("opus", kBegin + 10s));
  EXPECT_FALSE(refuses("sonnet"));
}

TEST_F(AgentBreakersTest, OneRunTriesTheModelAndItsEndDecides) {
  end_run("opus", failing(Cause::model_limit, 60s));
  {
    const auto trial = breakers_.let_through({"claude", "opus"});
    EXPECT_TRUE(refuses("opus", kBegin + 61s)) << "one is enough";
  }
  EXPECT_FALSE(refuses("opus", kBegin + 61s)) << "it said nothing";
  end_run("opus", failing(Cause::agent_exited), kBegin + 61s);
  EXPECT_EQ(breakers_.shut_models(), 1u);
  end_run("opus", failing(Cause::model_limit, 60s), kBegin + 61s);
  EXPECT_TRUE(refuses("opus", kBegin + 62s));
  end_run("opus", std::nullopt, kBegin + 130s);
  EXPECT_EQ(breakers_.shut_models(), 0u) << "an open breaker needs no entry";
}

TEST_F(AgentBreakersTest, ARunFromBeforeTheShuttingOpensTheModelWhenItSucceeds) {
  auto earlier = breakers_.let_through({"claude", "opus"});
  end_run("opus", failing(Cause::model_limit));
  std::optional<Failure> success;
  earlier.settle(success, kBegin);
  EXPECT_FALSE(refuses("opus"));
}

TEST_F(AgentBreakersTest, InventedNamesDoNotFillTheTable) {
  end_run("opus", failing(Cause::model_limit, 1h));
  const auto trial = breakers_.let_through({"claude", "invented-0"});
  for (std::size_t i = 0; i < 3 * kModelBreakersMax; ++i) {
    end_run("invented-" + std::to_string(i), failing(Cause::rate_limit));
  }
  EXPECT_EQ(breakers_.shut_models(), kModelBreakersMax);
  EXPECT_TRUE(refuses("opus")) << "what is shut for longest stays";
}

}  // namespace
}  // namespace clawdforge
