// /admin/deliveries.
#pragma once

#include "api/core/endpoint.h"
#include "hooks/webhooks.h"
#include "ledger/hooks/delivery_rows.h"

namespace clawdforge {

// Both outlive the endpoints.
void add_delivery_routes(Endpoints& endpoints, const DeliveryRows& rows, Webhooks& webhooks);

}  // namespace clawdforge
