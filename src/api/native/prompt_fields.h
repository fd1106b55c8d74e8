// The fields that a run and a turn, or a run and a session, have in common. What is wrong
// is noted in the fields.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/core/json_body.h"
#include "json/schema/json_schema.h"
#include "model/agent.h"
#include "model/run.h"

namespace clawdforge {

// Whether it can be the name of an agent, or the id of a session.
bool is_identifier(std::string_view text);
void check_agent_name(Fields& fields, std::string_view name);

std::string prompt_of(Fields& fields);              // required
std::vector<std::string> files_of(Fields& fields);  // tokens
std::chrono::seconds timeout_of(Fields& fields, std::chrono::seconds otherwise,
                                std::chrono::seconds max);
std::string system_of(Fields& fields);  // empty: none
SystemMode system_mode_of(Fields& fields);
// Null: none. What is wrong with the schema itself is a refusal of its own, in `refusal`.
std::shared_ptr<const JsonSchema> schema_of(Fields& fields, Result<void>& refusal);
std::string effort_of(Fields& fields);  // empty: none
std::string model_of(Fields& fields);   // empty: none
std::optional<PermissionMode> permission_mode_of(Fields& fields);

}  // namespace clawdforge
