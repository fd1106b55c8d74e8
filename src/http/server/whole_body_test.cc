#include "http/server/whole_body.h"

#include <gtest/gtest.h>

#include "http/server/server_fixture.h"

namespace clawdforge {
namespace {

using std::chrono::seconds;

TEST(BodyPace, EarnsTimeWithBytesUpToWhatItHadAtFirst) {
  BodyPace pace(seconds(30), 1000);
  EXPECT_EQ(pace.left(), seconds(30));
  pace.note(seconds(10), 0);
  EXPECT_EQ(pace.left(), seconds(20));
  pace.note(seconds(1), 4000);
  EXPECT_EQ(pace.left(), seconds(23));
  pace.note(seconds(1), 15'000'000);
  EXPECT_EQ(pace.left(), seconds(30)) << "much at once allows no long silence afterwards";
  for (int i = 0; i < 1000; ++i) pace.note(seconds(1), 1000);
  EXPECT_EQ(pace.left(), seconds(30)) << "slow and steady is enough";
  for (int i = 0; i < 30; ++i) pace.note(seconds(1), 1);
  EXPECT_LT(pace.left(), seconds(1)) << "single bytes are not";
}

constexpr std::string_view kSlice = "a large part that is not copied";

Async<void> send_parts(BodyWriter* writer) {
  std::string before = "before;";
  auto written = co_await writer->write(std::move(before));
  if (!written) co_return written;
  written = co_await writer->write_slice(kSlice);
  if (!written) co_return written;
  co_return co_await writer->write_slice("");
}

Task<Response> stream_parts(Request*) {
  Response response;
  response.stream = send_parts;
  co_return response;
}

Admission admit_streams(Request&) {
  Admission admission;
  admission.handler = stream_parts;
  return admission;
}

TEST(WriteSlice, SendsAChunkOfItsOwn) {
  RunningServer running({}, admit_streams);
  const std::string answer = running.ask("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(
      answer.ends_with("7\r\nbefore;\r\n1f\r\na large part that is not copied\r\n0\r\n\r\n"))
      << answer;
}

TEST(WriteSlice, SendsPlainBytesToAnOldCaller) {
  RunningServer running({}, admit_streams);
  const std::string answer = running.ask("GET / HTTP/1.0\r\n\r\n");
  EXPECT_TRUE(answer.ends_with("before;a large part that is not copied")) << answer;
}

TEST(AdmitPeer, TellsAnAddressThatHasTooManyConnections) {
  int open = 0;
  ServerOptions options;
  options.admit_peer = [&open](const IpAddress&) -> std::optional<std::shared_ptr<const void>> {
    if (open >= 1) return std::nullopt;
    ++open;
    return std::shared_ptr<const void>(&open, [&open](const void*) { --open; });
  };
  RunningServer running(std::move(options), admit_streams);
  auto first = running.connect();
  running.wait_until([&] { return open == 1; }, "the first is there");
  const std::string refused = running.ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_NE(refused.find(" 429 "), std::string::npos) << refused;
  EXPECT_NE(refused.find("too_many_address_connections"), std::string::npos) << refused;
  EXPECT_NE(refused.find("Retry-After: 1\r\n"), std::string::npos) << refused;
  first.close();
  running.wait_until([&] { return open == 0; }, "its place is free again");
}

}  // namespace
}  // namespace clawdforge
