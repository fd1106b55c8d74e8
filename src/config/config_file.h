// Reads the TOML file into texts for the table of keys, and its tables. Everything that
// is unknown or of the wrong type is Errc::invalid with the key, the file and the line.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "config/config_keys.h"

namespace clawdforge {

struct FileValue {
  const KeyRow* row = nullptr;
  std::string text;
  std::int64_t line = 0;
};

struct FileContent {
  std::vector<FileValue> values;
  std::map<std::string, AgentTable> agents;
  Policy defaults;
  std::map<std::string, McpServerTable> mcp_servers;
  NamedWorkspaces workspaces;  // their paths as the file has them
};

// The file's text; Errc::invalid when it cannot be read or is unreasonably large.
Result<std::string> read_config_file(const std::string& path);

// `file` is how the sentences call it.
Result<FileContent> parse_config_file(std::string_view toml, std::string_view file);

}  // namespace clawdforge
