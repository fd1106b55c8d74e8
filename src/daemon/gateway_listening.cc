// Where the gateway listens, and how clients on its machine find it.
#include <fmt/format.h>

#include "daemon/gateway.h"

namespace clawdforge {

std::string Gateway::url_at(const std::string& host) const {
  return fmt::format("{}://{}:{}", deps_.config.tls_cert.empty() ? "http" : "https",
                     host.find(':') != std::string::npos ? "[" + host + "]" : host, port_);
}

// On what the service manager has handed over, or on a socket of our own, which it may keep.
Result<std::uint16_t> Gateway::listen() {
  const ListenAddress& address = deps_.config.listen;
  if (deps_.handed != nullptr) {
    server_.keep_backlog();
    return server_.listen_on(std::move(deps_.handed->socket));
  }
  const auto port = server_.listen(address.host, address.port);
  if (!port || !deps_.notice.stores_sockets()) return port;
  deps_.notice.store_socket(server_.listening());
  server_.keep_backlog();
  return port;
}

// A gateway that listens everywhere is reached on loopback.
std::string Gateway::local_url() const {
  const std::string& host = deps_.config.listen.host;
  return url_at(host == "0.0.0.0" ? "127.0.0.1" : host == "::" ? "::1" : host);
}

// How clients on this machine find it, also where its TLS is in a file that they do not read.
Result<void> Gateway::write_address() const {
  return deps_.data_dir.write_address(local_url(), certificate_);
}

// Without it the commands of the owner go over TCP, with the admin token.
void Gateway::listen_locally() {
  const auto listening = server_.listen_local(deps_.data_dir.admin_socket_path());
  if (listening) return;
  deps_.log.warn("there is no local socket: clawdforge token uses the port and the admin token",
                 {{"why", std::string_view(listening.error().message)}});
}

// The files are read on the disk's thread. A file that cannot be used changes nothing.
Task<void> Gateway::reload_certificate() {
  const Config& config = deps_.config;
  if (config.tls_cert.empty()) {
    deps_.log.info("SIGHUP changes nothing: restart the gateway to change its configuration");
    co_return;
  }
  auto loaded = co_await deps_.disk.call(
      Lane(), [cert = config.tls_cert, key = config.tls_key] { return load_tls(cert, key); });
  if (!loaded) {
    deps_.log.error("the certificate was not reloaded; the old one stays in use",
                    {{"why", std::string_view(loaded.error().message)}});
    co_return;
  }
  certificate_ = certificate_pem(*loaded);
  server_.replace_tls(std::move(*loaded));
  if (const auto written = write_address(); !written) {
    deps_.log.warn("clients on this machine do not know the new certificate; restart the gateway",
                   {{"why", std::string_view(written.error().message)}});
  }
  deps_.log.info("the certificate was reloaded; the rest of the configuration was not");
}

}  // namespace clawdforge
