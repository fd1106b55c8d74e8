// What is there of each agent: its programs, where they are and of which version, and whether its
// owner seems to be logged in. Starts no program and reads no credentials: it looks which files and
// variables are there, and reads the package files of npm. Blocks for some disk reads, so a gateway
// calls it on the disk's thread.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/agent.h"

namespace clawdforge {

inline constexpr std::size_t kPackageFileBytesMax = 64 * 1024;
// Directories above a program in which its package file is looked for.
inline constexpr int kPackageParentsMax = 6;

// Where a gateway keeps the login of its agents: below its data directory, or where its owner has
// chosen.
struct LoginDirs {
  std::string login;   // holds the login and nothing else
  std::string keeper;  // the home of the program that renews it
};
LoginDirs login_dirs(const std::string& data_dir, const std::string& chosen);

struct InventorySources {
  std::vector<AgentSpec> specs;
  std::map<std::string, std::string> environment;  // the gateway's
  std::string acpx_program;                        // what drives the agents of that protocol
  // Where logins are kept that can be, and who renews them has his home; empty: nowhere.
  std::string login_dir = {};
  std::string keeper_dir = {};
};

// In the order of the specs.
std::vector<AgentReport> take_inventory(const InventorySources& sources);

// How a version stands to the tested ones. It may have words around it: "2.1.325 (Claude Code)".
VersionTrial trial_of(std::string_view version, const ProgramFacts& facts);

// Whether a version, with words around it or not, is known to be older than `oldest`.
bool is_older(std::string_view version, std::string_view oldest);

// Fills in a version that another way has found.
void note_version(ProgramReport& program, std::string version);

// Whether all of its programs are there.
bool is_complete(const AgentReport& agent);
// Whether at least one is.
bool is_installed(const AgentReport& agent);

// What installs the first program that is missing; empty: nothing is missing, or it is not known.
std::string install_command(const AgentReport& agent);

// For a person: "logged in (login file ~/.claude/.credentials.json)".
std::string login_words(const AgentReport& agent);
// Likewise: "/usr/bin/claude 2.1.325".
std::string program_words(const ProgramReport& program);

}  // namespace clawdforge
