#include "http/server/tls_context.h"

#include <fmt/format.h>

namespace clawdforge {
namespace asio = boost::asio;
using boost::system::error_code;

namespace {

// Of TLS 1.2; those of 1.3 all have forward secrecy.
constexpr const char* kForwardSecrecy = "ECDHE+AESGCM:ECDHE+CHACHA20";

std::unexpected<Failure> unusable(std::string_view what, const std::string& file,
                                  const error_code& error) {
  return fail(Errc::internal, "tls",
              fmt::format("The TLS {} {} cannot be used: {}.", what, file, error.message()));
}

}  // namespace

Result<TlsContext> load_tls(const std::string& certificate_file, const std::string& key_file) {
  auto made = std::make_shared<asio::ssl::context>(asio::ssl::context::tls_server);
  SSL_CTX* const native = made->native_handle();
  SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION);
  SSL_CTX_set_mode(native, SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_options(native, SSL_OP_NO_RENEGOTIATION);
  if (SSL_CTX_set_cipher_list(native, kForwardSecrecy) != 1) {
    return fail(Errc::internal, "tls", "The TLS library has no ciphers with forward secrecy.");
  }
  error_code error;
  made->use_certificate_chain_file(certificate_file, error);
  if (error) return unusable("certificate", certificate_file, error);
  made->use_private_key_file(key_file, asio::ssl::context::pem, error);
  if (error) return unusable("key", key_file, error);
  return made;
}

std::string certificate_pem(const TlsContext& context) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> text(BIO_new(BIO_s_mem()), BIO_free);
  if (!text ||
      PEM_write_bio_X509(text.get(), SSL_CTX_get0_certificate(context->native_handle())) != 1) {
    return {};
  }
  const char* data = nullptr;
  const long bytes = BIO_get_mem_data(text.get(), &data);
  return bytes > 0 ? std::string(data, static_cast<std::size_t>(bytes)) : std::string();
}

}  // namespace clawdforge
