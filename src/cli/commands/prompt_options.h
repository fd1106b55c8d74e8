// The options that `run`, `session new` and `session turn` share, and the fields they become.
#pragma once

#include <boost/json.hpp>
#include <vector>

#include "cli/core/ask.h"

namespace clawdforge {

std::vector<Option> agent_options();   // --agent --model --system --effort
Option key_option();                   // --key
std::vector<Option> prompt_options();  // --timeout --file --wait

// kExitUsage: the file of --system cannot be read.
Asked<void> add_agent_fields(const Arguments& arguments, boost::json::object& body);

// How long to wait for an answer that an agent works on.
std::chrono::seconds answer_wait(const Arguments& arguments);

// Brings the files; adds them and --timeout to the body.
Asked<void> add_prompt_fields(const Invocation& invocation, const Destination& to,
                              boost::json::object& body);

// What it took, dim on a terminal's standard error: "demo · 0.2 s · 12 in · 40 out · $0.01".
void print_costs(const Screen& screen, const std::string& text);

// The value of --key, for the header Idempotency-Key; empty: without one.
Asked<std::string> key_of(const Arguments& arguments);

}  // namespace clawdforge
