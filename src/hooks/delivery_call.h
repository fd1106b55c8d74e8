// One attempt at a delivery: one POST to a webhook, over http or https, on a connection of its own.
// The name is resolved each time; a redirect is not followed. Io thread.
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "base/async/async.h"
#include "hooks/name_lookups.h"
#include "model/web_address.h"

namespace clawdforge {

inline constexpr std::size_t kWebhookAnswerBytesMax = 64 * 1024;

using TlsTrust = std::shared_ptr<boost::asio::ssl::context>;

// The system's certificates. Reads files: for the disk's thread.
Result<TlsTrust> load_system_trust();

struct DeliveryRequest {
  WebAddress to;
  std::string id;
  std::int64_t at = 0;  // unix seconds
  std::string signature;
  std::string body;
  std::chrono::milliseconds time_max{};  // until there is an answer
  TlsTrust trust;                        // for https
  NameLookups* names = nullptr;          // outlives the attempt
};

// The status of the answer, whatever it is; its body is thrown away. Errc::unavailable: there was
// no answer; the message is the reason, the end of a sentence.
Async<int> call_webhook(DeliveryRequest request);

}  // namespace clawdforge
