#include "model/hooks/delivery.h"

#include <algorithm>
#include <array>

namespace clawdforge {
namespace {

constexpr std::array<std::string_view, 3> kDeliveryStates = {"waiting", "delivered", "dead"};

}  // namespace

std::string_view name_of(DeliveryState state) {
  return kDeliveryStates.at(static_cast<std::size_t>(state));
}

std::optional<DeliveryState> delivery_state_from(std::string_view name) {
  const auto* const found = std::ranges::find(kDeliveryStates, name);
  if (found == kDeliveryStates.end()) return std::nullopt;
  return static_cast<DeliveryState>(found - kDeliveryStates.begin());
}

}  // namespace clawdforge
