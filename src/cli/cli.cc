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

struct TokenCommand {
  std::string name;
  TokenSettings settings;
};

void add_token_commands(CLI::App& program, GatewayCall& to, TokenCommand& asked, int& exit_code) {
  CLI::App* const token = program.add_subcommand("token", "the tokens of your apps");
  token->require_subcommand(1);
  const auto add = [&](const char* command, const char* help, auto call) {
    CLI::App* const added = token->add_subcommand(command, help);
    add_connection_options(*added, to);
    added->callback([&exit_code, call] { exit_code = call(); });
    return added;
  };
  const auto add_named = [&](const char* command, const char* help, auto call) {
    CLI::App* const added = add(command, help, call);
    added->add_option("name", asked.name, "the app: 1 to 64 of a-z, 0-9, _ and -")->required();
    return added;
  };
  CLI::App* const mint = add_named("mint", "a new app; prints its token, once",
                                   [&] { return mint_token(to, asked.name, asked.settings); });
  add_setting_options(*mint, asked.settings);
  CLI::App* const set =
      add_named("set", "change what an app may do, from its next request on; the rest stays",
                [&] { return set_token(to, asked.name, asked.settings); });
  add_setting_options(*set, asked.settings);
  add_reset_option(*set, asked.settings);
  add_named("show", "what an app may do", [&] { return show_token(to, asked.name); });
  add("list", "all apps", [&] { return list_tokens(to); });
  add_named("rotate", "another token for an app; prints it, once",
            [&] { return rotate_token(to, asked.name); });
  add_named("revoke", "take an app's token away", [&] { return revoke_token(to, asked.name); });
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

  GatewayCall to{.find_door = find_door, .url = {}, .data_dir = {}, .as_json = false};
  TokenCommand token;
  add_token_commands(program, to, token, exit_code);

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
