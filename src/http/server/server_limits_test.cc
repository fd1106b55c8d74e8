// The times that a caller may take: between two requests, for a body, for an answer. Each is one
// second here, and its usual value is several times the bound that a test waits for.
#include <gtest/gtest.h>

#include <boost/asio/buffer.hpp>

#include "http/server/server_fixture.h"

namespace clawdforge {
namespace asio = boost::asio;
namespace {

using std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr std::size_t kBigBytes = 16 * 1024 * 1024;  // more than the sockets take by themselves
constexpr Seconds kSoon(8);                          // below the usual value of every limit

Task<Response> echo(Request* request) {
  Response response;
  response.content_type = "text/plain";
  response.body = request->body;
  co_return response;
}

Task<Response> big() {
  Response response;
  response.body = std::string(kBigBytes, 'x');
  co_return response;
}

Admission admit(Request& request) {
  Admission admission;
  admission.body_bytes_max = 1024;
  admission.handler = echo;
  if (request.path == "/big") admission.handler = [](Request*) { return big(); };
  return admission;
}

class ServerLimitsTest : public ::testing::Test {
 protected:
  static ServerOptions options() {
    ServerOptions options;
    options.request_id_prefix = "t";
    options.idle_max = std::chrono::seconds(1);
    options.body_read_max = std::chrono::seconds(1);
    options.write_stall_max = std::chrono::seconds(1);
    return options;
  }

  void expect_after_about_a_second() const {
    EXPECT_GE(steady_clock::now() - begun_, Seconds(0.9));
    EXPECT_LT(steady_clock::now() - begun_, kSoon);
  }

  RunningServer house_{options(), [](Request& request) { return admit(request); }};
  const steady_clock::time_point begun_ = steady_clock::now();
};

TEST_F(ServerLimitsTest, ClosesAConnectionThatIsIdleAfterARequest) {
  const std::string answer = house_.ask("GET /echo HTTP/1.1\r\nHost: t\r\n\r\n");
  expect_after_about_a_second();
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 ")) << answer;
  EXPECT_TRUE(answer.ends_with("\r\n\r\n")) << "and nothing was said at the end: " << answer;
}

TEST_F(ServerLimitsTest, GivesUpOnABodyThatDoesNotComeInTime) {
  const std::string answer =
      house_.ask("POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 10\r\n\r\n{\"a\"");
  expect_after_about_a_second();
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 408 ")) << answer;
  EXPECT_NE(answer.find("request_timeout: "), std::string::npos) << answer;
}

TEST_F(ServerLimitsTest, CutsACallerThatDoesNotTakeItsAnswer) {
  RunningServer::Socket socket(house_.io().get_executor());
  socket.open(asio::ip::tcp::v4());
  socket.set_option(asio::socket_base::receive_buffer_size(4096));
  socket.connect({asio::ip::address_v4::loopback(), house_.port()});
  const std::string request = "GET /big HTTP/1.1\r\nHost: t\r\n\r\n";
  asio::write(socket, asio::buffer(request));
  const Server& server = house_.server();
  ASSERT_NO_FATAL_FAILURE(house_.wait_until([&] { return server.busy() == 1; }, "it is asked"));
  ASSERT_NO_FATAL_FAILURE(
      house_.wait_until([&] { return server.connections() == 0; }, "it is cut"));
  expect_after_about_a_second();
  EXPECT_LT(house_.read_all(socket).size(), kBigBytes);
}

}  // namespace
}  // namespace clawdforge
