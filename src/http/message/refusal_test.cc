#include "http/message/refusal.h"

#include <gtest/gtest.h>

namespace clawdforge {
namespace {

void render_v1(const Refusal&, Response& response) { response.body = "v1"; }
void render_beta(const Refusal&, Response& response) { response.body = "beta"; }

TEST(Refusal, IsWrittenByTheRendererOfTheLongestPrefix) {
  RefusalRenderers renderers(render_plain_refusal);
  renderers.add("/v1", render_v1);
  renderers.add("/v1/beta", render_beta);
  EXPECT_EQ(renderers.find("/v1"), render_v1);
  EXPECT_EQ(renderers.find("/v1/x"), render_v1);
  EXPECT_EQ(renderers.find("/v1/beta/x"), render_beta);
  EXPECT_EQ(renderers.find("/v1/betas"), render_v1);
  for (const char* path : {"", "/", "/v", "/v11", "/x/v1"}) {
    EXPECT_EQ(renderers.find(path), render_plain_refusal) << path;
  }
}

TEST(Refusal, HasTheHeadersOfItsStatus) {
  const Response plain =
      refused({.status = 404, .code = "gone", .message = "It went."}, render_plain_refusal);
  EXPECT_EQ(plain.status, 404);
  EXPECT_TRUE(plain.headers.empty());
  EXPECT_EQ(plain.body, "gone: It went.\n");
  const Response unknown = refused({.status = 401}, render_v1);
  ASSERT_EQ(unknown.headers.size(), 1u);
  EXPECT_EQ(unknown.headers.front().first, "WWW-Authenticate");
  const Response full = refused({.status = 503, .retry_after = std::chrono::seconds(7)}, render_v1);
  ASSERT_EQ(full.headers.size(), 1u);
  EXPECT_EQ(full.headers.front().second, "7");
}

}  // namespace
}  // namespace clawdforge
