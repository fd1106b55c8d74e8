#include "process/host/host_wire.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace clawdforge {
namespace {

TEST(HostWire, AnOrderComesOutAsItWentIn) {
  const HostOrder order{.argv = {"acpx", "", "a b", std::string("z\0y", 3)},
                        .environment = {"A=1"},
                        .input = std::string(100'000, 'x'),
                        .file = "/tmp/f",
                        .file_content = "{}"};
  EXPECT_EQ(decode_order(encode_order(order)), order);
  EXPECT_EQ(
      decode_order(
          encode_order(
              {.argv = {"a"}, .environment = {}, .input = {}, .file = {}, .file_content = {}}))
          ->argv,
      std::vector<std::string>{"a"});
}

TEST(HostWire, WhatIsNoOrderIsNone) {
  const std::string good = encode_order(
      {.argv = {"acpx"}, .environment = {}, .input = "x", .file = {}, .file_content = {}});
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(decode_order(good.substr(0, size))) << size;
  }
  EXPECT_FALSE(decode_order(good + "x"));
  EXPECT_FALSE(decode_order(encode_order({})));
  EXPECT_FALSE(decode_order(std::string(12, '\xff')));
}

TEST(HostWire, EveryEndIsTold) {
  for (const ExitStatus& status : {ExitStatus(Exited{0}), ExitStatus(Exited{5}),
                                   ExitStatus(Signaled{9}), ExitStatus(NotStarted{2})}) {
    EXPECT_EQ(decode_end(encode_end(status)), status);
  }
  EXPECT_EQ(decode_end(""), ExitStatus(Unknown{}));
  EXPECT_EQ(decode_end(std::string(8, '\0')), ExitStatus(Unknown{}));
  EXPECT_EQ(decode_end(encode_end(Unknown{})), ExitStatus(Unknown{}));
  EXPECT_EQ(decode_end(encode_end(Exited{1}) + "x"), ExitStatus(Unknown{}));
}

TEST(HostWire, BytesThatAreNoFramesEndTheReading) {
  HostFrameReader reader;
  reader.feed("GET / HTTP/1.1\r\n\r\n");
  EXPECT_FALSE(reader.next());
  EXPECT_TRUE(reader.is_broken());
  reader.feed(host_frame(HostFrameKind::output, 1, "x"));
  EXPECT_FALSE(reader.next());

  HostFrameReader other;
  std::string long_one = host_frame(HostFrameKind::output, 1, "");
  long_one.replace(5, 4, "\xff\xff\xff\xff");
  other.feed(long_one);
  EXPECT_FALSE(other.next());
  EXPECT_TRUE(other.is_broken());
}

RC_GTEST_PROP(HostWire, FramesComeOutHoweverTheyAreCut,
              (const std::vector<std::string>& contents, const std::vector<std::uint8_t>& cuts)) {
  std::string all;
  for (std::size_t i = 0; i < contents.size(); ++i) {
    all += host_frame(i % 2 == 0 ? HostFrameKind::output : HostFrameKind::ended,
                      static_cast<std::uint32_t>(i), contents[i]);
  }
  HostFrameReader reader;
  std::vector<std::string> found;
  const auto take = [&] {
    while (const auto frame = reader.next()) {
      RC_ASSERT(frame->operation == found.size());
      found.push_back(frame->bytes);
    }
  };
  for (const std::uint8_t cut : cuts) {
    const std::size_t size = std::min<std::size_t>(cut, all.size());
    reader.feed(all.substr(0, size));
    all.erase(0, size);
    take();
  }
  reader.feed(all);
  take();
  RC_ASSERT(found == contents);
  RC_ASSERT(!reader.is_broken());
}

}  // namespace
}  // namespace clawdforge
