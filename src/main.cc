#include <string>
#include <string_view>
#include <vector>

#include "agent/demo/demo_agent.h"
#include "cli/cli.h"
#include "daemon/serve.h"
#include "offline/backup_command.h"
#include "offline/verify_command.h"
#include "process/host/program_host.h"

using namespace clawdforge;

namespace {

// The client knows nothing of the daemon; what it must know of a local one comes by here.
Result<GatewayDoor> find_door(const std::string& data_dir) {
  auto local = find_local_gateway(data_dir);
  if (!local) return std::unexpected(local.error());
  return GatewayDoor{local->url,
                     local->tls_cert,
                     std::move(local->admin_token),
                     local->is_token_from_file,
                     local->is_running,
                     local->socket_file};
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view command = argc > 1 ? argv[1] : "";
  if (command == "serve") return serve(std::vector<std::string>(argv + 2, argv + argc));
  if (command == "demo-agent") {
    return demo_agent(std::vector<std::string>(argv + 2, argv + argc));
  }
  if (command == "agent-host") return host_programs();
  if (command == "config") return print_config(std::vector<std::string>(argv + 2, argv + argc));
  if (command == "backup") return backup(std::vector<std::string>(argv + 2, argv + argc));
  if (command == "verify") return verify(std::vector<std::string>(argv + 2, argv + argc));
  return run_client(argc, argv, find_door);
}
