#include "http/message/router.h"

#include <gtest/gtest.h>

namespace clawdforge {
namespace {

Router some_router() {
  Router router;
  router.add("GET", "/things", 0);
  router.add("POST", "/things", 1);
  router.add("DELETE", "/things/{name}", 2);
  router.add("POST", "/things/{name}/turn/{id}", 3);
  router.add("GET", "/things/{name}/files", 4);
  router.add("GET", "/things/{name}/files/{path...}", 5);
  return router;
}

TEST(Router, FindsLiteralPathsByMethod) {
  const Router router = some_router();
  EXPECT_EQ(router.find("GET", "/things").route->index, 0u);
  EXPECT_EQ(router.find("POST", "/things").route->index, 1u);
}

TEST(Router, AnswersHeadByGet) {
  const Router router = some_router();
  EXPECT_EQ(router.find("HEAD", "/things").route->index, 0u);
}

TEST(Router, DecodesWhatPlaceholdersStandFor) {
  const Router router = some_router();
  const auto match = router.find("POST", "/things/a%20b/turn/7");
  ASSERT_NE(match.route, nullptr);
  EXPECT_EQ(match.params, (std::vector<std::string>{"a b", "7"}));
}

TEST(Router, TellsTheAllowedMethodsOfAKnownPath) {
  const Router router = some_router();
  EXPECT_EQ(router.find("PUT", "/things").allow, "GET, HEAD, POST");
  EXPECT_EQ(router.find("GET", "/things/x").allow, "DELETE");
}

TEST(Router, KnowsNoOtherPath) {
  const Router router = some_router();
  for (const char* path :
       {"/", "/thing", "/things/", "/things//", "/things/a/", "//things", "/things/%",
        "/things/a/b", "/THINGS", "/things/%00", "/things/../things"}) {
    const auto match = router.find("GET", path);
    EXPECT_EQ(match.route, nullptr) << path;
    EXPECT_EQ(match.allow, "") << path;
  }
}

TEST(Router, ATailStandsForAllSegmentsThatAreLeft) {
  const Router router = some_router();
  for (const auto& [path, tail] : std::vector<std::pair<const char*, const char*>>{
           {"/things/x/files/a", "a"},
           {"/things/x/files/a/b.txt", "a/b.txt"},
           {"/things/x/files/a%20b/%C3%A9/c%2Fd", "a b/\xC3\xA9/c/d"},
           {"/things/x/files/../y", "../y"}}) {
    const auto match = router.find("GET", path);
    ASSERT_NE(match.route, nullptr) << path;
    EXPECT_EQ(match.route->index, 5u) << path;
    EXPECT_EQ(match.params, (std::vector<std::string>{"x", tail})) << path;
  }
  EXPECT_EQ(router.find("HEAD", "/things/x/files/a/b").route->index, 5u);
  EXPECT_EQ(router.find("POST", "/things/x/files/a/b").allow, "GET, HEAD");
}

TEST(Router, ATailHasNoEmptySegment) {
  const Router router = some_router();
  EXPECT_EQ(router.find("GET", "/things/x/files").route->index, 4u);
  for (const char* path : {"/things/x/files/", "/things/x/files//", "/things/x/files/a/",
                           "/things/x/files/a//b", "/things/x/files//a", "/things//files/a",
                           "/things/x/files/a/%00", "/things/x/files/a/%", "/things/x/file/a"}) {
    const auto match = router.find("GET", path);
    EXPECT_EQ(match.route, nullptr) << path;
    EXPECT_EQ(match.allow, "") << path;
    EXPECT_TRUE(match.params.empty()) << path;
  }
}

TEST(Router, ShowsATailLikeAnyPlaceholder) {
  EXPECT_EQ(shown_pattern("/things/{name}/files/{path...}"), "/things/{name}/files/{path}");
  EXPECT_EQ(shown_pattern("/things/{name}"), "/things/{name}");
  EXPECT_EQ(shown_pattern("/things"), "/things");
}

}  // namespace
}  // namespace clawdforge
