#include "model/run.h"

#include "model/number_text.h"

namespace clawdforge {

void append_json(std::string& out, const Usage& usage) {
  append_numbered(out, R"({"input_tokens":)", usage.input_tokens);
  append_numbered(out, R"(,"output_tokens":)", usage.output_tokens);
  append_numbered(out, R"(,"cache_read_tokens":)", usage.cache_read_tokens);
  append_numbered(out, R"(,"cache_write_tokens":)", usage.cache_write_tokens);
  out += '}';
}

}  // namespace clawdforge
