#include "json/json_check.h"

#include <gtest/gtest.h>

#include <string>

namespace clawdforge {
namespace {

std::string nested(std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

TEST(JsonCheck, TakesOneValueWithinItsDepth) {
  for (const char* text : {"1", " null ", R"("a")", R"({"a":[1,{"b":2}]})", "[ ]"}) {
    EXPECT_TRUE(is_json(text, 8)) << text;
  }
  for (const char* text : {"", " ", "{", "1 2", "{} {}", "'a'", "[1,]", "nul", "\"\xff\""}) {
    EXPECT_FALSE(is_json(text, 8)) << text;
  }
  EXPECT_TRUE(is_json(nested(8), 8));
  EXPECT_FALSE(is_json(nested(9), 8));
}

TEST(JsonCheck, TellsObjectsFromArrays) {
  EXPECT_TRUE(is_json_object(R"( {"a":[1]} )", 8));
  EXPECT_TRUE(is_json_array(R"( [{"a":1}] )", 8));
  for (const char* text : {"", "null", "[1]", "{", R"({}}","live":true,"x":{)", "{} {}", "1"}) {
    EXPECT_FALSE(is_json_object(text, 8)) << text;
  }
  EXPECT_FALSE(is_json_array("{}", 8));
}

TEST(JsonCheck, CountsValuesAndNotWhatStandsInStrings) {
  EXPECT_TRUE(has_more_values("[1,2,3]", 2));
  EXPECT_FALSE(has_more_values("[1,2,3]", 4));
  EXPECT_TRUE(has_more_values(R"({"a":[],"b":{}})", 4));
  EXPECT_FALSE(has_more_values(R"({"a":[],"b":{}})", 5));
  EXPECT_FALSE(has_more_values(R"(["[[[[,,,,\"[[[[,,,,\\","{{{{,,,,"])", 3));
  EXPECT_FALSE(has_more_values("\"" + std::string(1000, ','), 2)) << "of a string without an end";
  std::string many = "[";
  for (int i = 0; i < 1000; ++i) many += "[],";
  EXPECT_TRUE(has_more_values(many + "[]]", 1000));
  EXPECT_FALSE(has_more_values(many + "[]]", 3000));
}

}  // namespace
}  // namespace clawdforge
