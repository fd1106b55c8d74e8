#include "api/native/prompt_fields.h"

#include <algorithm>
#include <boost/json.hpp>

namespace clawdforge {
namespace {

constexpr std::size_t kFilesPerRunMax = 32;
constexpr std::int64_t kTimeoutSecondsMin = 5;
constexpr std::size_t kIdentifierBytesMax = 64;  // a session's id, an agent's name
constexpr std::string_view kEfforts[] = {"low", "medium", "high", "xhigh", "max"};

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n\v\f") == std::string_view::npos;
}

}  // namespace

bool is_identifier(std::string_view text) {
  return !text.empty() && text.size() <= kIdentifierBytesMax &&
         std::ranges::all_of(text, [](unsigned char c) {
           return (c < 0x80 && std::isalnum(c) != 0) || c == '_' || c == '-';
         });
}

void check_agent_name(Fields& fields, std::string_view name) {
  if (is_identifier(name)) return;
  fields.wrong("agent", "must be 1 to 64 of the characters A-Z, a-z, 0-9, _ and -");
}

std::string prompt_of(Fields& fields) {
  if (!fields.has("prompt")) fields.wrong("prompt", "is required");
  auto prompt = fields.text("prompt");
  if (prompt && is_blank(*prompt)) fields.wrong("prompt", "must not be blank");
  return std::move(prompt).value_or("");
}

std::vector<std::string> files_of(Fields& fields) {
  return fields.texts("files", kFilesPerRunMax).value_or(std::vector<std::string>{});
}

std::chrono::seconds timeout_of(Fields& fields, std::chrono::seconds otherwise,
                                std::chrono::seconds max) {
  return std::chrono::seconds(fields.integer("timeout_secs", kTimeoutSecondsMin, max.count())
                                  .value_or(std::min(otherwise, max).count()));
}

std::string system_of(Fields& fields) {
  std::string system = fields.text("system").value_or("");
  if (system.contains('\0')) fields.wrong("system", "must not hold a NUL character");
  return system;
}

SystemMode system_mode_of(Fields& fields) {
  const std::string mode = fields.text("system_mode").value_or("append");
  if (mode != "append" && mode != kSystemReplaced) {
    fields.wrong("system_mode", "must be append or replace");
  }
  return mode == kSystemReplaced ? SystemMode::replace : SystemMode::append;
}

std::shared_ptr<const JsonSchema> schema_of(Fields& fields, Result<void>& refusal) {
  const boost::json::object* const given = fields.object("schema");
  if (given == nullptr) return nullptr;
  auto schema = JsonSchema::parse(boost::json::serialize(*given));
  if (schema) return std::make_shared<const JsonSchema>(std::move(*schema));
  refusal = std::unexpected(std::move(schema.error()));
  return nullptr;
}

std::string model_of(Fields& fields) {
  auto model = fields.text("model");
  if (model && !is_model_name(*model)) fields.wrong("model", "is not the name of a model");
  return std::move(model).value_or("");
}

std::string effort_of(Fields& fields) {
  auto effort = fields.text("effort");
  if (effort && std::ranges::find(kEfforts, *effort) == std::end(kEfforts)) {
    fields.wrong("effort", "must be low, medium, high, xhigh or max");
  }
  return std::move(effort).value_or("");
}

std::optional<PermissionMode> permission_mode_of(Fields& fields) {
  const auto name = fields.text("permission_mode");
  if (!name) return std::nullopt;
  const auto mode = permission_mode_from(*name);
  if (!mode) fields.wrong("permission_mode", "must be deny_all, approve_reads, ask or approve_all");
  return mode;
}

}  // namespace clawdforge
