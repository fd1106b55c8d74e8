// Any bytes on a connection are requests or a refusal, and the same ones however they
// arrive: all at once, or cut in two anywhere (the first byte of the input says where).
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "http/message/request_parser.h"

using namespace clawdforge;

namespace {

constexpr std::size_t kBodyBytesMax = 256;

void require(bool holds) {
  if (!holds) std::abort();
}

// What the bytes mean: one line per request, and how it ended.
std::string meaning(const std::vector<std::string_view>& pieces) {
  const RequestLimits limits{.head_bytes_max = 512, .header_count_max = 8, .target_bytes_max = 64};
  static const IpAddress peer = *IpAddress::parse("127.0.0.1");
  std::string said;
  std::string held;
  auto next = pieces.begin();
  const auto more = [&] {
    if (next == pieces.end()) return false;
    held += *next++;
    return true;
  };
  for (;;) {
    HeadEnd end = find_head_end(held, limits);
    while (end.size == 0 && !end.fault && more()) end = find_head_end(held, limits);
    if (end.fault) return said + "refused\n";
    if (end.size == 0) return said + "waits for a head\n";
    Request request(peer);
    request.head_bytes.assign(held.begin(), held.begin() + static_cast<std::ptrdiff_t>(end.size));
    held.erase(0, end.size);
    RequestParser parser(limits);
    if (parser.parse_head(request)) return said + "refused\n";
    require(!request.path.empty() && request.path.front() == '/');
    require(request.headers.size() <= limits.header_count_max);
    while (!parser.is_done()) {
      const auto step = parser.parse_body(held, request.body, kBodyBytesMax);
      require(request.body.size() <= kBodyBytesMax);
      if (step.fault) return said + "bad body\n";
      held.erase(0, step.consumed);
      if (!parser.is_done() && !more()) return said + "waits for a body\n";
    }
    said +=
        std::string(request.method) + ' ' + std::string(request.path) + ' ' + request.body + '\n';
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(bytes) + 1, size - 1);
  const std::size_t cut = text.size() * bytes[0] / 255;
  const std::string whole = meaning({text});
  const std::string halves = meaning({text.substr(0, cut), text.substr(cut)});
  // A refusal may come earlier when more of the bytes are there; the requests are the same.
  const auto requests = [](const std::string& said) {
    return said.substr(0, said.rfind('\n', said.size() - 2) + 1);
  };
  require(requests(whole) == requests(halves));
  return 0;
}
