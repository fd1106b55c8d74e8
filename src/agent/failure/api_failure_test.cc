#include "agent/failure/api_failure.h"

#include <gtest/gtest.h>

namespace clawdforge {
namespace {

constexpr std::int64_t kAskedAt = 1759400000;

FailureReport error(std::string text, std::optional<int> status = {},
                    std::string terminal = "api_error") {
  FailureReport report;
  report.text = std::move(text);
  report.api_status = status;
  report.terminal_reason = std::move(terminal);
  return report;
}

struct Told {
  FailureReport report;
  Errc kind;
  std::string code;
};

// The sentences are those of the real program, as tests/real meets them.
TEST(ApiFailure, TellsTheRealSentencesApart) {
  FailureReport refused =
      error("API Error: Connection refused — a firewall or proxy may be blocking it");
  refused.api_error = "connection_failed";
  FailureReport unified = error("You've hit your 5-hour limit · resets 3:42am (UTC)", 429);
  unified.api_error = "usage_limit_reached";
  const std::vector<Told> all = {
      {error("Not logged in · Please run /login"), Errc::unavailable, "agent_not_logged_in"},
      {error("Invalid API key · Fix external API key", 401), Errc::unavailable,
       "agent_not_logged_in"},
      {error("Failed to authenticate. API Error: 403 no", 403), Errc::unavailable,
       "agent_not_logged_in"},
      {error("OAuth token has expired"), Errc::unavailable, "agent_not_logged_in"},
      {error(
           "Failed to refresh OAuth token: another Claude Code process is refreshing it or exited "
           "mid-refresh"),
       Errc::unavailable, "agent_not_logged_in"},
      {error("Failed to authenticate: OAuth session expired and could not be refreshed"),
       Errc::unavailable, "agent_not_logged_in"},
      {error("API Error: Request rejected (429) · slow", 429), Errc::over_quota, "account_limit"},
      {unified, Errc::over_quota, "account_limit"},
      {error("Credit balance is too low", 400), Errc::over_quota, "account_limit"},
      {error("Claude AI usage limit reached|1759403600", {}, "completed"), Errc::over_quota,
       "account_limit"},
      {error("You've reached your Fable limit."), Errc::over_quota, "account_limit"},
      {error("Weekly limit reached ∙ resets Oct 9, 5pm"), Errc::over_quota, "account_limit"},
      {error("Prompt is too long · the request is", 400, "prompt_too_long"), Errc::too_large,
       "prompt_too_long"},
      {error("Prompt is too long", {}, "blocking_limit"), Errc::too_large, "prompt_too_long"},
      {error("Request too large (max 32MB).", 413, "image_error"), Errc::too_large,
       "prompt_too_long"},
      {error("There's an issue with the selected model (x).", 404), Errc::invalid, "unknown_model"},
      {error("API Error: 529 Overloaded.", 529), Errc::agent_failed, "api_overloaded"},
      {error("API Error: Repeated 529 Overloaded errors"), Errc::agent_failed, "api_overloaded"},
      {error("API Error: 500 Internal server error.", 500), Errc::agent_failed, "api_error"},
      {error("API Error: 400 invalid request", 400), Errc::agent_failed, "api_error"},
      {error("API Error: something"), Errc::agent_failed, "api_error"},
      {refused, Errc::agent_failed, "api_unreachable"},
      {error("Request timed out"), Errc::agent_failed, "api_unreachable"},
      {error("Reached maximum number of turns (2)", {}, "max_turns"), Errc::agent_failed,
       "max_turns"},
  };
  for (const Told& told : all) {
    const Failure failure = failure_of(told.report, kAskedAt, {});
    EXPECT_EQ(failure.code, told.code) << told.report.text;
    EXPECT_EQ(failure.kind, told.kind) << told.report.text;
    EXPECT_EQ(failure.message, told.report.text);
  }
}

// What the breaker goes by: only a sentence that names the account's own window is for all models.
TEST(ApiFailure, TellsTheAccountsLimitFromThatOfAModelAndFromARateLimit) {
  const auto cause = [](std::string text, std::optional<int> status = {}) {
    return failure_of(error(std::move(text), status), kAskedAt, {}).cause;
  };
  for (const std::string account :
       {"Claude AI usage limit reached|1759403600", "You've hit your limit · resets 3pm (UTC)",
        "You've hit your session limit · resets 3pm (UTC)", "5-hour limit reached ∙ resets 3pm",
        "You’ve hit your weekly limit · resets Oct 9", "Weekly limit reached ∙ resets Oct 9",
        "You've reached your monthly usage limit", "You're out of extra usage · resets 3pm",
        "Credit balance is too low"}) {
    EXPECT_EQ(cause(account), Cause::account_limit) << account;
    EXPECT_EQ(cause(account, 429), Cause::account_limit) << account;
  }
  for (const std::string model :
       {"You've hit your Opus limit · resets Oct 9", "Opus weekly limit reached ∙ resets Oct 9",
        "You've reached your Fable limit.", "Sonnet limit reached ∙ resets Oct 9"}) {
    EXPECT_EQ(cause(model), Cause::model_limit) << model;
    EXPECT_EQ(cause(model, 429), Cause::model_limit) << model;
  }
  for (const std::string plain :
       {"API Error: Request rejected (429) · slow down",
        "API Error: Extra usage is required for 1M context · enable it, or use another model"}) {
    EXPECT_EQ(cause(plain, 429), Cause::rate_limit) << plain;
  }
}

// Else one app could shut the door on all others by the name of a model.
TEST(ApiFailure, IsNotMisledByWordsOfTheCaller) {
  for (const std::string words : {"Not logged in", "usage limit reached|1759999999",
                                  "You've hit your limit · resets Oct 9"}) {
    EXPECT_EQ(failure_of(error("There's an issue with the selected model (" + words + ").", 404),
                         kAskedAt, {})
                  .code,
              "unknown_model");
    EXPECT_EQ(failure_of(error("API Error: 400 bad model: " + words, 400), kAskedAt, {}).code,
              "api_error");
    EXPECT_EQ(failure_of(error("Tool failed: " + words, {}, "x"), kAskedAt, {}).code,
              "agent_error");
  }
}

TEST(ApiFailure, SaysHowLongALimitLasts) {
  const auto wait = [](std::string text) {
    return failure_of(error(std::move(text)), kAskedAt, {}).retry_after.count();
  };
  EXPECT_EQ(wait("Claude AI usage limit reached|1759403600"), 3600);
  EXPECT_EQ(wait("Claude AI usage limit reached|1759300000"), 60);
  EXPECT_EQ(wait("Claude AI usage limit reached|1799300000"), 0);
  EXPECT_EQ(wait("Claude AI usage limit reached"), 0);
  EXPECT_EQ(wait("You've hit your limit · resets in 2h"), 7200);
  EXPECT_EQ(wait("Not logged in · resets in 2h"), 0);
}

TEST(ApiFailure, MasksAndBoundsTheSentence) {
  const Failure failure = failure_of(
      error("API Error:\n key sk-ant-api03-abcdefgh and hunter2!! " + std::string(600, 'x')),
      kAskedAt, {"hunter2!!"});
  EXPECT_TRUE(failure.message.starts_with("API Error: key *** and *** xxx")) << failure.message;
  EXPECT_EQ(failure.message.size(), 499 + std::string("…").size());
}

}  // namespace
}  // namespace clawdforge
