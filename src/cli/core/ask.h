// One question to the gateway and its answer. Blocks.
#pragma once

#include <boost/json.hpp>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/core/destination.h"

namespace clawdforge {

inline constexpr std::chrono::seconds kCallMax{30};  // of a call that no agent works on

struct GatewayAnswer {
  ClientAnswer raw{};
  boost::json::object body{};
};

// A status from 400 on is a complaint, with the gateway's own sentence and what to do next.
Asked<GatewayAnswer> ask(const Destination& to, ClientRequest request,
                         std::chrono::seconds timeout = kCallMax);
// The answer as it came, whatever its status.
Asked<ClientAnswer> ask_raw(const Destination& to, ClientRequest request,
                            std::chrono::seconds timeout = kCallMax);

// A question that a person may wait long for.
struct Wait {
  std::chrono::seconds timeout = kCallMax;
  std::string live_line{};  // what is done meanwhile, such as "asking claude"
  const Screen* screen = nullptr;
  std::string interrupted{};  // what is said after Ctrl-C
};
// The same with a live line on a terminal. The first Ctrl-C closes the connection, which cancels a
// run, and gives a complaint with kExitInterrupted. Not beside other threads: it takes the
// process's signals.
Asked<GatewayAnswer> ask_and_wait(const Destination& to, ClientRequest request, Wait wait);

// Finds the gateway and asks it.
Asked<GatewayAnswer> ask(const Invocation& invocation, TokenKind kind, std::string method,
                         std::string target, std::string body = {});

// The complaint that an answer with a status from 400 on is.
Complaint complaint_of(const ClientAnswer& answer);

// A name or an id as one part of a path: it cannot become another path.
std::string path_part(std::string_view text);

// A member of an answer as text: lists with commas, null and absent as "-".
std::string text_of(const boost::json::value& value);
std::string field_of(const boost::json::object& object, std::string_view name);
// A time in seconds: in UTC, "2026-01-31 12:00:00Z"; else "never".
std::string time_of(const boost::json::object& object, std::string_view name);
const boost::json::array* list_of(const boost::json::object& object, std::string_view name);

// The members with their names, but for one; what ends with "_at" as a time.
std::vector<std::pair<std::string, std::string>> fields_of(const boost::json::object& object,
                                                           std::string_view without = {});
// Prints all of it with --json, else its fields.
Done print_fields(const Invocation& invocation, const Asked<GatewayAnswer>& answer,
                  std::string_view without = {});

// Prints the text and a line end where it has none.
void print_answer(std::string_view text);

}  // namespace clawdforge
