#include "http/message/sse.h"

#include <algorithm>

#include "http/message/response.h"

namespace clawdforge {

void append_sse_begin(std::string& out, std::optional<std::int64_t> id, std::string_view event,
                      const std::optional<SseTime>& time) {
  // The times come first: a simple client may expect the data right after the name of the event.
  if (time) {
    out += "at: ";
    append_number(out, static_cast<std::uint64_t>(std::max<std::int64_t>(time->at, 0)));
    if (time->offset_ms) {
      out += "\noffset_ms: ";
      append_number(out, static_cast<std::uint64_t>(std::max<std::int64_t>(*time->offset_ms, 0)));
    }
    out += '\n';
  }
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
