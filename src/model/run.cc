#include "model/run.h"

#include <fmt/format.h>

#include <iterator>

namespace clawdforge {

void append_json(std::string& out, const Usage& usage) {
  fmt::format_to(
      std::back_inserter(out),
      R"({{"input_tokens":{},"output_tokens":{},"cache_read_tokens":{},"cache_write_tokens":{}}})",
      usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens);
}

}  // namespace clawdforge
