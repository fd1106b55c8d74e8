#include "agent/acp/acp_message.h"

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <boost/json/monotonic_resource.hpp>

#include "agent/failure/masking.h"
#include "base/text.h"
#include "json/json_fields.h"
#include "json/json_parse.h"
#include "json/json_repair.h"
#include "transcript/turn_event_reader.h"

namespace clawdforge {
namespace json = boost::json;

namespace {

std::string string_in(const json::object& object, std::string_view key) {
  return std::string(text_in(object, key).value_or(""));
}

// For what is kept as long as the agent lives.
std::string label_of(const json::object& object, std::string_view key) {
  return std::string(cut_to(text_in(object, key).value_or(""), kAgentLabelBytesMax));
}

// A value that cannot be told to the agent as it is cannot be chosen.
void append_value(std::vector<std::string>& values, const json::object& object) {
  const auto value = text_in(object, "value");
  if (!value || value->size() > kAgentLabelBytesMax) return;
  if (values.size() < kAgentOptionValuesMax) values.emplace_back(*value);
}

// Either a flat list of values or groups of them.
void append_values(std::vector<std::string>& values, const json::array& list) {
  for (const json::value& entry : list) {
    const json::object* object = entry.if_object();
    if (object == nullptr) continue;
    append_value(values, *object);
    const json::array* group = array_in(*object, "options");
    if (group == nullptr) continue;
    for (const json::value& member : *group) {
      const json::object* inner = member.if_object();
      if (inner == nullptr) continue;
      append_value(values, *inner);
    }
  }
}

std::vector<AcpOption> options_of(const json::object& result) {
  std::vector<AcpOption> options;
  const json::array* list = array_in(result, "configOptions");
  if (list == nullptr) return options;
  for (const json::value& entry : *list) {
    if (options.size() >= kAgentOptionsMax) break;
    const json::object* object = entry.if_object();
    if (object == nullptr) continue;
    AcpOption option{.id = label_of(*object, "id"),
                     .category = label_of(*object, "category"),
                     .current = label_of(*object, "currentValue"),
                     .values = {}};
    if (const json::array* values = array_in(*object, "options")) {
      append_values(option.values, *values);
    }
    options.push_back(std::move(option));
  }
  return options;
}

// A result that is not an object counts as one without fields: some agents answer null.
AcpResult result_of(const json::value& value) {
  AcpResult result;
  const json::object* object = value.if_object();
  if (object == nullptr) return result;
  result.protocol_version = count_in(*object, "protocolVersion");
  if (const json::object* abilities = object_in(*object, "agentCapabilities")) {
    result.can_load = is_true_in(*abilities, "loadSession");
    const json::object* sessions = object_in(*abilities, "sessionCapabilities");
    result.can_resume = sessions != nullptr && object_in(*sessions, "resume") != nullptr;
  }
  if (const json::object* agent = object_in(*object, "agentInfo")) {
    result.agent_name = label_of(*agent, "name");
    result.agent_version = label_of(*agent, "version");
  }
  result.session_id = string_in(*object, "sessionId");
  result.options = options_of(*object);
  if (const json::object* modes = object_in(*object, "modes")) {
    result.mode = label_of(*modes, "currentModeId");
  }
  return result;
}

AcpError error_of(const json::value& value) {
  AcpError error;
  const json::object* object = value.if_object();
  if (object == nullptr) return error;
  const json::value* code = object->if_contains("code");
  if (code != nullptr && code->is_int64()) error.code = code->get_int64();
  error.message = string_in(*object, "message");
  if (const json::object* about = object_in(*object, "data")) {
    error.kind = string_in(*about, "errorKind");
  }
  return error;
}

// What the message says, for those fields of it that several kinds have in common.
struct Reading {
  AcpMessage& message;

  void operator()(TextPiece& piece) const { message.text = std::move(piece.text); }
  void operator()(const ToolReport& report) const {
    message.tool_call_id = report.call_id.value_or("");
    message.tool_kind = report.kind;
  }
  void operator()(const UsageReport& report) const {
    message.cost_usd = report.cost_usd;
    message.context = report.context;
  }
  void operator()(Question& question) const {
    message.tool_call_id = question.call_id;
    message.tool_kind = question.asked.kind;
    message.question = std::move(question.asked);
  }
  void operator()(const AgentStop& stop) const {
    if (!message.result) return;
    message.result->stop_reason = clean_text(stop.stop_reason);
    message.result->usage = stop.usage;
  }
  void operator()(const auto&) const {}
};

void read_object(const json::object& object, AcpMessage& message) {
  const json::value* id = object.if_contains("id");
  if (id != nullptr) message.id = json::serialize(*id);
  if (object.if_contains("method") != nullptr) {
    message.kind = id != nullptr ? AcpKind::request : AcpKind::notification;
    message.method = string_in(object, "method");
    return;
  }
  const json::value* result = object.if_contains("result");
  const json::value* error = object.if_contains("error");
  if (id == nullptr) message.id = "null";  // the agent could not tell what it answers
  if (error != nullptr && !error->is_null()) {
    message.kind = AcpKind::response;
    message.error = error_of(*error);
  } else if (result != nullptr) {
    message.kind = AcpKind::response;
    message.result = result_of(*result);
  } else {
    message.id.clear();  // neither asks nor answers
  }
}

bool read_json(AcpMessage& message) {
  constexpr std::size_t kScratchBytes = 8 * 1024;
  std::array<unsigned char, kScratchBytes> scratch;
  json::monotonic_resource memory(scratch.data(), scratch.size());
  const auto value = parse_json(message.json, kAgentJsonDepthMax, &memory);
  const json::object* const object = value ? value->if_object() : nullptr;
  if (object == nullptr) return false;
  read_object(*object, message);
  TurnEvent said = turn_event_in(*object);
  std::visit(Reading{message}, said);
  return true;
}

}  // namespace

std::optional<AcpMessage> acp_message(std::string line) {
  constexpr std::string_view kBlanks = " \t\r";
  const std::size_t begin = line.find_first_not_of(kBlanks);
  if (begin == std::string::npos || line[begin] != '{') return std::nullopt;
  AcpMessage message;
  line.resize(line.find_last_not_of(kBlanks) + 1);
  line.erase(0, begin);
  message.json = std::move(line);
  std::ranges::replace(message.json, '\r', ' ');
  if (read_json(message)) return message;
  std::string repaired = valid_utf8(message.json);
  if (repaired.contains("\\u")) repaired = without_half_characters(repaired);
  if (repaired == message.json) return std::nullopt;
  message = {};
  message.json = std::move(repaired);
  if (read_json(message)) return message;
  return std::nullopt;
}

}  // namespace clawdforge
