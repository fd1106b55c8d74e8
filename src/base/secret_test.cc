#include "base/secret.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <sstream>
#include <type_traits>

namespace clawdforge {
namespace {

template <class T>
concept Streamable = requires(std::ostream& out, const T& value) { out << value; };

static_assert(!Streamable<Secret>, "a secret must not be printable");
static_assert(!std::is_copy_constructible_v<Secret>);
static_assert(!std::is_convertible_v<Secret, std::string>);
static_assert(!std::is_convertible_v<Secret, std::string_view>);

TEST(Secret, LeavesNothingBehindWhenMoved) {
  Secret first(std::string("cf_short"));
  const Secret second(std::move(first));
  EXPECT_EQ(second.reveal(), "cf_short");
  EXPECT_TRUE(first.empty());  // NOLINT(bugprone-use-after-move): that is the test
}

TEST(Secret, TakesAVariableOutOfTheEnvironmentAndWipesIt) {
  // The bytes that /proc/PID/environ would show are these.
  static char entry[] = "CLAWDFORGE_SECRET_TEST=wiped-after-reading";
  ASSERT_EQ(putenv(entry), 0);
  const Secret secret = take_from_environment("CLAWDFORGE_SECRET_TEST");
  EXPECT_EQ(secret.reveal(), "wiped-after-reading");
  EXPECT_EQ(std::getenv("CLAWDFORGE_SECRET_TEST"), nullptr);
  for (const char c : std::string_view(entry + sizeof("CLAWDFORGE_SECRET_TEST"),
                                       std::strlen("wiped-after-reading"))) {
    EXPECT_EQ(c, '\0');
  }
}

TEST(Sha256, GivesTheKnownDigest) {
  EXPECT_EQ(to_hex(sha256("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_TRUE(equal_in_constant_time(sha256("abc"), sha256("abc")));
  EXPECT_FALSE(equal_in_constant_time(sha256("abc"), sha256("abd")));
}

}  // namespace
}  // namespace clawdforge
