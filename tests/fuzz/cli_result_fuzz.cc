// Whatever an agent's command line prints: the same result however the output is cut,
// text that is valid UTF-8, a value that is valid JSON, a sentence within its bounds.
#include <algorithm>
#include <boost/json.hpp>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "agent/claude/cli_result.h"
#include "agent/failure/agent_failure.h"
#include "agent/failure/api_failure.h"
#include "agent/failure/masking.h"
#include "json/result_value.h"

using namespace clawdforge;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

std::optional<CliResult> read(std::string_view output, std::size_t piece_size) {
  ResultReader reader;
  while (!output.empty()) {
    if (reader.feed(output.substr(0, piece_size))) break;
    output.remove_prefix(std::min(piece_size, output.size()));
  }
  reader.finish();
  return reader.result();
}

void check_sentence(const Failure& failure) {
  require(!failure.code.empty() && failure.retry_after.count() >= 0);
  require(valid_utf8(failure.message) == failure.message);
  require(failure.message.find('\n') == std::string::npos);
  require(std::ranges::count_if(failure.message, [](char c) {
            return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
          }) <= static_cast<std::ptrdiff_t>(kSentenceCharactersMax));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view output(reinterpret_cast<const char*>(bytes), size);
  const auto result = read(output, output.size());
  require(result == read(output, 1));
  require(result == read(output, size == 0 ? 1 : bytes[0] % 16 + 1));

  const std::string_view text = result ? std::string_view(result->text) : output;
  if (result) require(valid_utf8(text) == text);
  boost::json::error_code error;
  boost::json::parse(result_value(text), error);
  require(!error);

  CliResult failed = result.value_or(CliResult{});
  failed.is_error = true;
  if (!result) failed.text = output;
  check_sentence(failure_of(failed.report(), 1759400000, {"hunter22"}));
  const std::string tail = masked(output, {"hunter22"});
  require(clean_text(tail) == tail && tail.find("hunter22") == std::string::npos);
  return 0;
}
