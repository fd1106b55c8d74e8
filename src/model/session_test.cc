#include "model/session.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace clawdforge {
namespace {

TEST(EventLine, IsWhatCallersGet) {
  std::string out = "before\n";
  const TimePoint at{std::chrono::seconds(1'700'000'000)};
  append_event_line(out, Event{7, 1, EventKind::permission_resolved, R"({"a":1})", at, 12});
  EXPECT_EQ(out,
            "before\n{\"id\":7,\"turn_index\":1,\"at\":1700000000,\"offset_ms\":12,"
            "\"event\":\"permission_resolved\",\"data\":{\"a\":1}}\n");
}

TEST(EventLine, OfAnOlderGatewayHasNoTime) {
  const auto event = event_in(R"({"id":7,"turn_index":1,"event":"done","data":{"b":2}})");
  ASSERT_TRUE(event);
  EXPECT_FALSE(event->at);
  EXPECT_FALSE(event->offset_ms);
  EXPECT_EQ(event->json, R"({"b":2})");
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
                           R"({"id":7,"turn_index":1,"at":x,"event":"done","data":{}})",
                           R"({"id":7,"turn_index":1,"at":1,"offset_ms":,"event":"done","data":1})",
                           R"({"id":7,"turn_index":1,"event":"other","data":{}})", "null"}) {
    EXPECT_FALSE(event_in(line)) << line;
  }
}

RC_GTEST_PROP(EventLine, IsReadAsItWasWritten, (std::int64_t id, std::int64_t turn_index)) {
  using enum EventKind;
  const EventKind kind =
      *rc::gen::element(update, permission, permission_resolved, done, failed, turn);
  // Any JSON text will do; its meaning does not matter here.
  const std::string json = *rc::gen::suchThat<std::string>(
      [](const std::string& text) { return !text.empty() && !text.contains('\n'); });
  std::string line;
  const TimePoint at{std::chrono::seconds(*rc::gen::inRange<std::int64_t>(0, 1'000'000'000'000))};
  const auto offset = *rc::gen::maybe(rc::gen::arbitrary<std::int64_t>());
  std::optional<std::int64_t> offset_ms;
  if (offset) offset_ms = *offset;
  append_event_line(line, Event{id, turn_index, kind, json, at, offset_ms});
  RC_ASSERT(line.back() == '\n');
  line.pop_back();
  const auto read = event_in(line);
  RC_ASSERT(read.has_value());
  RC_ASSERT(read->id == id && read->turn_index == turn_index);
  RC_ASSERT(read->kind == kind);
  RC_ASSERT(read->json == json);
  RC_ASSERT(read->at == unix_seconds(at));
  RC_ASSERT(read->offset_ms == offset_ms);
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
