#include "offline/verify_command.h"

#include <fmt/format.h>

#include <cstdio>
#include <optional>

#include "base/exit_codes.h"
#include "config/effective_config.h"
#include "offline/ledger_file.h"
#include "offline/verify_run.h"

namespace clawdforge {
namespace {

constexpr int kExitFindings = 1;

int print_verify_help() {
  std::puts(
      "clawdforge verify [FILE] [--config FILE] [--data-dir DIR] [--ledger sqlite:PATH]\n\n"
      "Checks what the ledger promises, beside a running gateway or without one, and the files\n"
      "of the data directory with it; with FILE, a copy of a ledger alone. Changes nothing.\n"
      "Prints a line for each finding. Exit code: 0 no finding, 1 findings, 2 wrong usage,\n"
      "5 the ledger could not be read.");
  return 0;
}

int print(const Findings& findings) {
  for (const Finding& finding : findings.all()) fmt::print("{}\n", line_of(finding));
  fmt::print("verify: {} checks, {} findings\n", findings.checks(), findings.all().size());
  return findings.all().empty() ? 0 : kExitFindings;
}

// The copy that is named, or the ledger of the configuration.
Result<VerifyOrder> verify_asked(const std::vector<std::string>& arguments) {
  auto split = split_arguments(arguments);
  if (!split) return std::unexpected(split.error());
  const std::optional<std::string>& file = split->file;
  if (file && !split->flags.empty()) {
    return fail(Errc::invalid, "usage",
                "verify takes a FILE, or the flags that say where the gateway's ledger is.");
  }
  if (file) return VerifyOrder{.ledger = *file};
  auto config = effective_config(std::move(split->flags));
  if (!config) return std::unexpected(config.error());
  auto path = sqlite_path(config->ledger);
  if (!path) return std::unexpected(path.error());
  return VerifyOrder{.ledger = std::move(*path), .data_dir = config->data_dir};
}

}  // namespace

int verify(std::vector<std::string> arguments) {
  if (wants_help(arguments)) return print_verify_help();
  const auto asked = verify_asked(arguments);
  if (!asked) return refuse(kExitUsage, asked.error());
  const auto findings = run_verify(*asked);
  if (!findings) return refuse(kExitFailed, findings.error());
  return print(*findings);
}

}  // namespace clawdforge
