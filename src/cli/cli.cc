#include "cli/cli.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <cstdio>
#include <cstdlib>

#include "base/version.h"
#include "cli/run_commands.h"
#include "cli/token_commands.h"

namespace clawdforge {
namespace {

void add_connection_options(CLI::App& command, GatewayCall& to) {
  command.add_option("--url", to.url,
                     "the gateway, e.g. http://127.0.0.1:8800 (or CLAWDFORGE_URL)");
  command.add_option("--data-dir", to.data_dir, "data directory of a gateway on this machine");
  command.add_flag("--json", to.as_json, "print the gateway's answer as it is");
}

CLI::App* add_run_command(CLI::App& program, GatewayCall& to, RunCommand& asked) {
  CLI::App* run = program.add_subcommand(
      "run", "one prompt, one answer; the app's token comes from CLAWDFORGE_TOKEN");
  run->add_option("prompt", asked.prompt, "the prompt; - or nothing: standard input");
  run->add_option("--agent", asked.agent, "claude (default) or demo");
  run->add_option("--model", asked.model, "the agent's model");
  run->add_option("--system", asked.system, "a system prompt");
  run->add_option("--effort", asked.effort, "low, medium, high, xhigh or max");
  run->add_option("--file", asked.files, "a file token; may be repeated")->allow_extra_args(false);
  run->add_option("--timeout-secs", asked.timeout_secs, "how long it may take");
  add_connection_options(*run, to);
  return run;
}

// The commands that main() hands to the daemon stand here only to be listed.
void list_daemon_commands(CLI::App& program) {
  program.add_subcommand("serve", "run the gateway (serve --help lists every key)");
  program.add_subcommand("demo-agent", "the built-in agent, as the gateway starts it");
  program.add_subcommand("config", "print the effective configuration and where it comes from");
  program.add_subcommand("backup", "copy the ledger into a file, also while the gateway runs");
  program.add_subcommand("verify", "check the ledger and say what is wrong");
}

}  // namespace

int run_client(int argc, char** argv, const FindDoor& find_door) {
  CLI::App program("One HTTP gateway in front of the coding agents on this machine.", "clawdforge");
  program.require_subcommand(1);
  list_daemon_commands(program);
  int exit_code = 0;
  program.add_subcommand("version", "print the version")->callback([] {
    std::printf("clawdforge %s\n", kVersion);
  });

  CLI::App* token = program.add_subcommand("token", "the tokens of your apps");
  token->require_subcommand(1);
  GatewayCall to{.find_door = find_door, .url = {}, .data_dir = {}, .as_json = false};
  NewToken fresh;
  std::string name;

  CLI::App* mint = token->add_subcommand("mint", "a new app; prints its token, once");
  mint->add_option("name", fresh.name, "1 to 64 of a-z, 0-9, _ and -")->required();
  mint->add_option("--ip-cidrs", fresh.ip_cidrs, "addresses it may call from")->delimiter(',');
  mint->add_option("--event-format", fresh.event_format, "acp or simple");
  mint->add_option("--max-sessions", fresh.max_sessions, "open sessions it may have");
  mint->add_option("--max-runs", fresh.max_runs, "runs it may have at once");
  add_connection_options(*mint, to);
  mint->callback([&] { exit_code = mint_token(to, fresh); });

  CLI::App* list = token->add_subcommand("list", "all apps");
  add_connection_options(*list, to);
  list->callback([&] { exit_code = list_tokens(to); });

  CLI::App* rotate = token->add_subcommand("rotate", "another token for an app; prints it, once");
  rotate->add_option("name", name)->required();
  add_connection_options(*rotate, to);
  rotate->callback([&] { exit_code = rotate_token(to, name); });

  CLI::App* revoke = token->add_subcommand("revoke", "take an app's token away");
  revoke->add_option("name", name)->required();
  add_connection_options(*revoke, to);
  revoke->callback([&] { exit_code = revoke_token(to, name); });

  RunCommand asked;
  add_run_command(program, to, asked)->callback([&] { exit_code = run_prompt(to, asked); });
  UploadCommand brought;
  CLI::App* upload = program.add_subcommand("upload", "bring a file; prints its token");
  upload->add_option("file", brought.path)->required();
  upload->add_option("--ttl-secs", brought.ttl_secs, "how long it is kept, 60 to 86400");
  add_connection_options(*upload, to);
  upload->callback([&] { exit_code = upload_file(to, brought); });

  if (const char* url = std::getenv("CLAWDFORGE_URL")) to.url = url;  // --url overwrites it
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return program.exit(error) == 0 ? 0 : kExitUsage;
  }
  return exit_code;
}

}  // namespace clawdforge
