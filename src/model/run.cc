#include "model/run.h"

#include <array>

#include "base/text.h"

namespace clawdforge {
namespace {

constexpr std::array<std::string_view, 5> kRunStateNames = {"running", "succeeded", "failed",
                                                            "cancelled", "interrupted"};

}  // namespace

std::string_view name_of(RunState state) { return name_among(kRunStateNames, state); }

std::optional<RunState> run_state_from(std::string_view name) {
  return value_among<RunState>(kRunStateNames, name);
}

void append_json(std::string& out, const Usage& usage) {
  append_numbered(out, R"({"input_tokens":)", usage.input_tokens);
  append_numbered(out, R"(,"output_tokens":)", usage.output_tokens);
  append_numbered(out, R"(,"cache_read_tokens":)", usage.cache_read_tokens);
  append_numbered(out, R"(,"cache_write_tokens":)", usage.cache_write_tokens);
  out += '}';
}

}  // namespace clawdforge
