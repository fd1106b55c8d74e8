// `clawdforge token ...`: the apps and their tokens. Each command is one call of the admin.
#include <fmt/format.h>

#include <boost/json.hpp>

#include "cli/commands/commands.h"
#include "cli/commands/token_settings.h"
#include "cli/core/ask.h"
#include "cli/core/table.h"

namespace clawdforge {
namespace json = boost::json;
namespace {

constexpr std::string_view kGroup = "Administration";
constexpr std::string_view kNoList = "the answer has no list in it; is it a clawdforge gateway?";

std::string token_path(const Invocation& invocation) {
  return "/admin/tokens/" + path_part(invocation.arguments.word(0));
}

Done print_token(const Invocation& invocation, const Asked<GatewayAnswer>& answer) {
  if (!answer) return std::unexpected(answer.error());
  print_answer(invocation.as_json() ? answer->raw.body : field_of(answer->body, "token"));
  if (!invocation.as_json() && answer->body.contains("webhook_secret")) {
    // Beside the token, which a script takes from the standard output.
    fmt::print(stderr, "The secret that signs its webhooks, shown once: {}\n",
               field_of(answer->body, "webhook_secret"));
  }
  return 0;
}

// One field a line; "-": its owner has not said it, so the default holds.
Done print_app(const Invocation& invocation, const json::object& row) {
  print_answer(invocation.as_json() ? json::serialize(row)
                                    : fields_text(invocation.screen, fields_of(row)));
  return 0;
}

Done mint(Invocation& invocation) {
  json::object body;
  body["name"] = invocation.arguments.word(0);
  if (auto added = add_setting_fields(invocation.arguments, body); !added) {
    return std::unexpected(added.error());
  }
  return print_token(invocation, ask(invocation, TokenKind::admin, "POST", "/admin/tokens",
                                     json::serialize(body)));
}

Done set(Invocation& invocation) {
  json::object body;
  if (auto added = add_setting_fields(invocation.arguments, body); !added) {
    return std::unexpected(added.error());
  }
  if (body.empty()) {
    return complain(kExitUsage, "say what to change; see clawdforge token set --help.");
  }
  const auto answer =
      ask(invocation, TokenKind::admin, "PATCH", token_path(invocation), json::serialize(body));
  if (!answer) return std::unexpected(answer.error());
  return print_app(invocation, answer->body);
}

Done show(Invocation& invocation) {
  const auto answer = ask(invocation, TokenKind::admin, "GET", "/admin/tokens");
  if (!answer) return std::unexpected(answer.error());
  const json::array* const tokens = list_of(answer->body, "tokens");
  if (tokens == nullptr) return complain(kExitFailed, std::string(kNoList));
  for (const json::value& token : *tokens) {
    if (!token.is_object()) continue;
    if (field_of(token.get_object(), "name") == invocation.arguments.word(0)) {
      return print_app(invocation, token.get_object());
    }
  }
  return complain(kExitRefused, "there is no token of this name; clawdforge token list shows all.");
}

Done list(Invocation& invocation) {
  const auto answer = ask(invocation, TokenKind::admin, "GET", "/admin/tokens");
  if (!answer) return std::unexpected(answer.error());
  if (invocation.as_json()) {
    print_answer(answer->raw.body);
    return 0;
  }
  const json::array* const tokens = list_of(answer->body, "tokens");
  if (tokens == nullptr) return complain(kExitFailed, std::string(kNoList));
  Table table({"NAME", "CREATED", "LAST USED", "FROM", "AGENTS", "MODELS", "MODE MAX", "MCP"});
  for (const json::value& token : *tokens) {
    if (!token.is_object()) continue;
    const json::object& row = token.get_object();
    table.add({field_of(row, "name"), time_of(row, "created_at"), time_of(row, "last_used_at"),
               field_of(row, "ip_cidrs"), field_of(row, "agents"), field_of(row, "models"),
               field_of(row, "permission_mode_max"), field_of(row, "mcp")});
  }
  print_answer(table.text(invocation.screen));
  return 0;
}

Done rotate(Invocation& invocation) {
  return print_token(invocation,
                     ask(invocation, TokenKind::admin, "POST", token_path(invocation) + "/rotate"));
}

Done rotate_webhook_secret(Invocation& invocation) {
  const auto answer =
      ask(invocation, TokenKind::admin, "POST", token_path(invocation) + "/webhook-secret");
  if (!answer) return std::unexpected(answer.error());
  print_answer(invocation.as_json() ? answer->raw.body : field_of(answer->body, "webhook_secret"));
  return 0;
}

Done revoke(Invocation& invocation) {
  const auto answer = ask(invocation, TokenKind::admin, "DELETE", token_path(invocation));
  if (!answer) return std::unexpected(answer.error());
  if (invocation.as_json()) print_answer(answer->raw.body);
  return 0;
}

}  // namespace

std::vector<Command> token_commands() {
  return {
      {.name = "token mint",
       .arguments = "NAME",
       .group = kGroup,
       .summary = "make an app; prints its token, once",
       .run = mint,
       .options = setting_options(),
       .examples = {"export CLAWDFORGE_TOKEN=$(clawdforge token mint my-app)",
                    "clawdforge token mint reports --agents claude --models 'sonnet,haiku*'"}},
      {.name = "token list",
       .group = kGroup,
       .summary = "all apps",
       .run = list,
       .examples = {"clawdforge token list --json | jq -r '.tokens[].name'"}},
      {.name = "token show",
       .arguments = "NAME",
       .group = kGroup,
       .summary = "what an app may do",
       .run = show,
       .examples = {"clawdforge token show my-app"},
       .offers = Offers::tokens},
      {.name = "token set",
       .arguments = "NAME",
       .group = kGroup,
       .summary = "change what an app may do, from its next request on; the rest stays",
       .run = set,
       .options = change_options(),
       .examples = {"clawdforge token set my-app --max-runs 4",
                    "clawdforge token set my-app --reset models,max_runs"},
       .offers = Offers::tokens},
      {.name = "token rotate",
       .arguments = "NAME",
       .group = kGroup,
       .summary = "another token for an app; prints it, once",
       .run = rotate,
       .examples = {"export CLAWDFORGE_TOKEN=$(clawdforge token rotate my-app)"},
       .offers = Offers::tokens},
      {.name = "token webhook-secret",
       .arguments = "NAME",
       .group = kGroup,
       .summary = "another secret that signs an app's webhooks; prints it, once",
       .run = rotate_webhook_secret,
       .examples = {"clawdforge token webhook-secret my-app"},
       .offers = Offers::tokens},
      {.name = "token revoke",
       .arguments = "NAME",
       .group = kGroup,
       .summary = "take an app's token away",
       .run = revoke,
       .examples = {"clawdforge token revoke my-app"},
       .offers = Offers::tokens},
  };
}

}  // namespace clawdforge
