#include "agent/claude/cli_failure.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "agent/claude/limit_end.h"
#include "agent/core/masking.h"

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
constexpr Kind kNotLoggedIn{Errc::unavailable, "agent_not_logged_in", Cause::login};
constexpr Kind kApiOverloaded{Errc::agent_failed, "api_overloaded"};
constexpr Kind kApiUnreachable{Errc::agent_failed, "api_unreachable", Cause::other};
constexpr Kind kApiError{Errc::agent_failed, "api_error"};
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

bool says_login(std::string_view lower) {
  return begins(lower, "not logged in", "invalid api key", "please run /login",
                "failed to authenticate", "oauth token", "authentication_error",
                "your account does not have access to claude");
}

bool says_no_connection(std::string_view lower) {
  return begins(lower, "api error: connection", "api error: unable to connect",
                "api error: request timed out", "request timed out", "unable to connect to api",
                "connection error");
}

// The model's name is the caller's own text and stands in the sentence: it is looked at
// before anything that would close the door to other callers.
Kind kind_of(const CliResult& result) {
  const std::string lower = lower_of(result.text);
  const int status = result.api_status.value_or(0);
  const auto reason_is = [&](std::string_view reason) { return result.terminal_reason == reason; };

  if (reason_is("prompt_too_long") || reason_is("blocking_limit") || status == 413 ||
      begins(lower, "prompt is too long", "request too large")) {
    return kPromptTooLong;
  }
  if (status == 404 || begins(lower, "there's an issue with the selected model")) {
    return kUnknownModel;
  }
  if (status == 429 || result.api_error == "usage_limit_reached") return kAccountLimit;
  if ((status == 0 || status == 400) && says_limit(lower)) return kAccountLimit;
  if (status == 401 || ((status == 0 || status == 403) && says_login(lower))) return kNotLoggedIn;
  if (status == 529 || result.api_error_type == "overloaded_error" ||
      begins(lower, "api error: repeated 529")) {
    return kApiOverloaded;
  }
  if (status != 0) return kApiError;
  if (result.api_error == "connection_failed" || says_no_connection(lower)) {
    return kApiUnreachable;
  }
  if (begins(lower, "api error")) return kApiError;
  return kAgentError;
}

std::chrono::seconds wait_for(std::string_view sentence, std::int64_t now) {
  constexpr std::int64_t kSoon = 60;  // its time has come, or comes at once
  const auto end = limit_end(sentence, now);
  if (!end || *end > now + kLimitWaitMax.count()) return std::chrono::seconds(0);
  return std::chrono::seconds(std::max(kSoon, *end - now));
}

Failure no_resources() {
  return {.kind = Errc::unavailable,
          .code = "no_resources",
          .message = "The system refuses another process at the moment.",
          .retry_after = std::chrono::seconds(2)};
}

Failure failure_to_start(const std::string& agent, int error) {
  constexpr std::array kAbsent = {ENOENT, ENOTDIR, EACCES, EPERM, ENOEXEC, ELOOP, EISDIR};
  // The system has no more of something; the agent is not to blame. ENOSPC: of namespaces.
  constexpr std::array kScarce = {EAGAIN, ENOMEM, EMFILE, ENFILE, EUSERS, ENOSPC};
  if (std::ranges::find(kScarce, error) != kScarce.end()) return no_resources();
  const bool is_missing = std::ranges::find(kAbsent, error) != kAbsent.end();
  return {.kind = Errc::unavailable,
          .code = is_missing ? "agent_missing" : "agent_not_started",
          .message = fmt::format("{} could not be started: {}", agent, std::strerror(error)),
          .cause = is_missing ? Cause::agent_missing : Cause::other};
}

}  // namespace

Failure failure_of(const CliResult& result, std::int64_t now,
                   const std::vector<std::string>& secrets) {
  const Kind kind = kind_of(result);
  Failure failure{.kind = kind.kind,
                  .code = kind.code,
                  .message = masked_line(result.text, kSentenceCharactersMax, secrets),
                  .cause = kind.cause};
  if (kind.cause == Cause::account_limit) failure.retry_after = wait_for(result.text, now);
  return failure;
}

Failure failure_of(const std::string& agent, const SilentEnd& end) {
  if (const auto* not_started = std::get_if<NotStarted>(&end.status)) {
    return failure_to_start(agent, not_started->error);
  }
  Failure failure{.kind = Errc::agent_failed, .cause = Cause::agent_exited};
  if (const auto* exited = std::get_if<Exited>(&end.status)) {
    failure.code = exited->code != 0 ? "agent_exit"
                   : end.has_output  ? "agent_nonsense"
                                     : "agent_silent";
    failure.message = fmt::format("{} exit {}", agent, exited->code);
  } else if (const auto* signaled = std::get_if<Signaled>(&end.status)) {
    failure.code = "agent_signal";
    failure.message = fmt::format("{} signal {}", agent, signaled->number);
  } else {
    failure.code = "agent_lost";
    failure.message = fmt::format("{} ended in an unknown way", agent);
  }
  if (end.is_too_large) {
    failure.code = "agent_output_too_large";
    failure.message = fmt::format("{} printed more than {} MiB without a result", agent,
                                  kResultBytesMax / (1024 * 1024));
  }
  // Over ten million bytes the command line refuses the prompt on its standard error alone.
  if (end.error_tail.contains("piped stdin input exceeds")) {
    failure.kind = kPromptTooLong.kind;
    failure.code = kPromptTooLong.code;
    failure.cause = kPromptTooLong.cause;
  }
  return failure;
}

}  // namespace clawdforge
