#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>

#include "base/descriptor.h"
#include "doctor/checks.h"
#include "doctor/port_holder.h"
#include "storage/disk/data_dir.h"

namespace clawdforge {
namespace {

constexpr int kCertificateDaysMin = 14;

std::string words_of(const ListenAddress& address) {
  const bool is_v6 = address.host.contains(':');
  return fmt::format("{}:{}", is_v6 ? "[" + address.host + "]" : address.host, address.port);
}

// 0, or why a gateway could not listen there.
int error_of_bind(const ListenAddress& address) {
  sockaddr_storage place{};
  socklen_t size = 0;
  auto* const v4 = reinterpret_cast<sockaddr_in*>(&place);
  auto* const v6 = reinterpret_cast<sockaddr_in6*>(&place);
  if (::inet_pton(AF_INET, address.host.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(address.port);
    size = sizeof *v4;
  } else if (::inet_pton(AF_INET6, address.host.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(address.port);
    size = sizeof *v6;
  } else {
    return EINVAL;
  }
  const Descriptor socket(::socket(place.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  ::setsockopt(socket.number(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const bool is_bound = ::bind(socket.number(), reinterpret_cast<sockaddr*>(&place), size) == 0 &&
                        ::listen(socket.number(), 1) == 0;
  return is_bound ? 0 : errno;
}

void check_free_port(const ListenAddress& address, Diagnosis& diagnosis) {
  const int error = error_of_bind(address);
  if (error == 0) {
    diagnosis.good("port", words_of(address) + " is free");
  } else if (error == EADDRINUSE) {
    const std::string holder = holder_of_port(address.port);
    diagnosis.bad("port",
                  fmt::format("{} is held by {}", words_of(address),
                              holder.empty() ? "another program" : holder),
                  fmt::format("clawdforge serve --listen {}:{}   # or end that program",
                              address.host, address.port + 1));
  } else {
    diagnosis.bad("port", fmt::format("{}: {}", words_of(address), std::strerror(error)),
                  "clawdforge serve --listen 127.0.0.1:8800");
  }
}

void check_running(const Config& config, const DoctorLinks& links, Diagnosis& diagnosis) {
  const auto ready = links.get(config.data_dir, "/readyz");
  if (ready) {
    diagnosis.good("gateway", "it runs and is ready");
  } else {
    diagnosis.bad("gateway", "it runs, but: " + ready.error().message,
                  "look at its log: journalctl -u clawdforge, or its terminal");
  }
  const auto address = read_address_in(config.data_dir);
  const std::string url = address ? address->url : words_of(config.listen);
  std::uint16_t port = 0;
  std::from_chars(url.data() + url.rfind(':') + 1, url.data() + url.size(), port);
  const std::string holder = holder_of_port(port);
  diagnosis.good("port",
                 fmt::format("{}, held by {}", url, holder.empty() ? "the gateway" : holder));
}

void check_certificate(const Config& config, Diagnosis& diagnosis) {
  if (config.tls_cert.empty()) {
    diagnosis.good("tls", "not used: plain HTTP");
    return;
  }
  const std::string look = "openssl x509 -noout -enddate -in " + config.tls_cert;
  const std::unique_ptr<BIO, decltype(&BIO_free)> file(BIO_new_file(config.tls_cert.c_str(), "r"),
                                                       BIO_free);
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(
      file ? PEM_read_bio_X509(file.get(), nullptr, nullptr, nullptr) : nullptr, X509_free);
  int days = 0;
  int seconds = 0;
  if (!certificate ||
      ASN1_TIME_diff(&days, &seconds, nullptr, X509_get0_notAfter(certificate.get())) != 1) {
    diagnosis.bad("tls", config.tls_cert + " cannot be read as a certificate", look);
  } else if (days < 0 || seconds < 0) {
    diagnosis.bad("tls", config.tls_cert + " has expired", look + "   # renew it, then: kill -HUP");
  } else if (days < kCertificateDaysMin) {
    diagnosis.warn("tls", fmt::format("{} expires in {} days", config.tls_cert, days),
                   look + "   # renew it, then: kill -HUP");
  } else {
    diagnosis.good("tls", fmt::format("{} is good for {} days", config.tls_cert, days));
  }
  struct stat key{};
  if (::stat(config.tls_key.c_str(), &key) == 0 && (key.st_mode & S_IROTH) != 0) {
    diagnosis.bad("tls-key", config.tls_key + " can be read by every user",
                  "chmod o= " + config.tls_key);
  }
}

}  // namespace

void check_network(const Config& config, const DoctorLinks& links, Diagnosis& diagnosis) {
  if (is_data_dir_in_use(config.data_dir)) {
    check_running(config, links, diagnosis);
  } else {
    diagnosis.good("gateway", "none runs on " + config.data_dir,
                   "clawdforge serve --data-dir " + config.data_dir);
    check_free_port(config.listen, diagnosis);
  }
  check_certificate(config, diagnosis);
}

}  // namespace clawdforge
