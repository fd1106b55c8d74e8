// Questions are the permissions that an agent asks for and that an app has to decide. Each
// is answered exactly once: by an app, by its expiry, or because its turn has ended. Belongs
// to a LiveSession; io thread only.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/core/session_agent.h"
#include "base/async/timer.h"
#include "base/clock.h"
#include "base/result.h"
#include "sessions/live/permissions.h"
#include "transcript/open_question.h"

namespace clawdforge {

// Answered questions that are still known to be so; an older one is not found.
inline constexpr std::size_t kAnsweredQuestionsMax = 256;

// What is kept of an agent's words on the tool that it asks for, while the question is open.
inline constexpr std::size_t kToolBytesMax = 256 * 1024;
inline constexpr std::size_t kToolBytesMaxPerSession = 1024 * 1024;

class Questions {
 public:
  // Told once for each question, with who decided: "app", "owner", "expiry" or "cancel".
  using OnDecision = std::function<void(const OpenQuestion&, const Decision&, std::string_view by)>;

  Questions(IoExecutor executor, std::chrono::seconds expiry, OnDecision on_decision);
  ~Questions();
  Questions(const Questions&) = delete;
  Questions& operator=(const Questions&) = delete;

  std::chrono::seconds expiry() const { return expiry_; }
  void add(OpenQuestion question);
  // One that was decided by a rule, without asking an app.
  void note_answered(std::string id);
  std::vector<OpenQuestion> open() const;  // the oldest first
  std::size_t open_count() const { return waiting_.size(); }

  // Errc::not_found "permission_not_found", Errc::conflict "already_answered", Errc::invalid
  // "unknown_option" when the question has no such option. A plain no is never refused.
  Result<void> answer(const std::string& id, const PermissionChoice& choice);
  // All that are open, as cancelled.
  void cancel();

 private:
  struct Waiting;
  void decide_one(std::list<std::shared_ptr<Waiting>>::iterator found, const Decision& decision,
                  std::string_view by);

  const IoExecutor executor_;
  const std::chrono::seconds expiry_;
  const OnDecision on_decision_;
  std::list<std::shared_ptr<Waiting>> waiting_;
  std::deque<std::string> answered_;
};

}  // namespace clawdforge
