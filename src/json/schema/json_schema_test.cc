#include "json/schema/json_schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>

namespace clawdforge {
namespace {
namespace json = boost::json;
using ::testing::HasSubstr;

// A schema of objects whose member `a` is as `rules` says.
std::string with_rules(const std::string& rules) {
  return R"({"type":"object","properties":{"a":)" + rules + "}}";
}

std::optional<std::string> mismatch(const std::string& schema, std::string_view value) {
  const auto parsed = JsonSchema::parse(schema);
  EXPECT_TRUE(parsed) << schema << ": " << (parsed ? "" : parsed.error().message);
  if (!parsed) return "no schema";
  return parsed->mismatch(json::parse({value.data(), value.size()}));
}

struct Row {
  const char* rules;
  const char* good;
  const char* bad;
};

class SchemaRules : public testing::TestWithParam<Row> {};

TEST_P(SchemaRules, TellGoodFromBad) {
  const Row& row = GetParam();
  const std::string schema = with_rules(row.rules);
  const auto as_member = [](const char* text) { return std::string(R"({"a":)") + text + "}"; };
  EXPECT_FALSE(mismatch(schema, as_member(row.good))) << row.rules << " " << row.good;
  const auto why = mismatch(schema, as_member(row.bad));
  ASSERT_TRUE(why) << row.rules << " " << row.bad;
  EXPECT_THAT(*why, HasSubstr("/a")) << "it says where";
}

INSTANTIATE_TEST_SUITE_P(
    Keywords, SchemaRules,
    testing::Values(
        Row{R"({"type":"string"})", R"("x")", "1"}, Row{R"({"type":"integer"})", "2.0", "2.5"},
        Row{R"({"type":"number"})", "2", R"("2")"}, Row{R"({"type":"boolean"})", "true", "0"},
        Row{R"({"type":["null","array"]})", "null", "{}"},
        Row{R"({"const":{"b":[1]}})", R"({"b":[1]})", R"({"b":[2]})"},
        Row{R"({"enum":["x",1]})", "1.0", "2"}, Row{R"({"minimum":3})", "3", "2.9"},
        Row{R"({"maximum":3})", "3", "4"}, Row{R"({"exclusiveMinimum":3})", "3.1", "3"},
        Row{R"({"exclusiveMaximum":3})", "2", "3"}, Row{R"({"multipleOf":0.1})", "0.3", "0.35"},
        Row{R"({"minLength":2})", "\"\xc3\xa9\xc3\xa9\"", "\"\xc3\xa9\""},
        Row{R"({"maxLength":2})", R"("ab")", R"("abc")"}, Row{R"({"minItems":1})", "[1]", "[]"},
        Row{R"({"maxItems":1})", "[1]", "[1,2]"},
        Row{R"({"uniqueItems":true})", "[1,2]", "[1,1.0]"},
        Row{R"({"items":{"type":"string"}})", R"(["x"])", R"(["x",1])"},
        Row{R"({"required":["b"]})", R"({"b":null})", "{}"},
        Row{R"({"additionalProperties":false,"properties":{"b":true}})", R"({"b":1})",
            R"({"c":1})"},
        Row{R"({"additionalProperties":{"type":"string"}})", R"({"c":"x"})", R"({"c":1})"},
        Row{R"({"minProperties":1})", R"({"c":1})", "{}"},
        Row{R"({"maxProperties":1})", R"({"c":1})", R"({"c":1,"d":2})"},
        Row{R"({"anyOf":[{"type":"string"},{"minimum":5}]})", "6", "4"},
        Row{R"({"oneOf":[{"minimum":1},{"minimum":5}]})", "3", "6"},
        Row{R"({"allOf":[{"minimum":1},{"maximum":5}]})", "3", "6"},
        Row{R"({"not":{"type":"string"}})", "3", R"("x")"}));

TEST(JsonSchema, ReferencesStayInTheDocumentAndMayBeRecursive) {
  const std::string tree =
      R"({"type":"object","$ref":"#/$defs/node","$defs":{"node":{"properties":{)"
      R"("kids":{"type":"array","items":{"$ref":"#/$defs/node"}},"n":{"type":"integer"}}}}})";
  EXPECT_FALSE(mismatch(tree, R"({"n":1,"kids":[{"n":2,"kids":[]}]})"));
  EXPECT_THAT(mismatch(tree, R"({"kids":[{"n":2},{"n":"x"}]})").value_or(""),
              HasSubstr("/kids/1/n"));
  EXPECT_FALSE(JsonSchema::parse(R"({"type":"object","$ref":"http://x/y"})"));
  EXPECT_FALSE(JsonSchema::parse(R"({"type":"object","$ref":"#/$defs/none"})"));
}

TEST(JsonSchema, AReferenceToItselfEnds) {
  EXPECT_TRUE(mismatch(R"({"type":"object","$ref":"#"})", "{}"));
  std::string wide = R"({"type":"object","anyOf":[)";
  for (int i = 0; i < 50; ++i) wide += std::string(i > 0 ? "," : "") + R"({"$ref":"#"})";
  EXPECT_TRUE(mismatch(wide + "]}", "{}")) << "within its steps";
}

TEST(JsonSchema, WhatItCannotCheckItRefuses) {
  for (const char* rules :
       {R"({"pattern":"a+"})", R"({"patternProperties":{}})", R"({"if":{}})", R"({"type":"text"})",
        R"({"type":[]})", R"({"required":"b"})", R"({"enum":1})", R"({"minLength":-1})",
        R"({"minimum":"1"})", R"({"multipleOf":0})", R"({"anyOf":[]})", R"({"items":[1]})", "3",
        R"({"properties":[]})", R"({"uniqueItems":1})"}) {
    const auto parsed = JsonSchema::parse(with_rules(rules));
    ASSERT_FALSE(parsed) << rules;
    EXPECT_EQ(parsed.error().code, "bad_schema");
    EXPECT_EQ(parsed.error().kind, Errc::invalid);
  }
  EXPECT_FALSE(JsonSchema::parse("[]"));
  EXPECT_FALSE(JsonSchema::parse(R"({"type":"array"})")) << "the answer is an object";
  EXPECT_FALSE(JsonSchema::parse("{}"));
  EXPECT_FALSE(
      JsonSchema::parse(with_rules(R"({"title":")" + std::string(kSchemaBytesMax, 'x') + R"("})")));
  EXPECT_TRUE(JsonSchema::parse(with_rules(R"({"description":"x","format":"date","default":1})")));
}

}  // namespace
}  // namespace clawdforge
