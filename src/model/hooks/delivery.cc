#include "model/hooks/delivery.h"

#include <array>

#include "base/text.h"

namespace clawdforge {
namespace {

constexpr std::array<std::string_view, 3> kDeliveryStates = {"waiting", "delivered", "dead"};

}  // namespace

std::string_view name_of(DeliveryState state) { return name_among(kDeliveryStates, state); }

std::optional<DeliveryState> delivery_state_from(std::string_view name) {
  return value_among<DeliveryState>(kDeliveryStates, name);
}

}  // namespace clawdforge
