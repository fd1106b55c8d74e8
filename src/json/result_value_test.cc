#include "json/result_value.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <boost/json.hpp>

namespace clawdforge {
namespace {

TEST(ResultValue, IsAStringUnlessItIsJson) {
  EXPECT_EQ(result_value("hello"), R"("hello")");
  EXPECT_EQ(result_value(""), R"("")");
  EXPECT_EQ(result_value(" two \"words\"\n"), R"(" two \"words\"\n")");
  EXPECT_EQ(result_value("{\"a\":1"), R"("{\"a\":1")");
  EXPECT_EQ(result_value("{} {}"), R"("{} {}")");
  EXPECT_EQ(result_value("NaN"), R"("NaN")");
  EXPECT_EQ(result_value("{'a': 1}"), R"("{'a': 1}")");
}

TEST(ResultValue, IsTheJsonItself) {
  EXPECT_EQ(result_value("{\"a\": [1, 2.50, null]}"), "{\"a\": [1, 2.50, null]}");
  EXPECT_EQ(result_value("  [] \n"), "[]");
  EXPECT_EQ(result_value("42"), "42");
  EXPECT_EQ(result_value("true"), "true");
  EXPECT_EQ(result_value("null"), "null");
  EXPECT_EQ(result_value("\"quoted\""), "\"quoted\"");
}

TEST(ResultValue, KeepsAllDigitsOfANumber) {
  EXPECT_EQ(result_value("{\"n\":123456789012345678901234567890}"),
            "{\"n\":123456789012345678901234567890}");
  EXPECT_EQ(result_value("0.1000000000000000055511151231257827"),
            "0.1000000000000000055511151231257827");
}

TEST(ResultValue, IsFreedOfASurroundingFence) {
  EXPECT_EQ(result_value("```json\n{\"a\":1}\n```"), "{\"a\":1}");
  EXPECT_EQ(result_value("\n```\n[1]\n```\n\n"), "[1]");
  EXPECT_EQ(result_value("~~~~\n[1]\n~~~~"), "[1]");
  EXPECT_EQ(result_value("```json\r\n{\"a\":1}\r\n```\r\n"), "{\"a\":1}");
  EXPECT_EQ(result_value("```python\nprint(1)\n```"), "\"print(1)\"");
  EXPECT_EQ(result_value("```\n```"), R"("")");
  EXPECT_EQ(result_value("````md\n```\ninner\n```\n````"), R"("```\ninner\n```")");
}

TEST(ResultValue, KeepsFencesThatDoNotSurroundItAll) {
  for (const std::string text : {
           "Here:\n```json\n{}\n```",
           "```json\n{}\n```\nThat was it.",
           "```\na\n```\n```\nb\n```",
           "```json\n{}",
           "```{}```",
           "``\n1\n``",
       }) {
    EXPECT_EQ(boost::json::parse(result_value(text)), boost::json::value(text)) << text;
  }
}

TEST(ResultValue, IsAStringWhenTheJsonIsTooDeep) {
  const std::string deep = std::string(1000, '[') + std::string(1000, ']');
  EXPECT_EQ(result_value(deep), '"' + deep + '"');
  const std::string fine = std::string(60, '[') + std::string(60, ']');
  EXPECT_EQ(result_value(fine), fine);
}

TEST(ResultValue, IsValidJsonWhateverTheText) {
  rc::check([](const std::string& text) {
    boost::json::error_code error;
    boost::json::parse(result_value(text), error);
    RC_ASSERT(!error);
  });
}

}  // namespace
}  // namespace clawdforge
