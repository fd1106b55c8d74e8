#include "http/server/exchange.h"

#include <algorithm>
#include <new>

#include "http/server/whole_body.h"

namespace clawdforge {
namespace {

constexpr Fault kInternal{500, "internal", "Something went wrong on our side."};

bool is_sane_id(std::string_view id) {
  constexpr std::size_t kIdBytesMax = 128;
  return !id.empty() && id.size() <= kIdBytesMax && std::ranges::all_of(id, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-';
  });
}

void append_body_headers(std::string& out, const Exchange& exchange, const Response& response) {
  out.append("Content-Type: ").append(response.content_type).append("\r\n");
  if (!response.stream) {
    out.append("Content-Length: ");
    append_number(out, response.body.size());
    out.append("\r\n");
  } else if (exchange.is_chunked) {
    out.append("Transfer-Encoding: chunked\r\n");
  }
}

}  // namespace

std::string request_id(const Request& request, std::string_view prefix, std::uint64_t& next) {
  if (const auto id = request.header("X-Request-Id"); id && is_sane_id(*id)) {
    return std::string(*id);
  }
  std::string id(prefix);
  append_number(id, next++, 16);
  return id;
}

Refusal refusal_of(const Fault& fault, std::string_view request_id) {
  Refusal refusal{.status = fault.status,
                  .code = fault.code,
                  .message = fault.message,
                  .request_id = request_id};
  if (fault.status == 503 || fault.status == 429) refusal.retry_after = std::chrono::seconds(1);
  return refusal;
}

std::string_view body_apart(const Exchange& exchange, const Response& response) {
  if (exchange.is_head || response.body.size() <= kJoinBytesMax) return {};
  return response.body;
}

void count_answer(Exchange& exchange, const Response& response, ByteHold& memory) {
  const std::size_t bytes = response.body.size();
  if (!exchange.fault && bytes > kJoinBytesMax) exchange.fault = fault_of(memory.resize(bytes));
}

void note_defect(Exchange& exchange, const std::exception& exception, Log& log) {
  const bool is_memory = dynamic_cast<const std::bad_alloc*>(&exception) != nullptr;
  exchange.fault = is_memory ? kNoMemory : kInternal;
  log.error("a handler threw", {{"request_id", std::string_view(exchange.id)},
                                {"what", std::string_view(exception.what())}});
}

void compose_answer(std::string& out, const Exchange& exchange, const Response& response,
                    std::string_view date_line) {
  const bool joined =
      !response.stream && !exchange.is_head && response.body.size() <= kJoinBytesMax;
  constexpr std::size_t kHeadBytes = 448;  // about; a longer head only costs another allocation
  out.clear();
  out.reserve(kHeadBytes + (joined ? response.body.size() : 0));
  out.append("HTTP/1.1 ");
  append_status(out, response.status);
  out.append("\r\n").append(date_line);
  if (has_body(response.status)) append_body_headers(out, exchange, response);
  out.append("X-Request-Id: ").append(exchange.id).append("\r\n").append(response.fixed_lines);
  for (const auto& [name, value] : response.headers) {
    out.append(name).append(": ").append(value).append("\r\n");
  }
  if (!exchange.keep_alive) out.append("Connection: close\r\n");
  out.append("\r\n");
  if (joined) out.append(response.body);
}

void account(const Exchange& exchange, const Response& response, const Peer& peer, SteadyTime now,
             RequestMetrics& metrics, Log& log) {
  const int status = exchange.has_departed ? kCallerGone : response.status;
  const std::chrono::duration<double> took = now - exchange.begun;
  metrics.count(exchange.route, status, took.count());
  const LogLevel level = status >= 500 ? LogLevel::warn : LogLevel::info;
  if (!log.is_on(level)) return;
  const std::string peer_text = peer.is_local_socket ? "socket" : peer.address.text();
  const std::string origin_text = exchange.origin ? exchange.origin->text() : std::string();
  std::string_view detail = response.detail;
  if (detail.empty() && status == kCallerGone) detail = kGone.code;
  log.write(level, "request",
            {{"request_id", std::string_view(exchange.id)},
             {"method", std::string_view(exchange.method)},
             {"path", std::string_view(exchange.path)},
             {"status", static_cast<std::int64_t>(status)},
             {"duration_ms", took.count() * 1000},
             {"peer", std::string_view(peer_text)},
             {"origin", std::string_view(origin_text)},
             {"caller", std::string_view(exchange.who)},
             {"detail", detail}});
}

}  // namespace clawdforge
