#include "api/core/query.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace clawdforge {
namespace {

std::vector<std::string> wrong_fields(const Query& query) {
  std::vector<std::string> fields;
  const auto checked = query.check();
  if (checked) return fields;
  EXPECT_EQ(checked.error().kind, Errc::invalid);
  EXPECT_EQ(checked.error().code, "validation_failed");
  for (const FieldError& field : checked.error().fields) fields.push_back(field.field);
  return fields;
}

TEST(Query, GivesWhatIsThereDecoded) {
  Query query("app=news-bot&text=a%20b+c%2B%26%3D&empty=&bare&%61b=1");
  EXPECT_EQ(query.text("app"), "news-bot");
  EXPECT_EQ(query.text("text"), "a b c+&=");
  EXPECT_EQ(query.text("empty"), "");
  EXPECT_EQ(query.text("bare"), "");
  EXPECT_EQ(query.text("ab"), "1");
  EXPECT_EQ(query.text("absent"), std::nullopt);
  EXPECT_TRUE(query.check());
}

TEST(Query, IgnoresWhatNoRouteAsksFor) {
  Query query("&&x=%zz&y=1&y=2&=7&%=8&limit=5&");
  EXPECT_EQ(query.integer("limit", 1, 10), 5);
  EXPECT_TRUE(query.check());
}

TEST(Query, ReadsFlagsInTheirFourSpellings) {
  Query query("a=true&b=1&c=false&d=0&e=True&f=yes&g=&h=2");
  EXPECT_EQ(query.flag("a"), true);
  EXPECT_EQ(query.flag("b"), true);
  EXPECT_EQ(query.flag("c"), false);
  EXPECT_EQ(query.flag("d"), false);
  EXPECT_EQ(query.flag("absent"), std::nullopt);
  EXPECT_TRUE(query.check());
  for (const char* name : {"e", "f", "g", "h"}) EXPECT_EQ(query.flag(name), std::nullopt) << name;
  EXPECT_EQ(wrong_fields(query), (std::vector<std::string>{"e", "f", "g", "h"}));
}

TEST(Query, CollectsAllThatIsWrong) {
  Query query("a=%4&b=1&b=1&c=0&d=11&e=1x&f=&g=+5&h=99999999999999999999&i=-1&j=1.0&k=7");
  EXPECT_EQ(query.text("a"), std::nullopt);
  EXPECT_EQ(query.text("b"), std::nullopt);
  for (const char* name : {"c", "d", "e", "f", "g", "h", "i", "j"}) {
    EXPECT_EQ(query.integer(name, 1, 10), std::nullopt) << name;
  }
  EXPECT_EQ(query.integer("k", 1, 10), 7);
  EXPECT_EQ(wrong_fields(query),
            (std::vector<std::string>{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}));
  query.wrong("l", "is odd");
  EXPECT_EQ(query.check().error().fields.back().message, "is odd");
  EXPECT_EQ(query.check().error().message, "a has a broken percent-escape.");
}

TEST(Query, SurvivesEverything) {
  EXPECT_TRUE(rc::check([](const std::string& text) {
    Query query(text);
    static_cast<void>(query.text("a"));
    static_cast<void>(query.integer("b", 0, 9));
    static_cast<void>(query.check());
  }));
}

TEST(Query, ReadsBackWhatWasEncoded) {
  EXPECT_TRUE(rc::check([](const std::string& value) {
    std::string encoded;
    bool has_nul = false;
    for (const char c : value) {
      constexpr std::string_view kHex = "0123456789ABCDEF";
      const auto byte = static_cast<unsigned char>(c);
      has_nul = has_nul || byte == 0;
      encoded += {'%', kHex[byte / 16], kHex[byte % 16]};
    }
    Query query("x=1&value=" + encoded + "&y=2");
    if (has_nul) {
      RC_ASSERT(!query.text("value"));
    } else {
      RC_ASSERT(query.text("value") == value);
    }
  }));
}

}  // namespace
}  // namespace clawdforge
