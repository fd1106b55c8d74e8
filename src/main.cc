#include <string>
#include <string_view>
#include <vector>

#include "agent/demo/demo_agent.h"
#include "cli/cli.h"
#include "cli/local_questions.h"
#include "daemon/serve.h"
#include "doctor/agent_login.h"
#include "doctor/doctor.h"
#include "offline/backup_command.h"
#include "offline/verify_command.h"
#include "process/host/program_host.h"

using namespace clawdforge;

namespace {

const std::vector<Option> kLedgerOptions = {
    {.name = "--config", .value = "FILE", .help = "the configuration", .offers = Offers::files},
    {.name = "--data-dir", .value = "DIR", .help = "the data directory", .offers = Offers::files},
    {.name = "--ledger", .value = "sqlite:PATH", .help = "the ledger, if it is not there"},
};

// What the doctor asks of a running gateway: it knows nothing of the client.
const DoctorLinks kDoctorLinks = {[](const std::string& data_dir, const std::string& target) {
                                    return get_as_admin(find_local_gateway, data_dir, target);
                                  },
                                  [](const std::string& data_dir, const std::string& agent) {
                                    return ask_agent_here(find_local_gateway, data_dir, agent);
                                  }};

std::vector<Option> with_json(std::vector<Option> options) {
  options.push_back({.name = "--json", .help = "print JSON"});
  return options;
}

std::vector<Option> doctor_options() {
  std::vector<Option> options = {
      {.name = "--ask", .help = "ask each agent one real question, too"}};
  options.insert(options.end(), kLedgerOptions.begin(), kLedgerOptions.end());
  return with_json(std::move(options));
}

std::vector<Command> doctor_commands() {
  return {
      {.name = "doctor",
       .group = "On the gateway's machine",
       .summary = "look for trouble, and say what to do",
       .reach = Reach::raw,
       .run_raw =
           [](std::vector<std::string> arguments) {
             return doctor(std::move(arguments), kDoctorLinks);
           },
       .options = doctor_options(),
       .examples = {"clawdforge doctor", "clawdforge doctor --ask", "clawdforge doctor --json"},
       .about = "Looks at the machine, the configuration, the data directory, the network and the "
                "agents, beside a running gateway or without one. It changes nothing. It takes all "
                "flags of serve. Exit code: 0 all is good, 1 there are warnings, 2 something is "
                "bad."},
      {.name = "agent login",
       .arguments = "NAME",
       .group = "On the gateway's machine",
       .summary = "log in to an agent, with its own program",
       .reach = Reach::raw,
       .run_raw =
           [](std::vector<std::string> arguments) {
             return agent_login(std::move(arguments), kDoctorLinks);
           },
       .options = kLedgerOptions,
       .examples = {"clawdforge agent login claude"},
       .about = "Starts the login of the agent's own program, unmodified, as the user and with the "
                "home of the gateway. What it stores stays the program's own.",
       .offers = Offers::agents},
  };
}

// The commands that are not the client's: it knows nothing of the daemon.
std::vector<Command> daemon_commands() {
  constexpr std::string_view kGroup = "On the gateway's machine";
  return {
      {.name = "serve",
       .group = kGroup,
       .summary = "run the gateway; serve --help lists every key",
       .reach = Reach::raw,
       .run_raw = serve,
       .has_own_help = true},
      {.name = "config",
       .group = kGroup,
       .summary = "print the effective configuration and where it comes from",
       .reach = Reach::raw,
       .run_raw = print_config,
       .options = with_json({}),
       .has_own_help = true},
      {.name = "backup",
       .arguments = "FILE",
       .group = kGroup,
       .summary = "copy the ledger into a file, while the gateway runs or not",
       .reach = Reach::raw,
       .run_raw = backup,
       .options = with_json(kLedgerOptions),
       .examples = {"clawdforge backup /var/backups/clawdforge.db"},
       .about = "FILE must not be there yet. It gets one state of the ledger; the files of uploads "
                "and sessions are not in it. Exit code: 0 done, 2 wrong usage, 4 FILE is there "
                "already, 5 failed.",
       .offers = Offers::files},
      {.name = "verify",
       .arguments = "[FILE]",
       .group = kGroup,
       .summary = "check the ledger, or a copy of it, and say what is wrong",
       .reach = Reach::raw,
       .run_raw = verify,
       .options = with_json(kLedgerOptions),
       .examples = {"clawdforge verify", "clawdforge verify /var/backups/clawdforge.db"},
       .about = "Checks what the ledger promises, beside a running gateway or without one, and the "
                "files of the data directory with it; with FILE, a copy of a ledger alone. Changes "
                "nothing. Prints a line for each finding. Exit code: 0 no finding, 1 findings, 2 "
                "wrong usage, 5 the ledger could not be read.",
       .offers = Offers::files},
  };
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view command = argc > 1 ? argv[1] : "";
  // The gateway starts these itself, for each agent: they do not wait for the table.
  if (command == "demo-agent") {
    return demo_agent(std::vector<std::string>(argv + 2, argv + argc));
  }
  if (command == "agent-host") return host_programs();
  std::vector<Command> further = daemon_commands();
  for (Command& row : doctor_commands()) further.push_back(std::move(row));
  return run_program(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc),
                     find_local_gateway, std::move(further));
}
