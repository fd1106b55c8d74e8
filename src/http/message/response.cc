#include "http/message/response.h"

#include <array>
#include <cassert>
#include <charconv>

#include "base/json_text.h"

namespace clawdforge {

std::string error_body(std::string_view code, std::string_view detail,
                       std::string_view request_id) {
  std::string body = R"({"ok":false,"code":)";
  append_json_string(body, code);
  body += R"(,"detail":)";
  append_json_string(body, detail);
  body += R"(,"request_id":)";
  append_json_string(body, request_id);
  body += '}';
  return body;
}

std::string_view status_text(int status) {
  switch (status) {
    case 200:
      return "200 OK";
    case 400:
      return "400 Bad Request";
    case 401:
      return "401 Unauthorized";
    case 403:
      return "403 Forbidden";
    case 404:
      return "404 Not Found";
    case 405:
      return "405 Method Not Allowed";
    case 408:
      return "408 Request Timeout";
    case 409:
      return "409 Conflict";
    case 410:
      return "410 Gone";
    case 413:
      return "413 Content Too Large";
    case 414:
      return "414 URI Too Long";
    case 415:
      return "415 Unsupported Media Type";
    case 417:
      return "417 Expectation Failed";
    case 422:
      return "422 Unprocessable Content";
    case 429:
      return "429 Too Many Requests";
    case 431:
      return "431 Request Header Fields Too Large";
    case 500:
      return "500 Internal Server Error";
    case 501:
      return "501 Not Implemented";
    case 502:
      return "502 Bad Gateway";
    case 503:
      return "503 Service Unavailable";
    case 504:
      return "504 Gateway Timeout";
    case 505:
      return "505 HTTP Version Not Supported";
    default:
      assert(false && "a status that no answer of ours has");
      return "500 Internal Server Error";
  }
}

void append_number(std::string& out, std::uint64_t number, int radix) {
  std::array<char, 20> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number, radix).ptr;
  out.append(digits.data(), end);
}

}  // namespace clawdforge
