// A certificate and its key, ready to serve connections. Made from files, which may block:
// load_tls() may be called on any thread.
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <memory>
#include <string>

#include "base/result.h"

namespace clawdforge {

using TlsContext = std::shared_ptr<boost::asio::ssl::context>;

// TLS 1.3, and TLS 1.2 with forward secrecy only: who gets the key later cannot read what was
// recorded before. Errc::internal: a file cannot be used, or the two do not belong together.
Result<TlsContext> load_tls(const std::string& certificate_file, const std::string& key_file);

// The server's own certificate, without those that signed it; PEM.
std::string certificate_pem(const TlsContext& context);

}  // namespace clawdforge
