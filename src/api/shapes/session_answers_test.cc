#include "api/shapes/session_answers.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <set>

#include "base/refusals.h"
#include "storage/work/work_files.h"
#include "transcript/journal_json.h"

namespace clawdforge {
namespace json = boost::json;
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TimePoint at(std::int64_t second) { return TimePoint(seconds(second)); }

TEST(SessionAnswer, SaysTheWholeStateFlat) {
  SessionView view;
  view.session.id = SessionId("s-1");
  view.session.app = AppName("news");
  view.session.agent = "demo";
  view.session.meta = R"({"n":12345678901234567890123})";
  view.session.created_at = at(10);
  EXPECT_EQ(
      session_state(view).body,
      R"({"session_id":"s-1","agent":"demo","model":null,"app_name":"news",)"
      R"("created_at":10,"last_turn_at":null,"closed_at":null,"close_reason":null,)"
      R"("turn_count":0,"last_event_id":0,"live":false,"busy":false,"meta":{"n":12345678901234567890123},)"
      R"("usage":{"input_tokens":0,"output_tokens":0,"cache_read_tokens":0,)"
      R"("cache_write_tokens":0},"cost_usd":null,)"
      R"("title":null,"permission_mode":"approve_reads","effort":null,)"
      R"("turns_waiting":0,"questions_open":0,"turn_started_at":null,"context":null,)"
      R"("agent_version":null,"delete_at":null})");
  view.session.model = "opus";
  view.session.last_turn_at = at(11);
  view.session.closed_at = at(12);
  view.session.close_reason = "idle";
  view.session.turn_count = 3;
  view.session.usage = {1, 2, 3, 4};
  view.session.cost_usd = 0.25;
  view.is_live = true;
  view.is_busy = true;
  EXPECT_EQ(
      session_state(view).body,
      R"({"session_id":"s-1","agent":"demo","model":"opus","app_name":"news",)"
      R"("created_at":10,"last_turn_at":11,"closed_at":12,"close_reason":"idle",)"
      R"("turn_count":3,"last_event_id":0,"live":true,"busy":true,"meta":{"n":12345678901234567890123},)"
      R"("usage":{"input_tokens":1,"output_tokens":2,"cache_read_tokens":3,)"
      R"("cache_write_tokens":4},"cost_usd":0.25,)"
      R"("title":null,"permission_mode":"approve_reads","effort":null,)"
      R"("turns_waiting":0,"questions_open":0,"turn_started_at":null,"context":null,)"
      R"("agent_version":null,"delete_at":null})");
}

TEST(SessionAnswer, OfACreation) {
  Session session;
  session.id = SessionId("s-1");
  session.agent = "claude";
  session.created_at = at(7);
  EXPECT_EQ(created_session(session).body,
            R"({"ok":true,"session_id":"s-1","agent":"claude","model":null,"created_at":7})");
}

TurnOutcome good_turn() {
  TurnOutcome outcome;
  outcome.turn_index = 2;
  outcome.text = "say \"hi\"";
  outcome.stop_reason = "end_turn";
  outcome.duration = milliseconds(15);
  return outcome;
}

constexpr const char* kEvents = R"([{"a": 1},{"b":2}])";

TEST(TurnAnswer, HasTheEventsAsTheyAre) {
  const TurnOutcome outcome = good_turn();
  const Response response = turn_answer(SessionId("s-1"), outcome, kEvents, "r-1");
  EXPECT_EQ(response.status, 200);
  std::string without_events = closing_json(SessionId("s-1"), outcome);
  without_events.pop_back();
  EXPECT_EQ(response.body, without_events + R"(,"events":[{"a": 1},{"b":2}]})");
}

std::set<std::string> keys_of(const Response& response) {
  std::set<std::string> keys;
  for (const auto& [key, value] : json::parse(response.body).as_object()) keys.insert(key);
  return keys;
}

TEST(TurnAnswer, HasTheKeysOfTheContract) {
  const std::set<std::string> always = {"ok",   "session_id",  "turn_index",  "events",  "usage",
                                        "text", "stop_reason", "duration_ms", "cost_usd"};
  EXPECT_EQ(keys_of(turn_answer(SessionId("s-1"), good_turn(), kEvents, "r-1")), always);
  TurnOutcome cut = good_turn();
  cut.usage = Usage{1, 2, 3, 4};
  cut.cost_usd = 0.5;
  cut.is_events_truncated = true;
  cut.is_text_truncated = true;
  cut.is_resumed = false;
  std::set<std::string> all = always;
  all.insert({"events_truncated", "text_truncated", "resumed"});
  EXPECT_EQ(keys_of(turn_answer(SessionId("s-1"), cut, kEvents, "r-1")), all);
}

TEST(TurnAnswer, OfAFailureHasTheEventsSoFar) {
  TurnOutcome outcome = good_turn();
  outcome.failure =
      fail_for_now(Errc::timed_out, "timeout", "It took too long.", seconds(3)).error();
  outcome.stop_reason = "timeout";
  outcome.error_tail = "tail";
  outcome.is_events_truncated = true;
  const Response response = turn_answer(SessionId("s-1"), outcome, kEvents, "r-1");
  EXPECT_EQ(response.status, 504);
  EXPECT_EQ(response.detail, "timeout");
  ASSERT_EQ(response.headers.size(), 1u);
  EXPECT_EQ(response.headers.front().first, "Retry-After");
  EXPECT_EQ(response.headers.front().second, "3");
  const json::value body = json::parse(response.body);
  EXPECT_EQ(body, json::parse(
                      R"({"ok":false,"error":"It took too long.","stderr":"tail",
                          "duration_ms":15,"stop_reason":"timeout","code":"timeout",
                          "detail":"It took too long.","request_id":"r-1","session_id":"s-1",
                          "turn_index":2,"events":[{"a":1},{"b":2}],"events_truncated":true})"));
}

TEST(TurnAnswer, DoesNotCopyEventsThatHaveRoom) {
  std::string events = kEvents;
  events.reserve(4096);
  const char* const buffer = events.data();
  EXPECT_EQ(turn_answer(SessionId("s-1"), good_turn(), std::move(events), "r-1").body.data(),
            buffer);
}

TEST(FileList, SaysWhetherThereIsMore) {
  WorkListing listing;
  EXPECT_EQ(file_list(listing).body, R"({"files":[],"count":0,"truncated":false})");
  listing.files = {{"a.txt", 3, at(5)}, {"b/\"c\"", 0, at(6)}};
  listing.is_truncated = true;
  EXPECT_EQ(file_list(listing).body,
            R"({"files":[{"path":"a.txt","size":3,"modified_at":5},)"
            R"({"path":"b/\"c\"","size":0,"modified_at":6}],"count":2,"truncated":true})");
}

}  // namespace
}  // namespace clawdforge
