// Whatever the events of a turn are: their simple form is a JSON array of the three shapes,
// with all of the agent's text in it and nothing twice in a row that could be one.
#include <boost/json.hpp>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "agent/acp/acp_message.h"
#include "api/shapes/simple_events.h"
#include "json/json_parse.h"

using namespace clawdforge;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

std::string text_of_checked(const boost::json::array& events) {
  std::string text;
  std::string_view before;
  for (const boost::json::value& event : events) {
    const auto& object = event.as_object();
    const std::string_view type = object.at("type").as_string();
    if (type == "tool_call") {
      require(object.size() == 4 && object.at("name").is_string() && object.at("args").is_object());
      require(object.contains("result"));
    } else {
      require(type == "text" || type == "thinking");
      require(type != before && object.size() == 2);
      if (type == "text") text += object.at("content").as_string();
    }
    before = type;
  }
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(bytes), size);
  std::vector<std::string> raw;
  std::string said;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    // As the journal has them: only what was taken, as it was taken.
    if (auto message = acp_message(std::string(line))) {
      said += message->text;
      raw.push_back(std::move(message->json));
    }
  }
  boost::json::parse_options options;
  options.max_depth = kAgentJsonDepthMax + 2;
  boost::json::error_code error;
  const auto events = boost::json::parse(simple_events(raw), error, {}, options);
  require(!error && events.is_array());
  require(text_of_checked(events.get_array()) == said);

  const std::string whole(reinterpret_cast<const char*>(bytes), size);
  boost::json::parse(simple_events(std::vector<std::string>{whole}), error, {}, options);
  require(!error);
  return 0;
}
