// What callers of Workspaces hand in and get back. Plain records.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/strong_id.h"
#include "model/workspace.h"

namespace clawdforge {

struct WorkspaceListing {
  std::string name;
  WorkspaceMode mode = WorkspaceMode::read;
  bool is_present = false;
};

// A session or run, and where its directories are.
struct WorkspaceUser {
  std::string id;
  AppName app;
  std::string agent;
  std::string own_dir;
  std::string work;  // in it, there
  std::string temp;  // likewise
  bool is_run = false;
};

// What a new one begins with, instead of what the owner's directory has.
struct ForkSource {
  std::string work;
  SessionWorkspace workspace;
  std::string home{};              // of its agent
  std::string agent_session_id{};  // of the conversation that goes along; empty: none does
};

// How the owner's setup went in a new copy or worktree.
struct SetupReport {
  std::vector<std::string> command;
  std::string output = {};
  bool is_output_cut = false;
  std::string error_tail = {};
};

struct MadeWorkspace {
  SessionWorkspace workspace;
  std::optional<SetupReport> setup;
};

struct WorkDiff {
  std::string text;  // unified
  bool is_cut = false;
};

struct ChangedFile {
  std::string path;
  std::int64_t added = 0;  // lines; of a binary file none
  std::int64_t removed = 0;
  bool is_binary = false;
};

struct Committed {
  std::string id;
  bool is_new = false;  // false: there was nothing to commit, and this is the last one
};

}  // namespace clawdforge
