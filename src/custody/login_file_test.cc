#include "custody/login_file.h"

#include <gtest/gtest.h>

namespace clawdforge {
namespace {

TEST(LoginFile, TellsOfTokensAndTheirEnds) {
  const LoginFile file = login_in(
      R"({"claudeAiOauth":{"accessToken":"a","refreshToken":"r","expiresAt":1800000000123,)"
      R"("refreshTokenExpiresAt":1900000000000,"scopes":["user:inference"]},"mcpOAuth":{"x":[1,2]}})");
  EXPECT_TRUE(file.has_access);
  EXPECT_TRUE(file.has_refresh);
  EXPECT_EQ(file.expires_at, TimePoint(std::chrono::milliseconds(1'800'000'000'123)));
  EXPECT_EQ(file.sign_in_ends_at, TimePoint(std::chrono::milliseconds(1'900'000'000'000)));
}

TEST(LoginFile, WhatWasEmptiedIsNotALogin) {
  const LoginFile file =
      login_in(R"({"claudeAiOauth":{"accessToken":"","refreshToken":"","expiresAt":0}})");
  EXPECT_FALSE(file.has_access);
  EXPECT_FALSE(file.has_refresh);
}

TEST(LoginFile, NonsenseIsNotALogin) {
  for (const char* text : {"", "{", "[]", "null", "{}", R"({"claudeAiOauth":7})",
                           R"({"claudeAiOauth":{"accessToken":7,"expiresAt":"soon"}})"}) {
    EXPECT_EQ(login_in(text), LoginFile()) << text;
  }
  EXPECT_EQ(login_in(std::string(100'000, '[')), LoginFile());
  EXPECT_EQ(login_in("[" + std::string(200'000, '1') + "]"), LoginFile());
}

TEST(LoginFile, AnAbsentOneIsNotALogin) {
  EXPECT_EQ(look_at_login("/nonexistent/.credentials.json"), LoginFile());
  EXPECT_EQ(look_at_login("/"), LoginFile());
}

}  // namespace
}  // namespace clawdforge
