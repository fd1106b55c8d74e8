#include "api/shapes/session_state.h"

#include <gtest/gtest.h>

namespace clawdforge {
namespace {

TEST(SessionState, ShowsNoMetaThatIsNoObject) {
  EXPECT_EQ(object_or_empty(R"({"a":1})"), R"({"a":1})");
  for (const char* meta : {"", "null", "[1]", "{", R"({}}","live":true,"x":{)", "{} {}"}) {
    EXPECT_EQ(object_or_empty(meta), "{}") << meta;
  }
}

TEST(SessionState, InAListHasWhatMemoryKnows) {
  std::vector<Session> sessions(2);
  sessions.front().id = SessionId("s-1");
  sessions.back().id = SessionId("s-2");
  const Response response = session_list(std::move(sessions), "5.x", [](Session session) {
    const bool is_live = session.id == "s-2";
    return SessionView{.session = std::move(session), .is_live = is_live};
  });
  const std::size_t second = response.body.find(R"("session_id":"s-2")");
  EXPECT_LT(response.body.find(R"("live":false)"), second);
  EXPECT_GT(response.body.find(R"("live":true)"), second);
  EXPECT_TRUE(response.body.ends_with(R"(],"count":2,"next_cursor":"5.x"})")) << response.body;
}

}  // namespace
}  // namespace clawdforge
