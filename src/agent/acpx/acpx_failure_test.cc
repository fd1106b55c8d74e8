#include "agent/acpx/acpx_failure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

namespace clawdforge {
namespace {

using testing::HasSubstr;

AgentSpec spec() {
  AgentSpec spec;
  spec.name = "codex";
  spec.install_hint = "Install it.";
  spec.login_hint = "Log in.";
  return spec;
}

Failure of(std::int64_t code, std::string acpx_code, std::string detail,
           std::string message = "It failed at sk-ant-12345678.") {
  return failure_of(AcpxFault{.code = code,
                              .message = std::move(message),
                              .acpx_code = std::move(acpx_code),
                              .detail_code = std::move(detail)},
                    spec(), std::nullopt, {"sk-ant-12345678"});
}

TEST(AcpxFailure, TellsThemApart) {
  EXPECT_EQ(of(-32000, "RUNTIME", "AUTH_REQUIRED").code, "agent_not_logged_in");
  EXPECT_EQ(of(-32000, "RUNTIME", "AUTH_REQUIRED").message, "Log in.");
  EXPECT_EQ(of(-32603, "RUNTIME", "AUTH_REQUIRED").kind, Errc::unavailable);
  EXPECT_EQ(of(-32603, "RUNTIME", "AGENT_SPAWN_ENOENT").code, "agent_not_found");
  EXPECT_EQ(of(-32603, "RUNTIME", "AGENT_SPAWN_ENOENT").message, "Install it.");
  EXPECT_EQ(of(-32603, "RUNTIME", "AGENT_DISCONNECTED").code, "agent_exited");
  EXPECT_EQ(of(-32603, "RUNTIME", "AGENT_STARTUP_FAILED").code, "agent_exited");
  EXPECT_EQ(of(-32070, "TIMEOUT", "QUEUE_RUNTIME_PROMPT_FAILED").code, "acpx_timeout");
  EXPECT_EQ(of(-32070, "TIMEOUT", "").kind, Errc::timed_out);
  EXPECT_EQ(of(-32002, "NO_SESSION", "").code, "acpx_no_session");
  EXPECT_EQ(of(-32602, "USAGE", "").code, "acpx_usage");
  EXPECT_EQ(of(-32072, "PERMISSION_PROMPT_UNAVAILABLE", "").code, "acpx_permission");
  EXPECT_EQ(of(-32603, "RUNTIME", "QUEUE_OWNER_OVERLOADED").code, "acpx_queue");
  EXPECT_EQ(of(-32603, "RUNTIME", "").code, "agent_error");
}

TEST(AcpxFailure, KeepsSecretsAndPathsOfItsOwnSentencesOut) {
  EXPECT_THAT(of(-32603, "RUNTIME", "").message, testing::Not(HasSubstr("sk-ant-1234")));
  EXPECT_THAT(of(-32002, "NO_SESSION", "", "No session for /home/me").message,
              testing::Not(HasSubstr("/home")));
}

TEST(AcpxFailure, AnEndWithoutAWordIsNoSuccess) {
  EXPECT_EQ(failure_of_acpx(spec(), Exited{0}).code, "agent_nonsense");
  EXPECT_EQ(failure_of_acpx(spec(), Exited{2}).code, "acpx_usage");
  EXPECT_EQ(failure_of_acpx(spec(), Exited{3}).code, "acpx_timeout");
  EXPECT_EQ(failure_of_acpx(spec(), Exited{4}).code, "acpx_no_session");
  EXPECT_EQ(failure_of_acpx(spec(), Exited{5}).code, "acpx_permission");
  EXPECT_EQ(failure_of_acpx(spec(), Exited{1}).code, "agent_exited");
  EXPECT_THAT(failure_of_acpx(spec(), Exited{1}).message, HasSubstr("acpx for codex"));
  EXPECT_THAT(failure_of_acpx(spec(), Signaled{9}).message, HasSubstr("signal 9"));
  EXPECT_EQ(failure_of_acpx(spec(), NotStarted{ENOENT}).code, "agent_not_found");
}

TEST(AcpxFailure, AModelThatIsNotTakenIsTheCallersMistake) {
  const auto about = [](std::string message, const std::string& model) {
    return model_failure(
        {.code = -32603, .message = std::move(message), .acpx_code = "RUNTIME", .detail_code = {}},
        spec(), model);
  };
  const auto unknown = about(
      "Cannot apply --model \"m3\": the ACP agent did not advertise that model. Available models: "
      "m1, m2.",
      "m3");
  ASSERT_TRUE(unknown);
  EXPECT_EQ(unknown->code, "unknown_model");
  EXPECT_THAT(unknown->message, HasSubstr("m1, m2"));
  const auto deaf =
      about("Cannot apply --model \"m3\": the ACP agent did not advertise model support.", "m3");
  ASSERT_TRUE(deaf);
  EXPECT_EQ(deaf->code, "model_not_supported");
  EXPECT_FALSE(about("Something else.", "m3"));
  EXPECT_FALSE(about("Cannot apply --model.", ""));
}

}  // namespace
}  // namespace clawdforge
