// An MCP server of the owner's, which callers ask for by its name and never see. Plain record.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace clawdforge {

struct McpServer {
  // A program, started by the agent; or a url, if `command` is empty.
  std::string command;
  std::vector<std::string> args;
  std::map<std::string, std::string> env;

  std::string url;
  std::string type = "http";  // or "sse"
  std::map<std::string, std::string> headers;
};

// Those of the owner, by name.
using McpServers = std::map<std::string, McpServer>;

}  // namespace clawdforge
