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

TEST(Hmac, GivesTheKnownDigest) {
  EXPECT_EQ(to_hex(hmac_sha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST(Base64, GoesBothWays) {
  for (const std::string& text : {std::string(), std::string("f"), std::string("fo"),
                                  std::string("foo"), std::string("\0\xff\x80z", 4)}) {
    EXPECT_EQ(from_base64(to_base64(text)), text);
  }
  EXPECT_EQ(to_base64("fo"), "Zm8=");
  for (const char* text : {"Z", "Zm8", "Zm8=Zm8=x", "Zm8?", "Z m8"}) {
    EXPECT_EQ(from_base64(text), std::nullopt) << text;
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
