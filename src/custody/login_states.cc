#include "custody/login_states.h"

#include <algorithm>
#include <array>

#include "base/refusals.h"

namespace clawdforge {
namespace {

using std::chrono::seconds;

constexpr std::array<seconds, 5> kTryPauses = {seconds(5), seconds(10), seconds(20), seconds(40),
                                               seconds(60)};
constexpr int kWordTries = 3;  // of a program that says nothing of its login
constexpr seconds kRenewingWait{3};
constexpr seconds kLoggedOutWait{60};
constexpr seconds kLookEvery{30};  // a clock may be set, a machine may sleep
// A refusal that comes so soon after a renewal is not mended by another one.
constexpr seconds kRefusedAgainWithin{60};

LoginRefusal refused_by(std::unexpected<Failure> failure, bool may_wait = false) {
  failure.error().cause = Cause::login;
  return {std::move(failure.error()), may_wait};
}

LoginRefusal not_logged_in(std::string_view hint, seconds wait) {
  return refused_by(
      fail_for_now(Errc::unavailable, "agent_not_logged_in", std::string(hint), wait));
}

}  // namespace

std::string_view name_of(CustodyState state) {
  switch (state) {
    case CustodyState::external:
      return "external";
    case CustodyState::ok:
      return "ok";
    case CustodyState::renewing:
      return "renewing";
    case CustodyState::late:
      return "late";
    case CustodyState::unreachable:
      return "unreachable";
    case CustodyState::refused:
      return "refused";
    case CustodyState::logged_out:
      break;
  }
  return "logged_out";
}

bool LoginStates::has_login(TimePoint now) const {
  if (!file_.has_access) return false;
  return file_.has_refresh || !file_.expires_at || now < *file_.expires_at;
}

void LoginStates::note_good() {
  tries_ = 0;
  next_try_ = TimePoint();
  is_refused_ = false;
}

void LoginStates::note_file(const LoginFile& file, TimePoint now) {
  const bool had_login = has_looked_ && has_login(now);
  const LoginFile before = file_;
  file_ = file;
  if (has_login(now)) is_elsewhere_ = false;
  // A login that has come is confirmed by its program, and so is that there is none.
  if (!has_looked_) needs_word_ = !has_login(now);
  if (has_looked_ && !had_login && has_login(now)) {
    needs_word_ = true;
    note_good();
  }
  has_looked_ = true;
  if (before.expires_at && file.expires_at > before.expires_at) {
    renewed_at_ = now;
    note_good();
  }
}

std::optional<KeeperTask> LoginStates::keeper_due(TimePoint now) const {
  if (keeper_ || !has_looked_ || now < next_try_) return std::nullopt;
  if (needs_word_ || needs_trial_) return KeeperTask::renew;
  if (!has_login(now) || !file_.has_refresh) return std::nullopt;
  if (is_refused_) return KeeperTask::force;
  if (file_.expires_at && now + kRenewBefore >= *file_.expires_at) return KeeperTask::renew;
  return std::nullopt;
}

void LoginStates::note_keeper(KeeperTask task) { keeper_ = task; }

void LoginStates::postpone(TimePoint now) {
  const auto index = static_cast<std::size_t>(tries_);
  next_try_ = now + kTryPauses.at(std::min(index, kTryPauses.size() - 1));
  ++tries_;
}

bool LoginStates::note_keeper_end(const KeeperWord& word, const LoginFile& after, TimePoint now) {
  const auto before = file_.expires_at;
  keeper_.reset();
  note_file(after, now);
  needs_word_ = false;
  needs_trial_ = false;
  is_program_gone_ = !word.was_there;
  if (is_program_gone_) {
    needs_word_ = !has_login(now);
    postpone(now);
    return false;
  }
  if (!has_login(now)) {
    is_elsewhere_ = word.logged_in.value_or(false);
    needs_word_ = !word.logged_in && tries_ < kWordTries;
    if (needs_word_) postpone(now);
    return false;
  }
  // What it exits with proves nothing: a later end does.
  if (before && after.expires_at > before) return true;
  const bool is_due = is_refused_ || (after.expires_at && now + kRenewBefore >= *after.expires_at);
  if (is_due) postpone(now);
  return false;
}

void LoginStates::note_refused(TimePoint begun, TimePoint now) {
  if (is_refused_ || !has_login(now) || (renewed_at_ && begun < *renewed_at_)) return;
  is_refused_ = true;
  if (renewed_at_ && now - *renewed_at_ < kRefusedAgainWithin) postpone(now);
}

CustodyState LoginStates::state(TimePoint now) const {
  if (is_elsewhere_ || is_program_gone_) return CustodyState::external;
  if (!has_looked_ || needs_word_) return CustodyState::late;
  if (!has_login(now)) return CustodyState::logged_out;
  // One that cannot be renewed is not mended.
  if (is_refused_) return file_.has_refresh ? CustodyState::refused : CustodyState::logged_out;
  if (!file_.expires_at || now + kRenewBefore < *file_.expires_at) return CustodyState::ok;
  if (now + kTooLateBefore <= *file_.expires_at) {
    return file_.has_refresh ? CustodyState::renewing : CustodyState::ok;
  }
  const bool is_expired = now >= *file_.expires_at;
  return is_expired && tries_ > 0 ? CustodyState::unreachable : CustodyState::late;
}

std::optional<LoginRefusal> LoginStates::refusal(TimePoint now, std::string_view hint) const {
  const auto until_next =
      std::max(seconds(1), std::chrono::ceil<seconds>(std::max(next_try_, now) - now));
  switch (state(now)) {
    case CustodyState::external:
    case CustodyState::ok:
    case CustodyState::renewing:
      return std::nullopt;
    case CustodyState::refused:
      // After a renewal that has not helped, or that there was none.
      if (!keeper_ && now < next_try_) return not_logged_in(hint, until_next);
      [[fallthrough]];
    case CustodyState::late:
      return refused_by(
          fail_for_now(Errc::unavailable, "login_renewing",
                       "The login of the agent is being renewed; it is safe to try again.",
                       kRenewingWait),
          true);
    case CustodyState::unreachable:
      return refused_by(fail_for_now(
          Errc::unavailable, "login_unreachable",
          "The login of the agent has expired, and its maker does not answer; it is safe to try "
          "again.",
          until_next));
    case CustodyState::logged_out:
      break;
  }
  return not_logged_in(hint, kLoggedOutWait);
}

TimePoint LoginStates::next_look(TimePoint now) const {
  TimePoint next = now + kLookEvery;
  const auto consider = [&](TimePoint time) {
    if (time > now) next = std::min(next, time);
  };
  consider(next_try_);
  if (file_.expires_at) {
    consider(*file_.expires_at - kRenewBefore);
    consider(*file_.expires_at - kTooLateBefore);
    consider(*file_.expires_at);
  }
  return next;
}

}  // namespace clawdforge
