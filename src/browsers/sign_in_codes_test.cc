#include "browsers/sign_in_codes.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace clawdforge {
namespace {

class Codes : public testing::Test {
 protected:
  std::string taken(std::string_view code) {
    const auto result = codes_.take(code);
    return result ? "" : std::string(result.error().code);
  }

  ManualClock clock_{TimePoint(std::chrono::hours(1'000))};
  SignInCodes codes_{clock_};
};

TEST_F(Codes, WorkOnceHoweverTheyAreTyped) {
  const auto made = codes_.make(std::chrono::seconds(120));
  std::string typed;
  for (const char c : made.code.reveal()) {
    if (c != '-') typed += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  EXPECT_EQ(typed.size(), 26u) << "128 bits, 5 in each letter";
  EXPECT_EQ(taken(typed), "");
  EXPECT_EQ(taken(made.code.reveal()), "code_used");
}

TEST_F(Codes, EndByTheirTimeAndAreForgottenLater) {
  const auto made = codes_.make(std::chrono::seconds(120));
  clock_.advance(std::chrono::seconds(119));
  EXPECT_TRUE(codes_.knows(made.code.reveal()));
  clock_.advance(std::chrono::seconds(1));
  EXPECT_EQ(taken(made.code.reveal()), "code_expired");
  clock_.advance(std::chrono::hours(2));
  EXPECT_EQ(taken(made.code.reveal()), "unauthorized");
}

TEST_F(Codes, AreBoundedAndTheOneThatEndsFirstMakesRoom) {
  const auto first = codes_.make(std::chrono::seconds(10));
  std::set<std::string> all;
  for (int i = 0; i < 64; ++i) {
    const auto made = codes_.make(std::chrono::seconds(60));
    all.emplace(made.code.reveal());
  }
  EXPECT_EQ(all.size(), 64u);
  EXPECT_FALSE(codes_.knows(first.code.reveal()));
  for (const std::string& code : all) EXPECT_EQ(taken(code), "");
}

TEST_F(Codes, ThatWereNeverMadeAreUnknown) {
  EXPECT_EQ(taken(""), "unauthorized");
  EXPECT_EQ(taken("0000-0000"), "unauthorized");
  EXPECT_FALSE(codes_.knows("0000-0000"));
}

}  // namespace
}  // namespace clawdforge
