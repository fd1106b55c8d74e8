#include "api/core/json_body.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <boost/json.hpp>

namespace clawdforge {
namespace {

TEST(JsonBody, AnEmptyOneIsAnEmptyObject) { EXPECT_TRUE(parse_json_object("")->empty()); }

TEST(JsonBody, MustBeAnObjectWithinTheDepth) {
  for (const std::string& text :
       {std::string("["), std::string("[]"), std::string("null"), std::string("1"),
        std::string("{\"a\":}"), std::string("{} x"), std::string("\xff"),
        std::string("{\"a\":\"\xff\"}"), std::string("{'a':1}"), std::string("{\"a\":1,}"),
        "{\"a\":" + std::string(40, '[') + std::string(40, ']') + "}"}) {
    const auto parsed = parse_json_object(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().kind, Errc::malformed);
    EXPECT_EQ(parsed.error().code, "bad_json");
  }
  EXPECT_TRUE(parse_json_object("{\"a\":" + std::string(30, '[') + std::string(30, ']') + "}"));
}

TEST(Fields, CollectsEverythingThatIsWrong) {
  const auto body = parse_json_object(
      R"({"text":1,"number":"x","low":0,"real":1.5,"huge":99999999999999999999,"list":[1],"null":null})");
  ASSERT_TRUE(body);
  Fields fields(*body);
  EXPECT_FALSE(fields.text("text"));
  EXPECT_FALSE(fields.integer("number", 1, 9));
  EXPECT_FALSE(fields.integer("low", 1, 9));
  EXPECT_FALSE(fields.integer("real", 1, 9));
  EXPECT_FALSE(fields.integer("huge", 1, 9));
  EXPECT_FALSE(fields.texts("list", 3));
  EXPECT_FALSE(fields.text("null"));
  EXPECT_FALSE(fields.text("absent"));
  const auto checked = fields.check();
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().kind, Errc::invalid);
  EXPECT_EQ(checked.error().code, "validation_failed");
  EXPECT_EQ(checked.error().fields.size(), 6u);
}

TEST(Fields, GivesWhatIsRight) {
  const auto body = parse_json_object(R"({"text":"a","number":9,"list":["x","y"],"text":"b"})");
  ASSERT_TRUE(body);
  Fields fields(*body);
  EXPECT_EQ(fields.text("text"), "b") << "the last of two counts";
  EXPECT_EQ(fields.integer("number", 1, 9), 9);
  EXPECT_EQ(fields.texts("list", 2), (std::vector<std::string>{"x", "y"}));
  EXPECT_TRUE(fields.check());
}

Request with_headers(std::vector<Header> headers) {
  Request request(*IpAddress::parse("127.0.0.1"));
  request.headers = std::move(headers);
  return request;
}

TEST(ContentType, IsJsonWhenAbsentOrSaidToBe) {
  for (const char* type : {"application/json", "Application/JSON; charset=utf-8", "",
                           "application/problem+json", "application/json ; x"}) {
    EXPECT_FALSE(
        brings_another_type(with_headers({{"Content-Type", type}, {"Content-Length", "2"}})))
        << type;
  }
  EXPECT_FALSE(brings_another_type(with_headers({{"Content-Length", "2"}})));
}

TEST(ContentType, IsWrongWhenABodyOfAnotherTypeComes) {
  for (const char* type : {"text/plain", "application/x-www-form-urlencoded", "json",
                           "application/jsonx", ";application/json"}) {
    EXPECT_TRUE(
        brings_another_type(with_headers({{"Content-Type", type}, {"Content-Length", "2"}})))
        << type;
    EXPECT_TRUE(brings_another_type(
        with_headers({{"Content-Type", type}, {"Transfer-Encoding", "chunked"}})))
        << type;
    EXPECT_FALSE(brings_another_type(with_headers({{"Content-Type", type}}))) << type;
    EXPECT_FALSE(
        brings_another_type(with_headers({{"Content-Type", type}, {"Content-Length", "0"}})))
        << type;
  }
}

std::string ignored_in(const std::string& text) {
  const auto body = parse_json_object(text);
  Fields fields(*body);
  fields.text("known");
  fields.has("other");
  std::string ignored;
  EXPECT_TRUE(fields.check(&ignored));
  return ignored;
}

TEST(Fields, NamesWhatWasNotAskedFor) {
  EXPECT_EQ(ignored_in(R"({"known":"x","cwd":"/","permision_mode":null,"other":1})"),
            "cwd, permision_mode");
  EXPECT_EQ(ignored_in("{}"), "");
  EXPECT_EQ(ignored_in(R"({"known":"x"})"), "");
}

TEST(Fields, NamesOfForeignersCannotBreakAHeader) {
  EXPECT_EQ(ignored_in(R"({"a\r\nSet-Cookie: b":1,"c,d":2,"\u00e9":3,"":4})"),
            "a??Set-Cookie??b, c?d, ??, ?");
  EXPECT_EQ(ignored_in("{\"" + std::string(500, 'x') + "\":1}"),
            std::string(kIgnoredNameBytesMax, 'x'));
  std::string many = "{";
  for (int i = 0; i < 1'000; ++i) many += (i > 0 ? ",\"n" : "\"n") + std::to_string(i) + "\":1";
  const std::string names = ignored_in(many + "}");
  EXPECT_TRUE(names.starts_with("n0, n1, ")) << names;
  EXPECT_TRUE(names.ends_with("n15, ...")) << names;
}

TEST(MemberText, IsTheValueAsItWasWritten) {
  const std::string body =
      "{ \"a\" : 1 ,\r\n\"meta\" :\t{ \"z\":99999999999999999999, \"a\" : [1.0, -0 ,1e2],\n"
      "\"meta\": \" { \\\" , } \\\\\" } , \"b\":{\"meta\":2}}";
  ASSERT_TRUE(parse_json_object(body));
  EXPECT_EQ(member_text(body, "meta"),
            R"({"z":99999999999999999999,"a":[1.0,-0,1e2],"meta":" { \" , } \\"})");
  EXPECT_EQ(member_text(body, "a"), "1");
  EXPECT_EQ(member_text(body, "b"), R"({"meta":2})");
  EXPECT_EQ(member_text(body, "z"), "");
  EXPECT_EQ(member_text("", "meta"), "");
  EXPECT_EQ(member_text("{}", "meta"), "");
}

TEST(MemberText, FollowsTheParserInNamesThatAreEscapedOrTwice) {
  EXPECT_EQ(member_text(R"({"meta":{"a":1},"m\u0065ta":{"b":2},"x":3})", "meta"), R"({"b":2})");
  EXPECT_EQ(member_text(R"({"meta":"text","meta":null})", "meta"), "null");
  EXPECT_EQ(member_text(R"({"a":"meta","b":["meta",{"meta":1}]})", "meta"), "");
}

TEST(MemberText, StaysWithinAnyText) {
  EXPECT_TRUE(rc::check([] {
    const auto text = *rc::gen::container<std::string>(
        rc::gen::element('{', '}', '[', ']', '"', '\\', ',', ':', 'a', ' '));
    return member_text(text, "a").size() <= text.size();
  }));
}

}  // namespace
}  // namespace clawdforge
