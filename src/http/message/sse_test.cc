#include "http/message/sse.h"

#include <gtest/gtest.h>

namespace clawdforge {
namespace {

TEST(Sse, HasTheIdFirst) {
  std::string out;
  append_sse(out, 7, "update", R"({"a":1})");
  EXPECT_EQ(out, "id: 7\nevent: update\ndata: {\"a\":1}\n\n");
}

TEST(Sse, LeavesTheIdOutWhereThereIsNone) {
  std::string out;
  append_sse(out, std::nullopt, "gap", R"({"from":1,"to":2})");
  EXPECT_EQ(out, "event: gap\ndata: {\"from\":1,\"to\":2}\n\n");
}

TEST(Sse, AddsToWhatIsThere) {
  std::string out(kSseComment);
  append_sse(out, 9'007'199'254'740'993, "done", "{}");
  append_sse(out, 9'007'199'254'740'994, "failed", "{}");
  EXPECT_EQ(out,
            ":\n\nid: 9007199254740993\nevent: done\ndata: {}\n\n"
            "id: 9007199254740994\nevent: failed\ndata: {}\n\n");
}

}  // namespace
}  // namespace clawdforge
