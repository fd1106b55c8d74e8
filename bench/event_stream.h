// EventStream reads an answer of server-sent events over HTTP/1.1 from a connection, which
// it does not own. When the answer is at its end, the connection can be used again.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "raw_http.h"

namespace clawdforge {

class EventStream {
 public:
  // Reads the head, and gives up unless it is a 200.
  explicit EventStream(Connection& connection);

  // Goes on to the next event; false: the answer is at its end.
  bool next();
  // Of the event that next() has found; 0 and empty where it has none.
  std::int64_t id() const { return id_; }
  std::string_view name() const { return name_; }
  std::string_view data() const { return data_; }

  // Reads to the end of the answer, or, without one, to the event with this id. The events.
  std::size_t read_to(std::int64_t last_id);

 private:
  void take_chunks();
  void read_fields(std::string_view event);

  Connection& connection_;
  std::string raw_;
  std::size_t raw_place_ = 0;
  std::size_t chunk_left_ = 0;
  bool is_at_end_ = false;
  std::string body_;
  std::size_t place_ = 0;
  std::int64_t id_ = 0;
  std::string_view name_;
  std::string_view data_;
};

}  // namespace clawdforge
