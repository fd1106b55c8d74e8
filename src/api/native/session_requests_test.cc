#include "api/native/session_requests.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace clawdforge {
namespace {

using std::chrono::seconds;

constexpr SessionDefaults kDefaults{seconds(120), seconds(3600), EventFormat::acp};

template <class T>
std::vector<std::string> wrong_fields(const Result<T>& parsed) {
  std::vector<std::string> fields;
  if (parsed) return fields;
  EXPECT_EQ(parsed.error().kind, Errc::invalid);
  EXPECT_EQ(parsed.error().code, "validation_failed");
  for (const FieldError& field : parsed.error().fields) fields.push_back(field.field);
  return fields;
}

std::string session_with(std::string_view name, std::string_view value) {
  return "{\"" + std::string(name) + "\":" + std::string(value) + "}";
}

TEST(SessionRequest, AnEmptyBodyAsksForAllDefaults) {
  for (const char* body : {"", "{}",
                           R"({"agent":null,"meta":null,"model":null,"system":null,"effort":null,
                               "mcp_servers":null,"permission_mode":null,"unknown":[1]})"}) {
    const auto session = parse_session(body);
    ASSERT_TRUE(session) << body;
    EXPECT_EQ(session->agent, "claude");
    EXPECT_EQ(session->meta, "{}");
    EXPECT_EQ(session->model, "");
    EXPECT_EQ(session->system, "");
    EXPECT_EQ(session->effort, "");
    EXPECT_EQ(session->mcp_servers, "");
    EXPECT_EQ(session->permission_mode, std::nullopt);
  }
}

TEST(SessionRequest, HasAllThatIsAskedFor) {
  const auto session = parse_session(
      R"({"agent":"My_Agent-1","meta":{"n":123456789012345678901234567890},"model":"opus[1m]",
          "system":"Be brief.","effort":"xhigh","permission_mode":"deny_all"})");
  ASSERT_TRUE(session);
  EXPECT_EQ(session->agent, "My_Agent-1");
  EXPECT_EQ(session->meta, R"({"n":123456789012345678901234567890})");
  EXPECT_EQ(session->model, "opus[1m]");
  EXPECT_EQ(session->system, "Be brief.");
  EXPECT_EQ(session->effort, "xhigh");
  EXPECT_EQ(session->permission_mode, PermissionMode::deny_all);
}

TEST(SessionRequest, RefusesWhatBreaksARule) {
  const std::vector<std::pair<const char*, std::string>> wrong = {
      {"agent", R"("")"},
      {"agent", R"("a b")"},
      {"agent", R"("../x")"},
      {"agent", "\"\xC3\xA9\""},
      {"agent", "\"" + std::string(65, 'a') + "\""},
      {"agent", "7"},
      {"meta", "[]"},
      {"meta", R"("{}")"},
      {"meta", R"({"a":")" + std::string(16 * 1024, 'x') + R"("})"},
      {"model", R"("")"},
      {"model", R"("-p")"},
      {"model", R"("a\nb")"},
      {"model", R"("a\u007f")"},
      {"model", "\"" + std::string(201, 'm') + "\""},
      {"system", R"("a\u0000b")"},
      {"effort", R"("hard")"},
      {"effort", "1"},
      {"permission_mode", R"("yes")"},
      {"permission_mode", "true"},
  };
  for (const auto& [name, value] : wrong) {
    EXPECT_EQ(wrong_fields(parse_session(session_with(name, value))),
              std::vector<std::string>{name})
        << name << " " << value.substr(0, 40);
  }
  EXPECT_TRUE(parse_session(session_with("model", "\"" + std::string(200, 'm') + "\"")));
  EXPECT_TRUE(parse_session(session_with("agent", "\"" + std::string(64, 'a') + "\"")));
}

TEST(SessionRequest, MeasuresMetaWithoutItsBlanks) {
  const std::string longest = R"({"a":")" + std::string(16 * 1024 - 8, 'x') + R"("})";
  ASSERT_EQ(longest.size(), 16u * 1024);
  const auto session = parse_session("{\"meta\" : \n " + longest + " }");
  ASSERT_TRUE(session);
  EXPECT_EQ(session->meta, longest);
}

TEST(SessionRequest, CompletesMcpServersAsTheProtocolHasThem) {
  const auto session = parse_session(R"({"mcp_servers":[
      {"name":"files","command":"mcp-files","args":["-v"],"env":[{"name":"A","value":"1"}]},
      {"name":"bare","command":"x","args":null},
      {"type":"http","name":"web","url":"https://example.org/mcp"},
      {"type":"sse","name":"old","url":"https://example.org/sse","headers":[]}]})");
  ASSERT_TRUE(session);
  EXPECT_EQ(
      session->mcp_servers,
      R"([{"name":"files","command":"mcp-files","args":["-v"],"env":[{"name":"A","value":"1"}]},)"
      R"({"name":"bare","command":"x","args":[],"env":[]},)"
      R"({"type":"http","name":"web","url":"https://example.org/mcp","headers":[]},)"
      R"({"type":"sse","name":"old","url":"https://example.org/sse","headers":[]}])");
  EXPECT_EQ(parse_session(R"({"mcp_servers":[]})")->mcp_servers, "[]");
  EXPECT_EQ(parse_session(R"({"mcp_servers":["files"]})")->mcp_servers, R"(["files"])");
}

TEST(SessionRequest, RefusesMcpServersOfAnotherShape) {
  const std::string long_name(64 * 1024, 'n');
  for (const std::string& servers : {
           std::string("{}"),
           std::string("[1]"),
           std::string("[{}]"),
           std::string(R"([{"command":"x"}])"),
           std::string(R"([{"name":"a"}])"),
           std::string(R"([{"name":1,"command":"x"}])"),
           std::string(R"([{"name":"a","command":["x"]}])"),
           std::string(R"([{"name":"a","command":"x","args":"y"}])"),
           std::string(R"([{"name":"a","command":"x","env":{"A":"1"}}])"),
           std::string(R"([{"name":"a","type":"http"}])"),
           std::string(R"([{"name":"a","type":"ws","url":"u"}])"),
           std::string(R"([{"name":"a","type":"http","command":"x"}])"),
           std::string(R"([{"name":"a","type":"sse","url":"u","headers":{}}])"),
           R"([{"name":")" + long_name + R"(","command":"x"}])",
       }) {
    EXPECT_EQ(wrong_fields(parse_session(session_with("mcp_servers", servers))),
              std::vector<std::string>{"mcp_servers"})
        << servers.substr(0, 60);
  }
}

TEST(TurnRequest, HasItsDefaults) {
  const auto turn = parse_turn(R"({"prompt":" hi "})", false, kDefaults);
  ASSERT_TRUE(turn);
  EXPECT_FALSE(turn->is_streamed);
  EXPECT_EQ(turn->turn.prompt, " hi ");
  EXPECT_TRUE(turn->turn.files.empty());
  EXPECT_EQ(turn->turn.timeout, seconds(120));
  EXPECT_EQ(turn->format, EventFormat::acp);
}

TEST(TurnRequest, HasAllThatIsAskedFor) {
  const auto turn = parse_turn(R"({"prompt":"hi","files":["ff_1","ff_2"],"timeout_secs":5,
                     "event_format":"simple","stream":false})",
                               true, kDefaults);
  ASSERT_TRUE(turn);
  EXPECT_EQ(turn->turn.files, (std::vector<std::string>{"ff_1", "ff_2"}));
  EXPECT_EQ(turn->turn.timeout, seconds(5));
  EXPECT_EQ(turn->format, EventFormat::simple);
}

TEST(TurnRequest, TakesTheFormatOfTheDefaultsWhereNoneIsGiven) {
  SessionDefaults defaults = kDefaults;
  defaults.event_format = EventFormat::simple;
  EXPECT_EQ(parse_turn(R"({"prompt":"hi","event_format":null})", false, defaults)->format,
            EventFormat::simple);
  EXPECT_EQ(parse_turn(R"({"prompt":"hi","event_format":"acp"})", false, defaults)->format,
            EventFormat::acp);
}

TEST(TurnRequest, ItsDefaultTimeIsNeverOverTheMost) {
  const SessionDefaults defaults{seconds(120), seconds(60), EventFormat::acp};
  EXPECT_EQ(parse_turn(R"({"prompt":"hi"})", false, defaults)->turn.timeout, seconds(60));
}

TEST(TurnRequest, NamesAllThatIsWrong) {
  const auto turn = parse_turn(
      R"({"prompt":" \n\t","files":[1],"timeout_secs":4,"event_format":"xml","stream":"yes"})",
      false, kDefaults);
  EXPECT_EQ(wrong_fields(turn), (std::vector<std::string>{"prompt", "files", "timeout_secs",
                                                          "event_format", "stream"}));
  EXPECT_EQ(wrong_fields(parse_turn("", false, kDefaults)), std::vector<std::string>{"prompt"});
  EXPECT_EQ(wrong_fields(parse_turn(R"({"prompt":"x","timeout_secs":3601})", false, kDefaults)),
            std::vector<std::string>{"timeout_secs"});
}

TEST(TurnRequest, IsStreamedWhenItsFieldOrElseItsCallerSaysSo) {
  const auto is_streamed = [](std::string_view body, bool accepts_stream) {
    return parse_turn(body, accepts_stream, kDefaults)->is_streamed;
  };
  EXPECT_TRUE(is_streamed(R"({"prompt":"hi","stream":true})", false));
  EXPECT_TRUE(is_streamed(R"({"prompt":"hi"})", true));
  EXPECT_TRUE(is_streamed(R"({"prompt":"hi","stream":null})", true));
  EXPECT_FALSE(is_streamed(R"({"prompt":"hi","stream":false})", true));
  EXPECT_FALSE(is_streamed(R"({"prompt":"hi"})", false));
}

TEST(TurnRequest, KnowsAStreamByWhatTheCallerAccepts) {
  Request request(*IpAddress::parse("127.0.0.1"));
  const auto accepts = [&](std::string_view value) {
    request.headers = {{"accept", value}};
    return accepts_event_stream(request);
  };
  EXPECT_FALSE(accepts_event_stream(request));
  for (const char* value : {"text/event-stream", "Text/Event-Stream;q=0.9",
                            "application/json , text/event-stream", " text/event-stream "}) {
    EXPECT_TRUE(accepts(value)) << value;
  }
  for (const char* value : {"", "*/*", "text/*", "text/event-streams", "x;a=text/event-stream", ",",
                            "application/json"}) {
    EXPECT_FALSE(accepts(value)) << value;
  }
}

TEST(SessionId, HasTheCharactersThatClientsAllow) {
  for (const char* id : {"a", "01a1e24a-80a1-7000-b5a2-a96ab07105a4", "A_z-9"}) {
    EXPECT_TRUE(is_session_id(id)) << id;
  }
  for (const std::string& id : {std::string(), std::string("a/b"), std::string(".."),
                                std::string("a b"), std::string("\xC3\xA9"), std::string(65, 'a'),
                                std::string("a\0b", 3), std::string("a%20")}) {
    EXPECT_FALSE(is_session_id(id)) << id;
  }
}

TEST(SessionList, AsksForThePageOfOneApp) {
  const auto all = parse_session_list("", AppName("news"));
  ASSERT_TRUE(all);
  EXPECT_EQ(all->audit.app, "news");
  EXPECT_EQ(all->audit.limit, 1000);
  EXPECT_EQ(all->audit.cursor, std::nullopt);
  EXPECT_FALSE(all->includes_closed);
  const auto page =
      parse_session_list("include_closed=1&limit=7&cursor=5.x&app=other", AppName("news"));
  ASSERT_TRUE(page);
  EXPECT_EQ(page->audit.app, "news");
  EXPECT_EQ(page->audit.limit, 7);
  EXPECT_EQ(page->audit.cursor, "5.x");
  EXPECT_TRUE(page->includes_closed);
  EXPECT_EQ(wrong_fields(parse_session_list("include_closed=yes&limit=0", AppName("news"))),
            (std::vector<std::string>{"limit", "include_closed"}));
  EXPECT_EQ(wrong_fields(parse_session_list("limit=1001", AppName("news"))),
            std::vector<std::string>{"limit"});
}

}  // namespace
}  // namespace clawdforge
