// Any bytes are a multipart body or a refusal, and mean the same however they arrive: all at
// once, cut in two (the first byte of the input says where), or byte by byte.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "http/message/multipart.h"

using namespace clawdforge;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

class Told : public MultipartSink {
 public:
  void begin_part(MultipartPart part) override {
    require(!is_open_);
    is_open_ = true;
    said_ += "<" + part.name + "|" + part.filename.value_or("(none)") + "|" + part.content_type;
  }
  void take(std::string_view bytes) override {
    require(is_open_ && !bytes.empty());
    said_ += bytes;
  }
  void end_part() override {
    require(is_open_);
    is_open_ = false;
    said_ += ">";
  }

  bool is_open_ = false;
  std::string said_;
};

// What the body means, cut at `cut`, and after it into pieces of `size`.
std::string meaning(std::string_view body, std::size_t cut, std::size_t size) {
  Told sink;
  MultipartParser parser("b-");
  Result<void> fed = parser.feed(body.substr(0, cut), sink);
  for (std::size_t at = cut; fed && at < body.size(); at += size) {
    fed = parser.feed(body.substr(at, size), sink);
  }
  if (fed) fed = parser.finish();
  if (fed) {
    require(!sink.is_open_);
    return sink.said_;
  }
  require(fed.error().kind == Errc::malformed && fed.error().code == "bad_multipart");
  return sink.said_ + "!" + fed.error().message;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(bytes) + 1, size - 1);
  const std::string whole = meaning(text, text.size(), 1);
  require(meaning(text, text.size() * bytes[0] / 255, text.size()) == whole);
  require(meaning(text, 0, 1) == whole);

  const auto boundary = multipart_boundary(text);
  if (boundary) {
    require(!boundary->empty() && boundary->size() <= 70 && boundary->back() != ' ');
    require(boundary->find_first_of("\r\n\"") == std::string::npos);
  }
  return 0;
}
