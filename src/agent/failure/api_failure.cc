#include "agent/failure/api_failure.h"

#include <algorithm>
#include <ranges>
#include <string_view>

#include "agent/failure/agent_failure.h"
#include "agent/failure/limit_end.h"
#include "agent/failure/masking.h"

namespace clawdforge {
namespace {

struct Kind {
  Errc kind;
  std::string_view code;
  Cause cause = Cause::agent_said_so;
};

constexpr Kind kPromptTooLong{Errc::too_large, "prompt_too_long"};
constexpr Kind kUnknownModel{Errc::invalid, "unknown_model"};
constexpr Kind kAccountLimit{Errc::over_quota, "account_limit", Cause::account_limit};
constexpr Kind kModelLimit{Errc::over_quota, "account_limit", Cause::model_limit};
constexpr Kind kRateLimit{Errc::over_quota, "account_limit", Cause::rate_limit};
constexpr Kind kNotLoggedIn{Errc::unavailable, "agent_not_logged_in", Cause::login};
constexpr Kind kApiOverloaded{Errc::agent_failed, "api_overloaded"};
constexpr Kind kApiUnreachable{Errc::agent_failed, "api_unreachable", Cause::other};
constexpr Kind kApiError{Errc::agent_failed, "api_error"};
constexpr Kind kMaxTurns{Errc::agent_failed, "max_turns"};
constexpr Kind kSchemaNotMet{Errc::agent_failed, "schema_not_met"};
constexpr Kind kAgentError{Errc::agent_failed, "agent_error"};

std::string lower_of(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return lower;
}

template <class... Begins>
bool begins(std::string_view text, Begins... with) {
  return (text.starts_with(with) || ...);
}

// As the versions of the last year and a half have put it. Only the sentence's beginning
// counts: what follows may repeat words of the caller.
bool says_limit(std::string_view lower) {
  if (begins(lower, "claude ai usage limit reached", "claude usage limit reached",
             "credit balance is too low", "you're out of extra usage", "you've hit your",
             "you’ve hit your", "you've reached your", "you’ve reached your")) {
    return lower.contains("limit") || lower.contains("credit") || lower.contains("usage");
  }
  return begins(lower, "5-hour limit reached", "session limit reached", "weekly limit reached",
                "opus weekly limit reached", "opus limit reached", "sonnet weekly limit reached",
                "sonnet limit reached", "usage limit reached");
}

// The words before "limit" name what is used up. The account's own windows have the names below;
// any other word is taken for a model's name: to take the account's limit for that of a model costs
// a few runs in vain, the other mistake refuses all apps for hours.
bool names_model(std::string_view lower) {
  constexpr std::string_view kWindows[] = {"you've", "you’ve", "hit",    "reached", "your",
                                           "claude", "ai",     "usage",  "5-hour",  "session",
                                           "weekly", "daily",  "hourly", "monthly", "account",
                                           "org's",  "team's", "spend",  "spending"};
  const std::size_t end = lower.find("limit");
  if (end == lower.npos) return false;
  for (const auto word : std::views::split(lower.substr(0, end), ' ')) {
    const std::string_view text(word.begin(), word.end());
    if (!text.empty() && std::ranges::find(kWindows, text) == std::end(kWindows)) return true;
  }
  return false;
}

const Kind& limit_of(std::string_view lower) {
  return names_model(lower) ? kModelLimit : kAccountLimit;
}

bool says_login(std::string_view lower) {
  return begins(lower, "not logged in", "invalid api key", "please run /login",
                "failed to authenticate", "failed to refresh oauth token", "oauth token",
                "authentication_error", "your account does not have access to claude");
}

bool says_no_connection(std::string_view lower) {
  return begins(lower, "api error: connection", "api error: unable to connect",
                "api error: request timed out", "request timed out", "unable to connect to api",
                "connection error");
}

// The model's name is the caller's own text and stands in the sentence: it is looked at
// before anything that would refuse other callers.
const Kind& kind_of(const FailureReport& report) {
  // What is looked for stands at the beginning, and the text may have many megabytes.
  const std::string lower = lower_of(std::string_view(report.text).substr(0, kMaskedLineBytesMax));
  const int status = report.api_status.value_or(0);
  const auto reason_is = [&](std::string_view reason) { return report.terminal_reason == reason; };

  if (reason_is("prompt_too_long") || reason_is("blocking_limit") || status == 413 ||
      begins(lower, "prompt is too long", "request too large")) {
    return kPromptTooLong;
  }
  if (reason_is("max_turns") || begins(lower, "reached maximum number of turns")) return kMaxTurns;
  if (reason_is("structured_output_retry_exhausted")) return kSchemaNotMet;
  if (status == 404 || begins(lower, "there's an issue with the selected model")) {
    return kUnknownModel;
  }
  const bool may_say_limit = status == 0 || status == 400 || status == 429;
  if (may_say_limit && says_limit(lower)) return limit_of(lower);
  if (report.api_error == "usage_limit_reached") return limit_of(lower);
  if (status == 429) return kRateLimit;
  if (status == 401 || ((status == 0 || status == 403) && says_login(lower))) return kNotLoggedIn;
  if (status == 529 || report.api_error_type == "overloaded_error" ||
      begins(lower, "api error: repeated 529")) {
    return kApiOverloaded;
  }
  if (status != 0) return kApiError;
  if (report.api_error == "connection_failed" || says_no_connection(lower)) {
    return kApiUnreachable;
  }
  if (begins(lower, "api error")) return kApiError;
  return kAgentError;
}

std::chrono::seconds wait_for(std::string_view sentence, std::int64_t now) {
  constexpr std::int64_t kSoon = 60;  // its time has come already
  const auto end = limit_end(sentence, now);
  if (!end || *end > now + kLimitWaitMax.count()) return std::chrono::seconds(0);
  return std::chrono::seconds(*end > now ? *end - now : kSoon);
}

}  // namespace

Failure failure_of(const FailureReport& report, std::optional<std::int64_t> now,
                   const std::vector<std::string>& secrets) {
  const Kind& kind = kind_of(report);
  Failure failure{.kind = kind.kind,
                  .code = kind.code,
                  .message = masked_line(report.text, kSentenceCharactersMax, secrets),
                  .cause = kind.cause};
  if (now && (kind.cause == Cause::account_limit || kind.cause == Cause::model_limit)) {
    failure.retry_after =
        wait_for(std::string_view(report.text).substr(0, kMaskedLineBytesMax), *now);
  }
  return failure;
}

bool is_recognised(const FailureReport& report) { return &kind_of(report) != &kAgentError; }

}  // namespace clawdforge
