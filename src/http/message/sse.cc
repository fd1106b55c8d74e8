#include "http/message/sse.h"

#include "http/message/response.h"

namespace clawdforge {

void append_sse_begin(std::string& out, std::optional<std::int64_t> id, std::string_view event) {
  if (id) {
    out += "id: ";
    append_number(out, static_cast<std::uint64_t>(*id));
    out += '\n';
  }
  out.append("event: ").append(event).append("\ndata: ");
}

void append_sse(std::string& out, std::optional<std::int64_t> id, std::string_view event,
                std::string_view data) {
  append_sse_begin(out, id, event);
  out.append(data).append(kSseEnd);
}

}  // namespace clawdforge
