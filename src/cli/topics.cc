#include "cli/topics.h"

#include <array>

namespace clawdforge {
namespace {

struct Topic {
  std::string_view name;
  std::string_view text;
};

constexpr std::array kTopics = std::to_array<Topic>({
    {"agents",
     R"(Agents are the programs that answer: Claude Code, Codex, Gemini, any that speaks the
Agent Client Protocol, and demo, which is built in and needs no login.

  $ clawdforge agents                     which the gateway has, and whether they are logged in
  $ clawdforge agent login claude         start an agent's own login, as the gateway's user
  $ clawdforge agent check claude         ask it one real question
  $ clawdforge run --agent demo Hello     ask one of them

An agent runs on the gateway's machine, as its user, with that user's login. Further agents
are tables [agents.NAME] in the gateway's configuration file.
)"},
    {"tokens",
     R"(An app is a caller with a token. The admin mints one for each app and says what it may do.

  $ clawdforge token mint my-app          prints the token, once
  $ clawdforge token set my-app --agents claude --max-runs 2
  $ clawdforge token rotate my-app        another token; the old one stops
  $ clawdforge token revoke my-app        takes it away, and closes its sessions

On the gateway's own machine these commands need no token. From elsewhere they take the admin
token from CLAWDFORGE_ADMIN_TOKEN, or from clawdforge login.

An app's commands find their token in CLAWDFORGE_TOKEN, or in what clawdforge login has stored.
A token is never an argument: other users of the machine could read it.
)"},
    {"config",
     R"(Where a command talks to, the first that is there:

  --url URL               or --data-dir DIR, for a gateway on this machine
  CLAWDFORGE_URL
  --profile NAME          or CLAWDFORGE_PROFILE; clawdforge login URL --profile NAME stores it
  ~/.config/clawdforge/cf.env             clawdforge login URL stores it
  the gateway that runs on this machine

clawdforge whoami tells which it is. The files hold lines such as CLAWDFORGE_URL=http://host:8800
and CLAWDFORGE_TOKEN=cf_..., must be the user's own, and 0600 or 0400. A stored token is sent only
to the address that it is stored with.

The gateway's own configuration is another thing: clawdforge serve --help lists its keys, and
clawdforge config prints the values that hold and where each comes from.
)"},
    {"chat",
     R"(A conversation with an agent, in the terminal:

  $ clawdforge chat --agent demo
  $ clawdforge chat --session ID          go on with one, also from another terminal

Type a prompt and Enter; a backslash at a line's end goes on in the next line; @path attaches a
file. Ctrl-C cancels the turn, Ctrl-D leaves and says how to come back; /help lists the
commands. What the agent wants to do is asked with a key: y, a, n or ?.

For scripts: clawdforge session new, session turn and session events, or chat in a pipe.
)"},
});

}  // namespace

std::vector<std::string_view> topic_names() {
  std::vector<std::string_view> names;
  for (const Topic& topic : kTopics) names.push_back(topic.name);
  return names;
}

std::string_view topic_text(std::string_view name) {
  for (const Topic& topic : kTopics) {
    if (topic.name == name) return topic.text;
  }
  return {};
}

}  // namespace clawdforge
