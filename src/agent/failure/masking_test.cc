#include "agent/failure/masking.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <boost/json.hpp>
#include <chrono>

namespace clawdforge {
namespace {

using testing::HasSubstr;
using testing::Not;

bool is_valid_utf8(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\' || static_cast<unsigned char>(c) < 0x20) continue;
    quoted += c;
  }
  boost::json::error_code error;
  boost::json::parse(quoted + "\"", error);
  return !error;
}

TEST(CleanText, KeepsWhatIsText) {
  EXPECT_EQ(clean_text("a b\tc\nd é 漢 🙂"), "a b\tc\nd é 漢 🙂");
}

TEST(CleanText, RemovesControlCharactersAndRepairsBytes) {
  EXPECT_EQ(clean_text(std::string_view("a\0b\x1b[31mc\r\n\x7f", 12)), "ab[31mc\n");
  EXPECT_EQ(clean_text("x\xff\xc3y\xed\xa0\x80"),
            "x\xef\xbf\xbd\xef\xbf\xbdy"
            "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
}

TEST(CleanText, IsAlwaysValidUtf8WithoutControlCharacters) {
  rc::check([](const std::string& bytes) {
    const std::string text = clean_text(bytes);
    RC_ASSERT(is_valid_utf8(text));
    for (const char c : text) {
      RC_ASSERT(static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\t');
      RC_ASSERT(c != 0x7f);
    }
    RC_ASSERT(clean_text(text) == text);
  });
}

TEST(Masked, HidesTheTokensOfKnownServices) {
  for (const std::string token : {
           "sk-ant-api03-abcDEF_123-xyz",
           "sk-proj-0123456789",
           "cf_aGVsbG8gd29ybGQgaGVsbG8gd29ybGQgMTIz",
           "ff_aGVsbG8gd29ybGQgaGVsbG8gd29ybGQgMTIz",
           "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
           "github_pat_11ABCDEFG0123456789_abc",
           "AKIAIOSFODNN7EXAMPLE",
           "xoxb-123456789012-abcdef",
           "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c",
           "AIzaSyA1234567890abcdefghijklmnopqrstuv",
           "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY0aB1",
           "0123456789abcdef0123456789abcdef0123456789abcdef",
       }) {
    for (const std::string before : {"", "key ", "x=", "(", "\n", "é", "a/", "--"}) {
      const std::string shown = masked(before + token + " end");
      EXPECT_THAT(shown, Not(HasSubstr(token.substr(8)))) << before << token;
      EXPECT_THAT(shown, HasSubstr("*** end")) << before << token;
    }
  }
}

TEST(Masked, HidesValuesByTheirName) {
  EXPECT_EQ(masked("api_key=abcdef"), "api_key=***");
  EXPECT_EQ(masked("ANTHROPIC_API_KEY=abcdef next"), "ANTHROPIC_API_KEY=*** next");
  EXPECT_EQ(masked(R"({"token": "not/known kind", "n": 1})"), R"({"token": "***", "n": 1})");
  EXPECT_EQ(masked("password: swordfish"), "password: ***");
  EXPECT_EQ(masked("client_secret='a b c d'"), "client_secret='***'");
  EXPECT_EQ(masked("x-api-key: abc12345"), "x-api-key: ***");
  EXPECT_EQ(masked("authorization: Bearer abcd.efgh/12"), "authorization: Bearer ***");
  EXPECT_EQ(masked("https://user:hunter2@host/path"), "https://***@host/path");
}

TEST(Masked, HidesAPrivateKey) {
  EXPECT_EQ(masked("a\n-----BEGIN RSA PRIVATE KEY-----\nMIIB/x\n-----END RSA PRIVATE KEY-----\nb"),
            "a\n***\nb");
  EXPECT_EQ(masked("-----BEGIN PRIVATE KEY-----\nMIIB"), "***");
}

TEST(Masked, HidesTheSecretsItIsTold) {
  EXPECT_EQ(masked("my dog is called rex, rex!", {"rex", ""}), "my dog is called ***, ***!");
}

TEST(Masked, LeavesOrdinaryTextAlone) {
  for (const std::string text : {
           "Error: piped stdin input exceeds 10MB.",
           "bad token: unexpected end of input",
           "input_tokens: 12345678, max_tokens=128000",
           "commit 77e3b86d9a0c3f1e2b4d5a6978f0e1d2c3b4a596",
           "session 2cd2e256-cf90-4317-adae-de8462b87f9c",
           "/usr/lib/node_modules/@anthropic-ai/claude-code/bin/claude.exe --model sonnet",
           "Bearer authentication is needed; Basic knowledge too",
           "http://127.0.0.1:8800/run and mail@host.example",
           "There's an issue with the selected model (claude-sonnet-5-5).",
           "-----BEGIN CERTIFICATE-----",
           "task-and-risk-free_thing",
       }) {
    EXPECT_EQ(masked(text), text);
  }
}

TEST(Masked, NeverShowsATokenWhereverItStands) {
  rc::check([](const std::string& before, const std::string& after) {
    const std::string token = "sk-ant-oat01-Q2hhbmdlTWVQbGVhc2U";
    const std::string shown = masked(before + " " + token + " " + after);
    RC_ASSERT(shown.find("Q2hhbmdlTWVQbGVhc2U") == std::string::npos);
    RC_ASSERT(is_valid_utf8(shown));
  });
}

TEST(Masked, TakesTimeInProportionToTheText) {
  for (const std::string piece : {"a-", "eyJ-", "token: ", "token=", "sk-", "://a:", "bearer ",
                                  "-----BEGIN ", "\"token\"", "secret:", "eyJaaaaaaaa.", "A1a_"}) {
    std::string text;
    while (text.size() < 1'000'000) text += piece;
    const auto begun = std::chrono::steady_clock::now();
    (void)masked(text);
    EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(5)) << piece;
  }
}

TEST(MaskedLine, IsOneLineOfBoundedLength) {
  EXPECT_EQ(masked_line("  one\n\n two\tthree \n", 100), "one two three");
  EXPECT_EQ(masked_line("éééé", 4), "éééé");
  EXPECT_EQ(masked_line("ééééé", 4), "ééé…");
  EXPECT_EQ(masked_line("a b c", 3), "a …");
  rc::check([](const std::string& bytes) {
    const std::string line = masked_line(bytes, 20);
    RC_ASSERT(line.find('\n') == std::string::npos);
    RC_ASSERT(is_valid_utf8(line));
    RC_ASSERT(std::ranges::count_if(line, [](char c) {
                return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
              }) <= 20);
  });
}

// What a long text costs must not depend on its length: it is cut first.
TEST(MaskedLine, CutsALongTextBeforeItLooksAtIt) {
  const std::string rest(64 * 1024 * 1024, 'x');
  const auto begun = std::chrono::steady_clock::now();
  const std::string line = masked_line("it failed: " + rest, 100);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::milliseconds(500));
  EXPECT_EQ(line, "it failed: " + std::string(88, 'x') + "…");
  EXPECT_EQ(masked_line("short" + std::string(kMaskedLineBytesMax, ' ') + "late", 100), "short…");
}

TEST(MaskedLine, ShowsNoSecretThatTheCutGoesThrough) {
  const std::string secret = "correct horse battery";
  for (std::size_t before = 1; before < secret.size(); ++before) {
    const std::string text = "a" + std::string(kMaskedLineBytesMax - 1 - before, ' ') + secret;
    EXPECT_EQ(masked_line(text + std::string(100, ' '), 100, {secret}), "a…") << before;
  }
  const std::string token = "sk-ant-0123456789abcdef";
  const std::string text = "a" + std::string(kMaskedLineBytesMax - 8, ' ') + token;
  EXPECT_EQ(masked_line(text, 100), "a…");
}

}  // namespace
}  // namespace clawdforge
