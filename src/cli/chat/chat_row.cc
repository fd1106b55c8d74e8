#include "cli/chat/chat_row.h"

#include <unistd.h>

#include "cli/chat/chat.h"
#include "cli/input/terminal_token.h"
#include "cli/terminal/terminal.h"

namespace clawdforge {
namespace {

Done chat(Invocation& invocation) {
  const Arguments& arguments = invocation.arguments;
  auto to = find_app_destination(invocation);
  if (!to) return std::unexpected(to.error());
  ChatSettings settings;
  settings.session_id = arguments.text("--session");
  settings.as_json = invocation.as_json();
  settings.is_terminal =
      ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1 && !settings.as_json;
  settings.is_live = settings.is_terminal && shows_escape_codes(STDOUT_FILENO);
  settings.wish = {.agent = arguments.text("--agent"),
                   .model = arguments.text("--model"),
                   .permission = arguments.text("--permission"),
                   .workspace = arguments.text("--workspace"),
                   .prefers_ask = settings.is_terminal};
  if (!arguments.has("--no-history")) settings.history_file = chat_history_file();
  Chat chat(
      std::move(*to), [&invocation] { return find_destination(invocation, TokenKind::app); },
      std::move(settings));
  return chat.run();
}

}  // namespace

std::vector<Command> chat_commands() {
  return {
      {.name = "chat",
       .group = "Asking",
       .summary = "a conversation with an agent, here in the terminal",
       .run = chat,
       .options = {{.name = "--agent",
                    .value = "NAME",
                    .help = "which agent answers (default: claude)",
                    .offers = Offers::agents},
                   {.name = "--model", .value = "NAME", .help = "the agent's model"},
                   {.name = "--session",
                    .value = "ID",
                    .help = "go on with a session that is there",
                    .offers = Offers::sessions},
                   {.name = "--permission",
                    .value = "MODE",
                    .help = "deny_all, approve_reads, ask or approve_all (default: ask, where the "
                            "agent can; without a terminal the gateway's)",
                    .offers = Offers::words,
                    .words = "deny_all approve_reads ask approve_all"},
                   {.name = "--workspace",
                    .value = "NAME",
                    .help = "the workspace that it works on",
                    .offers = Offers::workspaces},
                   {.name = "--no-history", .help = "do not keep what is typed"}},
       .examples = {"clawdforge chat --agent demo", "clawdforge chat --session 01a1e2bf-6b42-7000",
                    "printf 'Hello\\nAnd now?\\n' | clawdforge chat --agent demo"},
       .about = "In the chat, /help lists its commands, @path attaches a file, Ctrl-C cancels a "
                "turn and Ctrl-D leaves. Questions of the agent are answered with a key: y once, a "
                "always in this session, n no, ? what exactly.\n\nWithout a terminal each line of "
                "standard input is a prompt, answers go to standard output as plain text, and a "
                "question is answered by the next line."},
  };
}

}  // namespace clawdforge
