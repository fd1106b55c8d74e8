#include "http/message/response.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>

namespace clawdforge {

namespace {

struct Reason {
  int status;
  std::string_view phrase;
};

// In the order of their numbers.
constexpr Reason kReasons[] = {
    {200, "OK"},
    {201, "Created"},
    {202, "Accepted"},
    {204, "No Content"},
    {206, "Partial Content"},
    {304, "Not Modified"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {406, "Not Acceptable"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {410, "Gone"},
    {412, "Precondition Failed"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {416, "Range Not Satisfiable"},
    {417, "Expectation Failed"},
    {421, "Misdirected Request"},
    {422, "Unprocessable Content"},
    {425, "Too Early"},
    {428, "Precondition Required"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {451, "Unavailable For Legal Reasons"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {502, "Bad Gateway"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {505, "HTTP Version Not Supported"},
    {507, "Insufficient Storage"},
    {529, "Overloaded"},
};
static_assert(std::ranges::is_sorted(kReasons, {}, &Reason::status));

}  // namespace

std::string_view reason_phrase(int status) {
  const auto known = std::ranges::lower_bound(kReasons, status, {}, &Reason::status);
  if (known != std::end(kReasons) && known->status == status) return known->phrase;
  return status < 300   ? "Success"
         : status < 400 ? "Redirection"
         : status < 500 ? "Client Error"
                        : "Server Error";
}

void append_status(std::string& out, int status) {
  if (status < 200 || status > 599) status = 500;
  append_number(out, static_cast<std::uint64_t>(status));
  out.append(" ").append(reason_phrase(status));
}

bool has_body(int status) { return status != 204 && status != 304; }

void append_number(std::string& out, std::uint64_t number, int radix) {
  std::array<char, 20> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number, radix).ptr;
  out.append(digits.data(), end);
}

}  // namespace clawdforge
