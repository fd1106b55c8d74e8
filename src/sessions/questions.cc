#include "sessions/questions.h"

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
  waiting_.push_back(std::make_unique<Waiting>(executor_, std::move(question)));
  Waiting& waiting = *waiting_.back();
  waiting.expiry.expires_after(expiry_);
  // The timer dies with the question, and the question with us.
  waiting.expiry.async_wait([this, &waiting](boost::system::error_code error) {
    if (error) return;
    const auto place = std::ranges::find(waiting_, &waiting, &std::unique_ptr<Waiting>::get);
    if (place == waiting_.end()) return;
    decide_one(place, choice_of(false, waiting.question.asked), "expiry");
  });
}

std::vector<OpenQuestion> Questions::open() const {
  std::vector<OpenQuestion> all;
  for (const auto& waiting : waiting_) all.push_back(waiting->question);
  return all;
}

Result<void> Questions::answer(const std::string& id, const PermissionChoice& choice) {
  const auto place = std::ranges::find_if(
      waiting_, [&](const auto& waiting) { return waiting->question.id == id; });
  if (place == waiting_.end()) {
    if (std::ranges::find(answered_, id) != answered_.end()) {
      return fail(Errc::conflict, "already_answered", "This question has been answered already.");
    }
    return fail(Errc::not_found, "permission_not_found", "There is no such question.");
  }
  const PermissionRequest& asked = (*place)->question.asked;
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
  decide_one(place, decision, "app");
  return {};
}

void Questions::note_answered(std::string id) {
  answered_.push_back(std::move(id));
  if (answered_.size() > kAnsweredQuestionsMax) answered_.pop_front();
}

void Questions::cancel() {
  while (!waiting_.empty()) decide_one(waiting_.begin(), Decision{}, "cancel");
}

void Questions::decide_one(std::list<std::unique_ptr<Waiting>>::iterator place,
                           const Decision& decision, std::string_view by) {
  const std::unique_ptr<Waiting> decided = std::move(*place);
  waiting_.erase(place);
  note_answered(decided->question.id);
  on_decision_(decided->question, decision, by);
}

}  // namespace clawdforge
