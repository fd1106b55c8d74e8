// An agent is a program that we drive: what it is called, how it is started, and who
// decides when it asks for permission. Plain records, no I/O.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace clawdforge {

enum class PermissionMode { approve_reads, approve_all, deny_all, ask };
enum class AgentProtocol { acp, acpx };

std::string_view name_of(PermissionMode mode);
std::optional<PermissionMode> permission_mode_from(std::string_view name);
std::string_view name_of(AgentProtocol protocol);

struct AgentSpec {
  std::string name;  // what callers call it
  AgentProtocol protocol = AgentProtocol::acp;
  std::vector<std::string> command;            // the program first; looked up in PATH
  std::vector<std::string> env;                // names passed on from our environment
  std::map<std::string, std::string> set_env;  // fixed values
  std::optional<PermissionMode> permission_mode;
  std::string auth_method;   // to authenticate with; empty: it is logged in by itself
  std::string install_hint;  // a sentence for whoever asks for it while it is absent
  std::string login_hint;    // likewise while nobody is logged in
};

// One line of GET /agents.
struct AgentListing {
  std::string name;
  AgentProtocol protocol = AgentProtocol::acp;
  bool is_present = false;
  std::string version;  // empty: not known
};

}  // namespace clawdforge
