#include "agent/acpx/acpx_command.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "base/json_text.h"

namespace clawdforge {
namespace {

using Words = std::vector<std::string>;

void append(Words& words, Words more) {
  words.insert(words.end(), std::make_move_iterator(more.begin()),
               std::make_move_iterator(more.end()));
}

// acpx passes no question on: without a terminal it denies what it has no rule for, and says so
// by the exit code alone. So in the mode `ask` everything is denied.
Words permission_flags(PermissionMode mode) {
  switch (mode) {
    case PermissionMode::approve_all:
      return {"--approve-all"};
    case PermissionMode::approve_reads:
      return {"--approve-reads", "--non-interactive-permissions", "deny"};
    case PermissionMode::deny_all:
    case PermissionMode::ask:
      break;
  }
  return {"--deny-all"};
}

struct Extras {
  bool with_model = false;
  std::string config;
};

// Options that stand before the verb must stand before the agent as well. The agent gets
// neither files nor terminals from acpx: it has its own, as with us. Its queue owner lives
// until we end it.
HostOrder order_of(const AcpxCall& call, Words verb, const Extras& extras) {
  const Conversation& conversation = call.conversation;
  HostOrder order;
  order.argv = {call.program, "--format",
                "json",       "--json-strict",
                "--cwd",      conversation.working_dir,
                "--no-fs",    "--no-terminal",
                "--ttl",      "0"};
  append(order.argv, permission_flags(conversation.permission_mode));
  if (!conversation.model.empty()) {
    order.environment.push_back("ANTHROPIC_MODEL=" + conversation.model);
    if (extras.with_model) append(order.argv, {"--model", conversation.model});
  }
  if (!extras.config.empty()) {
    append(order.argv, {"--mcp-config", extras.config});
    order.file = extras.config;
    order.file_content = fmt::format(R"({{"mcpServers":{}}})", conversation.mcp_servers);
  }
  append(order.argv, call.agent);
  append(order.argv, std::move(verb));
  return order;
}

}  // namespace

HostOrder acpx_new(const AcpxCall& call, const std::string& config) {
  return order_of(call, {"sessions", "new", "--name", call.conversation.name}, {true, config});
}

// Without the model: for a session that is there it would start the agent to set it, and
// the next prompt sets it anyway.
HostOrder acpx_ensure(const AcpxCall& call, const std::string& config) {
  return order_of(call, {"sessions", "ensure", "--name", call.conversation.name}, {false, config});
}

HostOrder acpx_show(const AcpxCall& call) {
  return order_of(call, {"sessions", "show", call.conversation.name}, {});
}

HostOrder acpx_set(const AcpxCall& call, const std::string& option, const std::string& value) {
  return order_of(call, {"set", option, value, "-s", call.conversation.name}, {});
}

// As blocks: a text that happens to be a list of blocks would be taken for one.
HostOrder acpx_prompt(const AcpxCall& call, const std::string& config,
                      const std::vector<std::string_view>& texts) {
  HostOrder order =
      order_of(call, {"prompt", "-s", call.conversation.name, "-f", "-"}, {true, config});
  order.input = "[";
  for (const std::string_view text : texts) {
    order.input += order.input.size() > 1 ? "," : "";
    order.input += R"({"type":"text","text":)";
    append_json_string(order.input, text);
    order.input += '}';
  }
  order.input += "]";
  return order;
}

HostOrder acpx_cancel(const AcpxCall& call) {
  return order_of(call, {"cancel", "-s", call.conversation.name}, {});
}

HostOrder acpx_close(const AcpxCall& call) {
  return order_of(call, {"sessions", "close", call.conversation.name}, {});
}

}  // namespace clawdforge
