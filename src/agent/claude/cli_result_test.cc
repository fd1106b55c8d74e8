#include "agent/claude/cli_result.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace clawdforge {
namespace {

std::optional<CliResult> read(std::string_view output) {
  ResultReader reader;
  reader.feed(output);
  reader.finish();
  return reader.result();
}

// Of the real program, with the keys in its order.
constexpr std::string_view kReal =
    R"({"duration_api_ms":72,"stop_reason":"end_turn","session_id":"2cd2e256","total_cost_usd":0.027382,)"
    R"("usage":{"input_tokens":13631,"cache_creation_input_tokens":7,"cache_read_input_tokens":5,)"
    R"("output_tokens":12,"server_tool_use":{"web_search_requests":0}},"modelUsage":{},)"
    R"("terminal_reason":"completed","is_error":false,"num_turns":1,"subtype":"success",)"
    R"("api_error_status":null,"result":"hello\nworld","type":"result","uuid":"03ec"})";

TEST(ResultReader, ReadsWhatTheRealProgramPrints) {
  const auto result = read(std::string(kReal) + "\n");
  ASSERT_TRUE(result);
  EXPECT_FALSE(result->is_error);
  EXPECT_EQ(result->text, "hello\nworld");
  EXPECT_EQ(result->stop_reason, "end_turn");
  EXPECT_EQ(result->usage, (Usage{13631, 12, 5, 7}));
  EXPECT_EQ(result->cost_usd, 0.027382);
  EXPECT_EQ(result->terminal_reason, "completed");
  EXPECT_EQ(result->api_status, std::nullopt);
}

TEST(ResultReader, TellsWhatWasDeniedInShort) {
  std::string denials;
  for (int i = 0; i < 60; ++i) {
    denials += R"({"tool_name":"Bash","tool_use_id":"t","tool_input":{"command":")" +
               std::string(600, 'x') + "\u00e9\"}},";
  }
  const auto result = read(R"({"type":"result","result":"x","permission_denials":[1,)" + denials +
                           R"({"tool_name":7}]})");
  ASSERT_TRUE(result);
  ASSERT_EQ(result->denials.size(), kDenialsMax);
  EXPECT_EQ(result->denials[0].tool, "Bash");
  EXPECT_EQ(result->denials[0].input.size(), kDenialInputBytesMax);
  EXPECT_TRUE(result->denials[0].input.starts_with(R"({"command":"xxx)"));

  // A cut does not go through a character.
  std::string text;
  for (std::size_t i = 0; i < kDenialInputBytesMax; ++i) text += "\xc3\xa9";
  const auto cut = read(R"({"type":"result","result":"x","permission_denials":[{"tool_name":"a",)"
                        R"("tool_input":")" +
                        text + R"("}]})");
  ASSERT_TRUE(cut);
  EXPECT_EQ(cut->denials[0].input.size(), kDenialInputBytesMax - 1);  // after the quote, pairs
  EXPECT_EQ(cut->denials[0].input.back(), '\xa9');

  EXPECT_TRUE(read(kReal).value().denials.empty());
  EXPECT_TRUE(read(R"({"type":"result","result":"x","permission_denials":7})")->denials.empty());
}

TEST(ResultReader, IsDoneAtTheEndOfTheLine) {
  ResultReader reader;
  EXPECT_FALSE(reader.feed(kReal));
  EXPECT_FALSE(reader.result());
  EXPECT_TRUE(reader.feed("\n"));
  EXPECT_TRUE(reader.result());
  EXPECT_TRUE(reader.feed(R"({"type":"result","result":"second"})"));
  EXPECT_EQ(reader.result()->text, "hello\nworld");
}

TEST(ResultReader, SkipsOtherLines) {
  const std::string output =
      "warning: result\n\n{\"type\":\"system\",\"result\":1}\n[\"result\"]\n{result}\r\n  " +
      std::string(kReal) + "\r\n";
  EXPECT_EQ(read(output).value().text, "hello\nworld");
}

TEST(ResultReader, TakesALastLineWithoutItsEnd) {
  ResultReader reader;
  EXPECT_FALSE(reader.feed(kReal));
  reader.finish();
  EXPECT_TRUE(reader.result());
}

TEST(ResultReader, TakesTheOutputAsAWhole) {
  EXPECT_EQ(read("{\n  \"type\": \"result\",\n  \"result\": \"pretty\"\n}\n").value().text,
            "pretty");
  EXPECT_EQ(
      read("[{\"type\":\"system\"},\n{\"type\":\"result\",\"result\":\"last\"}]").value().text,
      "last");
  EXPECT_FALSE(read("[{\"type\":\"result\",\"result\":\"first\"},\n{\"type\":\"system\"}]"));
  EXPECT_FALSE(read("[]"));
}

TEST(ResultReader, ToleratesOddTypes) {
  const auto result =
      read(R"({"type":"result","result":{"a":[1]},"is_error":"no","stop_reason":7,"usage":[],)"
           R"("total_cost_usd":"x","api_error_status":"429","subtype":null})");
  ASSERT_TRUE(result);
  EXPECT_FALSE(result->is_error);
  EXPECT_EQ(result->text, R"({"a":[1]})");
  EXPECT_EQ(result->stop_reason, std::nullopt);
  EXPECT_EQ(result->usage, std::nullopt);
  EXPECT_EQ(result->cost_usd, std::nullopt);
  EXPECT_EQ(result->api_status, std::nullopt);
}

TEST(ResultReader, CountsNothingThatIsNoCount) {
  const auto result = read(
      R"({"type":"result","result":"","usage":{"input_tokens":-5,"output_tokens":1e300,)"
      R"("cache_read_input_tokens":3.0,"cache_creation_input_tokens":"9"},"total_cost_usd":-1})");
  EXPECT_EQ(result.value().usage, (Usage{0, 0, 3, 0}));
  EXPECT_EQ(result->cost_usd, std::nullopt);
}

TEST(ResultReader, WantsAResultInIt) {
  EXPECT_FALSE(read(R"({"type":"result","is_error":false})"));
  EXPECT_FALSE(read(R"({"type":"result","result":null})"));
  EXPECT_EQ(read(R"({"type":"result","structured_output":{"b":2}})").value().text, R"({"b":2})");
}

TEST(ResultReader, FindsTheSentenceOfAnError) {
  EXPECT_EQ(read(R"({"type":"result","is_error":true,"result":"Not logged in"})").value().text,
            "Not logged in");
  EXPECT_EQ(
      read(R"({"type":"result","subtype":"error_max_turns","errors":["a",1,"b"]})").value().text,
      "a; b");
  EXPECT_EQ(
      read(R"({"type":"result","is_error":true,"api_error":"connection_failed"})").value().text,
      "connection_failed");
  EXPECT_EQ(read(R"({"type":"result","subtype":"error_during_execution"})").value().text,
            "error_during_execution");
  EXPECT_NE(read(R"({"type":"result","is_error":true})").value().text, "");
}

TEST(ResultReader, RepairsTheText) {
  EXPECT_EQ(read("{\"type\":\"result\",\"result\":\"a\xff"
                 "b\"}\n")
                .value()
                .text,
            "a\xef\xbf\xbd"
            "b");
  EXPECT_EQ(read(R"({"type":"result","result":"cut \ud83d"})").value().text, "cut \xef\xbf\xbd");
  EXPECT_EQ(read(R"({"type":"result","result":"\udc00\\ud800 \ud83d\ude42"})").value().text,
            "\xef\xbf\xbd\\ud800 \xf0\x9f\x99\x82");
}

TEST(ResultReader, GivesUpOnAFlood) {
  ResultReader reader;
  const std::string piece(1024 * 1024, 'x');
  std::size_t fed = 0;
  while (!reader.feed(piece)) {
    fed += piece.size();
    ASSERT_LE(fed, kResultBytesMax);
  }
  EXPECT_EQ(fed, kResultBytesMax);
  EXPECT_TRUE(reader.is_too_large());
  reader.finish();
  EXPECT_FALSE(reader.result());
}

TEST(ResultReader, RefusesDepth) {
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  EXPECT_FALSE(read("{\"type\":\"result\",\"result\":" + deep + "}\n"));
}

TEST(ResultReader, KnowsSilenceFromNonsense) {
  ResultReader reader;
  reader.feed(" \n\r\n");
  EXPECT_FALSE(reader.has_output());
  reader.feed("x");
  EXPECT_TRUE(reader.has_output());
}

TEST(ResultReader, ReadsTheSameHoweverItIsCut) {
  rc::check([](const std::vector<std::uint8_t>& sizes, bool with_noise) {
    const std::string output =
        (with_noise ? "noise\n{\"type\":1}\n" : "") + std::string(kReal) + "\nmore\n";
    ResultReader reader;
    std::string_view rest = output;
    for (const std::uint8_t size : sizes) {
      reader.feed(rest.substr(0, size));
      rest.remove_prefix(std::min<std::size_t>(size, rest.size()));
    }
    reader.feed(rest);
    reader.finish();
    RC_ASSERT(reader.result() == read(output));
    RC_ASSERT(reader.result().has_value());
  });
}

}  // namespace
}  // namespace clawdforge
