// Whatever Claude's command line prints: each message that is made of it is valid JSON in one line,
// and read again as what it was made for; the answers to its questions are valid.
#include <algorithm>
#include <boost/json.hpp>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "agent/claude_stream/claude_translator.h"
#include "agent/claude_stream/stream_cli.h"
#include "json/json_parse.h"
#include "transcript/turn_event_reader.h"

using namespace clawdforge;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

void require_line(const std::string& line) {
  require(!line.contains('\n') && !line.contains('\r'));
  require(parse_json(line, kAgentJsonDepthMax).has_value());
}

void look_at(const ClaudeReading& reading) {
  TurnEventReader reader;
  for (const ClaudeSaid& said : reading.said) {
    require_line(said.json);
    const TurnEvent event = reader.read_message(said.json);
    if (said.text.empty()) continue;
    const auto* piece = std::get_if<TextPiece>(&event);
    require(piece != nullptr && piece->text == said.text);
  }
  if (!reading.question) return;
  require_line(reading.question->json);
  require_line(allow_answer(reading.question->request_id, reading.question->input,
                            reading.question->updates));
  require_line(deny_answer(reading.question->request_id, "no"));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view output(reinterpret_cast<const char*>(data), size);
  ClaudeTranslator translator("s1", "/place");
  while (!output.empty()) {
    const std::string_view line = output.substr(0, output.find('\n'));
    output.remove_prefix(std::min(output.size(), line.size() + 1));
    if (const auto reading = translator.read(line)) look_at(*reading);
  }
  return 0;
}
