#include "http/message/request_parser.h"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>

namespace clawdforge {
namespace http = boost::beast::http;
using boost::system::error_code;

namespace {

constexpr Fault kBadRequest{400, "bad_request", "The request is not valid HTTP/1.1."};
constexpr Fault kHeadTooLarge{431, "headers_too_large",
                              "The request's head is too large; send fewer or shorter headers."};
constexpr Fault kTargetTooLong{414, "uri_too_long", "The request's path is too long."};
constexpr Fault kBodyTooLarge{413, "body_too_large", "The request's body is too large."};
constexpr Fault kSmallChunks{400, "chunks_too_small",
                             "The body comes in too many small chunks; send larger ones."};
// So many chunks may have any size; then they must have this on average. Each chunk costs the
// same, whatever its size.
constexpr std::size_t kAnyChunksMax = 16 * 1024;
constexpr std::size_t kChunkBytesMin = 32;
constexpr Fault kBadVersion{505, "http_version_not_supported", "Speak HTTP/1.1 or HTTP/1.0."};
constexpr Fault kBadExpectation{417, "expectation_failed", "Only 100-continue may be expected."};
constexpr Fault kBadCoding{501, "not_implemented",
                           "The only transfer coding is chunked, in HTTP/1.1."};

Fault fault_of(error_code error) {
  if (error == http::error::header_limit) return kHeadTooLarge;
  if (error == http::error::body_limit) return kBodyTooLarge;
  if (error == http::error::bad_version) return kBadVersion;
  return kBadRequest;
}

std::string_view std_view(boost::beast::string_view text) { return {text.data(), text.size()}; }

bool is_method(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return (c >= 'A' && c <= 'Z') || c == '-'; });
}

bool is_decimal(char c) { return c >= '0' && c <= '9'; }

bool is_host(std::string_view text) {
  return std::ranges::all_of(text, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_' || c == ':' || c == '[' ||
           c == ']' || c == '%' || c == '~';
  });
}

// "/a?b" or "http://host/a?b" into path and query. False: neither.
bool split_target(std::string_view target, Request& request) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!equals_ignoring_case(target.substr(0, scheme.size()), scheme)) continue;
    target.remove_prefix(scheme.size());
    const std::size_t end = std::min(target.find_first_of("/?#"), target.size());
    const std::string_view host = target.substr(0, end);
    if (host.empty() || !is_host(host)) return false;
    target.remove_prefix(end);
    break;
  }
  if (target.empty() || target.front() != '/') return false;
  if (target.find('#') != target.npos) return false;
  const std::size_t mark = target.find('?');
  request.path = target.substr(0, mark);
  request.query = mark == target.npos ? std::string_view{} : target.substr(mark + 1);
  return true;
}

}  // namespace

HeadEnd find_head_end(std::string_view bytes, const RequestLimits& limits) {
  const std::size_t end = bytes.substr(0, limits.head_bytes_max).find("\r\n\r\n");
  if (end != bytes.npos) return {end + 4, std::nullopt};
  // Waiting for the rest makes no sense once a line has ended in a bare LF, or starts
  // with something that no method starts with (a TLS handshake, say).
  for (std::size_t lf = bytes.find('\n'); lf != bytes.npos; lf = bytes.find('\n', lf + 1)) {
    if (lf == 0 || bytes[lf - 1] != '\r') return {0, kBadRequest};
  }
  if (!bytes.empty() && !is_method(bytes.substr(0, 1))) return {0, kBadRequest};
  if (bytes.size() >= limits.head_bytes_max) {
    return {0, bytes.find('\n') == bytes.npos ? kTargetTooLong : kHeadTooLarge};
  }
  return {};
}

// Collects what Beast finds. Field values stay views into the head: nothing is copied.
class RequestParser::BeastParser final : public http::basic_parser<true> {
 public:
  explicit BeastParser(const RequestLimits& limits) : limits_(limits) {
    header_limit(static_cast<std::uint32_t>(limits.head_bytes_max));
    body_limit(boost::none);  // each route has its own
  }

  std::optional<Fault> parse_head(Request& request) {
    request_ = &request;
    request.headers.reserve(16);
    // A line that goes on in the next one (obs-fold) is joined by some and cut by others.
    const std::string_view head(request.head_bytes.data(), request.head_bytes.size());
    if (head.find("\r\n ") != head.npos || head.find("\r\n\t") != head.npos) return kBadRequest;
    error_code error;
    const std::size_t used = put(boost::asio::buffer(head.data(), head.size()), error);
    request_ = nullptr;
    if (fault_) return fault_;
    if (error) return fault_of(error);
    if (used != head.size() || !is_header_done()) return kBadRequest;
    return check_framing(request);
  }

  BodyStep parse_body(std::string_view bytes, std::string& body, std::size_t body_bytes_max) {
    body_ = &body;
    body_bytes_max_ = body_bytes_max;
    BodyStep step;
    while (step.consumed < bytes.size() && !is_done()) {
      error_code error;
      const std::string_view rest = bytes.substr(step.consumed);
      const std::size_t used = put(boost::asio::buffer(rest.data(), rest.size()), error);
      step.consumed += used;
      if (error == http::error::need_more) break;
      if (error) {
        step.fault = fault_ ? *fault_ : fault_of(error);
        break;
      }
      if (used == 0) break;
    }
    body_ = nullptr;
    return step;
  }

  bool expects_continue() const { return expects_continue_; }

 private:
  std::optional<Fault> check_framing(const Request& request) {
    if (request.version_minor == 1 && hosts_ != 1) return kBadRequest;
    if (hosts_ > 1 || lengths_ > 1 || codings_ > 1 || authorizations_ > 1) return kBadRequest;
    if (codings_ == 1 && request.version_minor == 0) return kBadCoding;
    return std::nullopt;
  }

  void on_request_impl(http::verb, boost::beast::string_view method,
                       boost::beast::string_view target, int version, error_code& error) override {
    request_->method = std_view(method);
    request_->version_minor = version % 10;
    if (target.size() > limits_.target_bytes_max) return refuse(kTargetTooLong, error);
    if (version != 10 && version != 11) return refuse(kBadVersion, error);
    if (!is_method(request_->method)) return refuse(kBadRequest, error);
    if (!split_target(std_view(target), *request_)) return refuse(kBadRequest, error);
  }

  void on_field_impl(http::field field, boost::beast::string_view name,
                     boost::beast::string_view value, error_code& error) override {
    if (request_ == nullptr) return;  // a trailer after a chunked body: of no use to us
    if (request_->headers.size() >= limits_.header_count_max) return refuse(kHeadTooLarge, error);
    request_->headers.push_back({std_view(name), std_view(value)});
    const std::string_view text = std_view(value);
    if (field == http::field::host) {
      ++hosts_;
      if (!is_host(text)) refuse(kBadRequest, error);
    } else if (field == http::field::content_length) {
      ++lengths_;
      // "5, 5" means 5 to some and nothing to others.
      if (text.empty() || !std::ranges::all_of(text, is_decimal)) refuse(kBadRequest, error);
    } else if (field == http::field::authorization) {
      ++authorizations_;
    } else if (field == http::field::transfer_encoding) {
      ++codings_;
      if (!equals_ignoring_case(text, "chunked")) refuse(kBadCoding, error);
    } else if (field == http::field::expect) {
      expects_continue_ = true;
      if (!equals_ignoring_case(text, "100-continue")) refuse(kBadExpectation, error);
    }
  }

  std::size_t take(boost::beast::string_view bytes, error_code& error) {
    if (bytes.size() > body_bytes_max_ - body_bytes_) {
      error = http::error::body_limit;
      return 0;
    }
    body_bytes_ += bytes.size();
    body_->append(bytes.data(), bytes.size());
    return bytes.size();
  }

  std::size_t on_body_impl(boost::beast::string_view bytes, error_code& error) override {
    return take(bytes, error);
  }
  std::size_t on_chunk_body_impl(std::uint64_t, boost::beast::string_view bytes,
                                 error_code& error) override {
    return take(bytes, error);
  }

  void on_response_impl(int, boost::beast::string_view, int, error_code&) override {}
  void on_header_impl(error_code&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>&, error_code&) override {}
  void on_chunk_header_impl(std::uint64_t size, boost::beast::string_view,
                            error_code& error) override {
    if (size > body_bytes_max_ - body_bytes_) error = http::error::body_limit;
    if (++chunks_ > kAnyChunksMax && body_bytes_ < chunks_ * kChunkBytesMin) {
      refuse(kSmallChunks, error);
    }
  }
  void on_finish_impl(error_code&) override {}

  void refuse(const Fault& fault, error_code& error) {
    fault_ = fault;
    error = http::error::bad_value;
  }

  const RequestLimits limits_;
  Request* request_ = nullptr;  // while its head is being parsed
  std::string* body_ = nullptr;
  std::size_t body_bytes_max_ = 0;
  std::size_t body_bytes_ = 0;  // of all pieces so far
  std::size_t chunks_ = 0;      // likewise
  std::optional<Fault> fault_;
  int hosts_ = 0;
  int lengths_ = 0;
  int codings_ = 0;
  int authorizations_ = 0;
  bool expects_continue_ = false;
};

RequestParser::RequestParser(const RequestLimits& limits)
    : parser_(std::make_unique<BeastParser>(limits)) {}
RequestParser::RequestParser(RequestParser&& other) noexcept = default;
RequestParser::~RequestParser() = default;

std::optional<Fault> RequestParser::parse_head(Request& request) {
  return parser_->parse_head(request);
}
bool RequestParser::keep_alive() const { return parser_->keep_alive(); }
bool RequestParser::expects_continue() const { return parser_->expects_continue(); }
bool RequestParser::is_chunked() const { return parser_->chunked(); }
bool RequestParser::is_done() const { return parser_->is_done(); }

std::optional<std::uint64_t> RequestParser::content_length() const {
  const auto length = parser_->content_length();
  return length ? std::optional<std::uint64_t>(*length) : std::nullopt;
}

RequestParser::BodyStep RequestParser::parse_body(std::string_view bytes, std::string& body,
                                                  std::size_t body_bytes_max) {
  return parser_->parse_body(bytes, body, body_bytes_max);
}

}  // namespace clawdforge
