#include "sessions/live/questions.h"

#include <algorithm>
#include <utility>

namespace clawdforge {

struct Questions::Waiting {
  Waiting(IoExecutor executor, OpenQuestion asked) : question(std::move(asked)), expiry(executor) {}

  OpenQuestion question;
  Timer expiry;
};

Questions::Questions(IoExecutor executor, std::chrono::seconds expiry, OnDecision on_decision)
    : executor_(executor), expiry_(expiry), on_decision_(std::move(on_decision)) {}

Questions::~Questions() = default;

void Questions::add(OpenQuestion question) {
  std::size_t kept = question.tool.size();
  for (const auto& waiting : waiting_) kept += waiting->question.tool.size();
  if (question.tool.size() > kToolBytesMax || kept > kToolBytesMaxPerSession) {
    question.tool = {};
    question.is_tool_cut = true;
  }
  waiting_.push_back(std::make_shared<Waiting>(executor_, std::move(question)));
  Waiting& waiting = *waiting_.back();
  waiting.expiry.expires_after(expiry_);
  // The question dies with us. Its timer may have fired by then and be told only later.
  waiting.expiry.async_wait(
      [this, weak = std::weak_ptr(waiting_.back())](boost::system::error_code error) {
        const auto expired = weak.lock();
        if (error || !expired) return;
        const auto found = std::ranges::find(waiting_, expired);
        if (found == waiting_.end()) return;
        decide_one(found, choice_of(false, expired->question.asked), "expiry");
      });
}

std::vector<OpenQuestion> Questions::open() const {
  std::vector<OpenQuestion> all;
  for (const auto& waiting : waiting_) all.push_back(waiting->question);
  return all;
}

Result<void> Questions::answer(const std::string& id, const PermissionChoice& choice) {
  const auto found = std::ranges::find_if(
      waiting_, [&](const auto& waiting) { return waiting->question.id == id; });
  if (found == waiting_.end()) {
    if (std::ranges::find(answered_, id) != answered_.end()) {
      return fail(Errc::conflict, "already_answered", "This question has been answered already.");
    }
    return fail(Errc::not_found, "permission_not_found", "There is no such question.");
  }
  const PermissionRequest& asked = (*found)->question.asked;
  Decision decision;
  if (choice.option_id) {
    const auto option =
        std::ranges::find(asked.options, *choice.option_id, &PermissionOption::option_id);
    if (option != asked.options.end()) {
      decision = {.is_allowed = option->kind.starts_with("allow"), .option_id = option->option_id};
    }
  } else {
    decision = choice_of(choice.allows.value_or(false), asked);
  }
  // A plain no is always possible: without an option for it the question is cancelled.
  const bool is_plain_no = !choice.option_id && !choice.allows.value_or(false);
  if (!decision.option_id && !is_plain_no) {
    return fail(Errc::invalid, "unknown_option", "The question has no such option.");
  }
  decide_one(found, decision, choice.by);
  return {};
}

void Questions::note_answered(std::string id) {
  answered_.push_back(std::move(id));
  if (answered_.size() > kAnsweredQuestionsMax) answered_.pop_front();
}

void Questions::cancel() {
  while (!waiting_.empty()) decide_one(waiting_.begin(), Decision{}, "cancel");
}

void Questions::decide_one(std::list<std::shared_ptr<Waiting>>::iterator found,
                           const Decision& decision, std::string_view by) {
  const std::shared_ptr<Waiting> decided = std::move(*found);
  waiting_.erase(found);
  note_answered(decided->question.id);
  on_decision_(decided->question, decision, by);
}

}  // namespace clawdforge
