// Any text is an address range or a refusal, and a range comes back from its text.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/net.h"

using clawdforge::Cidr;
using clawdforge::IpAddress;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);

  const auto range = Cidr::parse(text);
  if (range) {
    const auto again = Cidr::parse(range->text());
    require(again.has_value() && *again == *range);
    const auto network = IpAddress::parse(text.substr(0, text.find('/')));
    require(network.has_value() && range->contains(*network));
  } else {
    require(range.error().message.find('\n') == std::string::npos);
  }

  const auto address = IpAddress::parse(text);
  if (address) {
    require(IpAddress::parse(address->text()) == address);
    require(range.has_value() && range->contains(*address));
  }
  return 0;
}
