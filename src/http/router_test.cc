#include "http/router.h"

#include <gtest/gtest.h>

namespace clawdforge {
namespace {

Router some_router() {
  Router router;
  router.add("GET", "/things", 0);
  router.add("POST", "/things", 1);
  router.add("DELETE", "/things/{name}", 2);
  router.add("POST", "/things/{name}/turn/{id}", 3);
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

}  // namespace
}  // namespace clawdforge
