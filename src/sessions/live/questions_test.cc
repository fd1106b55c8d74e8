#include "sessions/live/questions.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace clawdforge {
namespace {

class QuestionsTest : public ::testing::Test {
 protected:
  static OpenQuestion question(const std::string& id) {
    return {.id = id,
            .turn_index = 1,
            .asked = {.ask_id = id,
                      .title = "Do it",
                      .kind = "edit",
                      .options = {{"always", "Always", "allow_always"},
                                  {"yes", "Yes", "allow_once"},
                                  {"no", "No", "reject_once"}},
                      .is_answered = false,
                      .answer = {}},
            .asked_at = {},
            .expires_at = {}};
  }
  Questions make(std::chrono::seconds expiry) {
    return {io_.get_executor(), expiry,
            [this](const OpenQuestion& asked, const Decision& decision, std::string_view by) {
              decided_.push_back(fmt::format("{} {} {} {}", asked.id,
                                             decision.is_allowed ? "allowed" : "denied",
                                             decision.option_id.value_or("-"), by));
            }};
  }
  static std::string code_of(const Result<void>& answered) {
    return answered ? "ok" : std::string(answered.error().code);
  }

  IoContext io_{1};
  std::vector<std::string> decided_;
};

TEST_F(QuestionsTest, AreAnsweredByOptionOrByDecision) {
  Questions questions = make(std::chrono::hours(1));
  for (const char* id : {"a", "b", "c"}) questions.add(question(id));
  ASSERT_EQ(questions.open().size(), 3u);
  EXPECT_EQ(questions.open().front().id, "a");
  EXPECT_TRUE(questions.answer("b", {.option_id = "always", .allows = {}}));
  EXPECT_TRUE(questions.answer("c", {.option_id = {}, .allows = true}));
  EXPECT_TRUE(questions.answer("a", {.option_id = {}, .allows = false}));
  EXPECT_EQ(decided_, (std::vector<std::string>{"b allowed always app", "c allowed yes app",
                                                "a denied no app"}));
  EXPECT_TRUE(questions.open().empty());
}

TEST_F(QuestionsTest, AreAnsweredOnce) {
  Questions questions = make(std::chrono::hours(1));
  questions.add(question("a"));
  EXPECT_TRUE(questions.answer("a", {.option_id = "no", .allows = {}}));
  EXPECT_EQ(code_of(questions.answer("a", {.option_id = "yes", .allows = {}})), "already_answered");
  EXPECT_EQ(code_of(questions.answer("b", {.option_id = "yes", .allows = {}})),
            "permission_not_found");
  EXPECT_EQ(decided_.size(), 1u);
}

TEST_F(QuestionsTest, TakeNoOptionThatTheyDoNotHave) {
  Questions questions = make(std::chrono::hours(1));
  questions.add(question("a"));
  EXPECT_EQ(code_of(questions.answer("a", {.option_id = "maybe", .allows = {}})), "unknown_option");
  OpenQuestion bare = question("b");
  bare.asked.options.clear();
  questions.add(bare);
  EXPECT_EQ(code_of(questions.answer("b", {.option_id = {}, .allows = true})), "unknown_option");
  EXPECT_EQ(questions.open().size(), 2u);
  EXPECT_TRUE(questions.answer("b", {.option_id = {}, .allows = false})) << "a no always counts";
  EXPECT_EQ(decided_, std::vector<std::string>{"b denied - app"});
}

TEST_F(QuestionsTest, ExpireAsDenied) {
  Questions questions = make(std::chrono::seconds(0));
  questions.add(question("a"));
  io_.run_for(std::chrono::seconds(10));
  EXPECT_EQ(decided_, std::vector<std::string>{"a denied no expiry"});
  EXPECT_EQ(code_of(questions.answer("a", {.option_id = "yes", .allows = {}})), "already_answered");
}

TEST_F(QuestionsTest, ThatAreAnsweredDoNotExpire) {
  Questions questions = make(std::chrono::seconds(0));
  questions.add(question("a"));
  EXPECT_TRUE(questions.answer("a", {.option_id = "yes", .allows = {}}));
  io_.run_for(std::chrono::seconds(10));
  EXPECT_EQ(decided_, std::vector<std::string>{"a allowed yes app"});
}

TEST_F(QuestionsTest, AreCancelledTogether) {
  Questions questions = make(std::chrono::hours(1));
  questions.add(question("a"));
  questions.add(question("b"));
  questions.cancel();
  questions.cancel();
  EXPECT_EQ(decided_, (std::vector<std::string>{"a denied - cancel", "b denied - cancel"}));
  EXPECT_EQ(code_of(questions.answer("b", {.option_id = "yes", .allows = {}})), "already_answered");
}

TEST_F(QuestionsTest, ThatNoCallerWasAskedCountAsAnswered) {
  Questions questions = make(std::chrono::hours(1));
  questions.note_answered("a");
  EXPECT_EQ(code_of(questions.answer("a", {.option_id = "yes", .allows = {}})), "already_answered");
  EXPECT_TRUE(decided_.empty());
}

TEST_F(QuestionsTest, AreForgottenInTheEnd) {
  Questions questions = make(std::chrono::hours(1));
  for (std::size_t number = 0; number <= kAnsweredQuestionsMax; ++number) {
    questions.note_answered(fmt::to_string(number));
  }
  EXPECT_EQ(code_of(questions.answer("0", {})), "permission_not_found");
  EXPECT_EQ(code_of(questions.answer("1", {})), "already_answered");
}

TEST_F(QuestionsTest, MayEndWhileOneIsOpen) {
  {
    Questions questions = make(std::chrono::seconds(0));
    questions.add(question("a"));
  }
  io_.run_for(std::chrono::seconds(10));
  EXPECT_TRUE(decided_.empty());
}

}  // namespace
}  // namespace clawdforge
