#include "model/session.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace clawdforge {
namespace {

TEST(EventLine, IsWhatCallersGet) {
  std::string out = "before\n";
  append_event_line(out, {7, 1, EventKind::permission_resolved, R"({"a":1})"});
  EXPECT_EQ(out,
            "before\n{\"id\":7,\"turn_index\":1,\"event\":\"permission_resolved\","
            "\"data\":{\"a\":1}}\n");
}

TEST(EventLine, ThatIsNoneIsNotRead) {
  const std::string good = R"({"id":7,"turn_index":1,"event":"done","data":{}})";
  ASSERT_TRUE(event_in(good));
  for (std::size_t size = 0; size + 1 < good.size(); ++size) {
    EXPECT_FALSE(event_in(good.substr(0, size))) << size;
  }
  for (const char* line : {R"({"id":x,"turn_index":1,"event":"done","data":{}})",
                           R"({"id":99999999999999999999,"turn_index":1,"event":"done","data":1})",
                           R"({"turn_index":1,"id":7,"event":"done","data":{}})",
                           R"({"id":7,"turn_index":1,"event":"done","data":})",
                           R"({"id":7,"turn_index":1,"event":"","data":{}})",
                           R"({"id":7,"turn_index":1,"event":"other","data":{}})", "null"}) {
    EXPECT_FALSE(event_in(line)) << line;
  }
}

RC_GTEST_PROP(EventLine, IsReadAsItWasWritten, (std::int64_t id, std::int64_t turn_index)) {
  using enum EventKind;
  const EventKind kind = *rc::gen::element(update, permission, permission_resolved, done, failed);
  // Any JSON text will do; its meaning does not matter here.
  const std::string json = *rc::gen::suchThat<std::string>(
      [](const std::string& text) { return !text.empty() && !text.contains('\n'); });
  std::string line;
  append_event_line(line, {id, turn_index, kind, json});
  RC_ASSERT(line.back() == '\n');
  line.pop_back();
  const auto read = event_in(line);
  RC_ASSERT(read.has_value());
  RC_ASSERT(read->id == id && read->turn_index == turn_index);
  RC_ASSERT(read->kind == kind);
  RC_ASSERT(read->json == json);
}

TEST(States, AreReadAsTheyAreNamed) {
  for (const RunState state : {RunState::running, RunState::succeeded, RunState::failed,
                               RunState::cancelled, RunState::interrupted}) {
    EXPECT_EQ(run_state_from(name_of(state)), state);
  }
  for (const TurnState state : {TurnState::accepted, TurnState::done, TurnState::failed,
                                TurnState::cancelled, TurnState::interrupted}) {
    EXPECT_EQ(turn_state_from(name_of(state)), state);
  }
  EXPECT_EQ(name_of(RunState::interrupted), "interrupted");
  EXPECT_EQ(name_of(TurnState::accepted), "accepted");
  EXPECT_EQ(name_of(CloseReason::token_revoked), "token_revoked");
  for (const char* name : {"", "Failed", "failed ", "x"}) {
    EXPECT_FALSE(run_state_from(name)) << name;
    EXPECT_FALSE(turn_state_from(name)) << name;
  }
}

}  // namespace
}  // namespace clawdforge
