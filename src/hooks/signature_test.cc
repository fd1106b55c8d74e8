#include "hooks/signature.h"

#include <gtest/gtest.h>

#include "model/hooks/event_body.h"

namespace clawdforge {
namespace {

// Computed with Python's hmac and base64 over "msg_1.1700000000." and the body; the key is the
// bytes 0 to 31.
TEST(WebhookSignature, IsThatOfTheScheme) {
  const Secret secret(std::string("whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="));
  EXPECT_EQ(webhook_signature(secret, "msg_1", 1'700'000'000,
                              "{\"type\":\"job.succeeded\",\"data\":{\"text\":\"grüße\"}}"),
            "v1,rf1BBDn2IaUFVWspNJnRcApvqBHzdJU+MD94/hA6aWE=");
}

TEST(WebhookSignature, NeedsASecretOfItsForm) {
  for (const char* text : {"", "whsec_", "whsec_!!!!", "AAECAwQFBgcI", "cf_AAECAwQFBgcI"}) {
    EXPECT_FALSE(webhook_signature(Secret(std::string(text)), "a", 1, "b")) << text;
  }
}

TEST(EventBody, HasTypeTimeAndData) {
  const auto at = TimePoint(std::chrono::milliseconds(1'700'000'000'042));
  EXPECT_EQ(
      *event_body("job.failed", at, R"({"job_id":"1"})"),
      R"({"type":"job.failed","timestamp":"2023-11-14T22:13:20.042Z","data":{"job_id":"1"}})");
}

}  // namespace
}  // namespace clawdforge
