#include "http/message/response.h"

#include <gtest/gtest.h>

namespace clawdforge {
namespace {

std::string status_line(int status) {
  std::string out;
  append_status(out, status);
  return out;
}

TEST(Status, HasItsName) {
  EXPECT_EQ(status_line(200), "200 OK");
  EXPECT_EQ(status_line(202), "202 Accepted");
  EXPECT_EQ(status_line(304), "304 Not Modified");
  EXPECT_EQ(status_line(404), "404 Not Found");
  EXPECT_EQ(status_line(529), "529 Overloaded");
}

TEST(Status, WithoutANameHasThatOfItsClass) {
  EXPECT_EQ(status_line(299), "299 Success");
  EXPECT_EQ(status_line(399), "399 Redirection");
  EXPECT_EQ(status_line(499), "499 Client Error");
  EXPECT_EQ(status_line(599), "599 Server Error");
  for (int status = 200; status < 600; ++status) {
    EXPECT_TRUE(status_line(status).starts_with(std::to_string(status) + " ")) << status;
  }
}

TEST(Status, ThatNoAnswerCanHaveIsOurFault) {
  for (const int status : {-1, 0, 100, 199, 600, 1000}) {
    EXPECT_EQ(status_line(status), "500 Internal Server Error") << status;
  }
}

}  // namespace
}  // namespace clawdforge
