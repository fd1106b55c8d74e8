// Which environment variables an agent's process gets. Pure. An allow-list decides: what is
// not named here, in the agent's spec or in the owner's configuration does not pass.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "model/agent.h"

namespace clawdforge {

using Environment = std::map<std::string, std::string>;

// Of our environment, what any program needs, and the names in `more`. Nothing that begins
// with CLAWDFORGE_ passes, even if it is named.
Environment plain_environment(const Environment& ours, const std::vector<std::string>& more);

// The same for an agent: what its spec names, the spec's defaults where we have no value, and
// the values that the owner has set. What the spec forces beats those, and so do the directories
// for temporary files.
Environment agent_environment(const Environment& ours, const AgentSpec& spec,
                              const std::string& temp_dir);

// What an agent is shown of its login, and of the home that it is in.
struct LoginView {
  bool has_own_home = false;  // else the gateway's, in which its login is
  std::string dir = {};       // of the login, where that is apart; empty: it is not
  bool is_alone = false;      // there is nothing else in that directory
};

// Whether a variable takes the place of a login.
bool has_key(const Environment& environment, const LoginSpec& login);
// Whether one says that the program asks another service than its maker's.
bool is_elsewhere(const Environment& environment, const LoginSpec& login);

// Of an agent in a jail. It has a home of its own if it needs no login, has a key, or finds its
// login apart from its home. `is_too_old`: its program does not know how to.
LoginView login_view(const Environment& ours, const AgentSpec& spec, bool is_too_old);

// Its home, and all that it keeps there, is `home` from now on. Where the owner has his settings
// is not told.
void move_home(Environment& environment, const LoginSpec& login, const std::string& home);

// Where an agent with this environment has its login.
std::string login_dir_in(const Environment& environment, const LoginSpec& login);

// Whether an agent with this environment has a key in it, and no login of its own that the key
// would take the place of. Looks whether a file is there.
bool has_only_key(const Environment& environment, const LoginSpec& login);

// What is there while one of the agents renews its login.
std::vector<std::string> refresh_locks(const std::vector<AgentSpec>& specs,
                                       const Environment& ours);

// The values in an environment that must not be shown.
std::vector<std::string> secrets_in(const Environment& environment);

}  // namespace clawdforge
