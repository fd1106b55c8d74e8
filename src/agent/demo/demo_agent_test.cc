#include "agent/demo/demo_agent.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>

#include "agent/claude/cli_result.h"

namespace clawdforge {
namespace {

using testing::HasSubstr;

struct Ended {
  int code;
  std::string output;
};

// Calls it with standard input and output replaced by files.
Ended call(const std::vector<std::string>& arguments, const std::string& input) {
  std::FILE* in = std::tmpfile();
  std::FILE* out = std::tmpfile();
  std::fwrite(input.data(), 1, input.size(), in);
  std::rewind(in);
  std::fflush(stdout);
  const int old_in = dup(STDIN_FILENO);
  const int old_out = dup(STDOUT_FILENO);
  dup2(fileno(in), STDIN_FILENO);
  dup2(fileno(out), STDOUT_FILENO);
  const int code = demo_agent(arguments);
  dup2(old_in, STDIN_FILENO);
  dup2(old_out, STDOUT_FILENO);
  close(old_in);
  close(old_out);
  std::rewind(out);
  std::string output(1'000'000, '\0');
  output.resize(std::fread(output.data(), 1, output.size(), out));
  std::fclose(in);
  std::fclose(out);
  return {code, output};
}

TEST(DemoAgent, AnswersLikeClaude) {
  const Ended ended = call(
      {"-p", "--output-format", "json", "--model", "sonnet", "--system-prompt", "-x", "--effort",
       "low", "--setting-sources", "", "--strict-mcp-config", "--no-session-persistence"},
      "\n/hello \"you\" \xff");
  EXPECT_EQ(ended.code, 0);
  ResultReader reader;
  EXPECT_TRUE(reader.feed(ended.output));
  ASSERT_TRUE(reader.result());
  EXPECT_FALSE(reader.result()->is_error);
  EXPECT_EQ(reader.result()->text, "You said: /hello \"you\" \xef\xbf\xbd");
  EXPECT_EQ(reader.result()->stop_reason, "end_turn");
  EXPECT_EQ(reader.result()->cost_usd, 0.0);
  EXPECT_EQ(reader.result()->usage.value().input_tokens, 15);
}

TEST(DemoAgent, AnswersInPlainText) {
  EXPECT_EQ(call({"--print"}, "hello").output, "You said: hello\n");
}

TEST(DemoAgent, SaysItsVersion) { EXPECT_THAT(call({"--version"}, "").output, HasSubstr("demo")); }

TEST(DemoAgent, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(call({"-p", "--frobnicate"}, "x").code, 2);
  EXPECT_EQ(call({"-p", "prompt as argument"}, "x").code, 2);
  EXPECT_EQ(call({"-p", "--model"}, "x").code, 2);
  EXPECT_EQ(call({"-p", "--output-format", "xml"}, "x").code, 2);
  EXPECT_EQ(call({}, "x").code, 2);
  EXPECT_EQ(call({"-p"}, " \n").code, 2);
  EXPECT_EQ(call({"-p", "--frobnicate"}, "x").output, "");
}

}  // namespace
}  // namespace clawdforge
