// Whatever an agent says: the same lines however its output is cut; of each line that is
// taken, JSON that is valid, one line, and read the same again; answers that are valid.
#include <algorithm>
#include <boost/json.hpp>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "agent/acp/acp_failure.h"
#include "agent/acp/acp_message.h"
#include "agent/acp/acp_request.h"
#include "agent/core/line_reader.h"
#include "agent/failure/agent_failure.h"
#include "agent/failure/masking.h"
#include "json/json_parse.h"
#include "transcript/turn_event_reader.h"

using namespace clawdforge;

namespace {

constexpr std::size_t kLineBytes = 512;

void require(bool holds) {
  if (!holds) std::abort();
}

std::vector<std::string> lines_of(std::string_view output, std::size_t piece_size) {
  LineReader reader(kLineBytes);
  std::vector<std::string> lines;
  const auto take = [&] {
    while (const auto line = reader.next()) lines.emplace_back(*line);
  };
  while (!output.empty()) {
    reader.feed(std::string(output.substr(0, piece_size)));
    output.remove_prefix(std::min(piece_size, output.size()));
    take();
  }
  reader.finish();
  take();
  return lines;
}

void check_json(const std::string& text) {
  require(text.find_first_of("\r\n") == std::string::npos);
  require(valid_utf8(text) == text);
  boost::json::parse_options options;
  options.max_depth = kAgentJsonDepthMax + 2;
  boost::json::error_code error;
  boost::json::parse(text, error, {}, options);
  require(!error);
}

void check_message(const AcpMessage& message) {
  check_json(message.json);
  const auto again = acp_message(message.json);
  require(again && again->json == message.json && again->id == message.id &&
          again->method == message.method && again->text == message.text);
  require(valid_utf8(message.text) == message.text);
  require((message.kind == AcpKind::notification) == message.id.empty());
  require((message.kind == AcpKind::response) ==
          (message.result.has_value() != message.error.has_value()));
  require(!message.cost_usd || *message.cost_usd >= 0);
  if (message.result) require(message.result->stop_reason.size() <= kAgentStopReasonBytesMax);
  if (message.kind == AcpKind::request) check_json(unknown_method_answer(message.id));
  if (message.question) {
    for (const PermissionOption& option : message.question->options) {
      check_json(permission_answer(message.question->ask_id, option.option_id));
    }
  }
  if (message.error) {
    AgentSpec spec;
    spec.name = "x";
    const Failure failure = failure_of(*message.error, spec, 1759400000, {});
    require(!failure.code.empty() && !failure.message.contains('\n'));
    require(valid_utf8(failure.message) == failure.message);
    require(failure.message.size() <= 4 * kSentenceCharactersMax);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view output(reinterpret_cast<const char*>(bytes), size);
  const auto lines = lines_of(output, size + 1);
  require(lines == lines_of(output, 1));
  require(lines == lines_of(output, size == 0 ? 1 : bytes[0] % 16 + 1));
  for (const std::string& line : lines) {
    require(line.size() <= kLineBytes);
    if (const auto message = acp_message(line)) check_message(*message);
  }
  return 0;
}
