#include "offline/verify_command.h"

#include <fmt/format.h>

#include <cstdio>
#include <optional>

#include "base/exit_codes.h"
#include "config/effective/effective_config.h"
#include "json/json_members.h"
#include "offline/ledger_file.h"
#include "offline/verify_run.h"

namespace clawdforge {
namespace {

constexpr int kExitFindings = 1;

void print(const Findings& findings) {
  for (const Finding& finding : findings.all()) fmt::print("{}\n", line_of(finding));
  fmt::print("verify: {} checks, {} findings\n", findings.checks(), findings.all().size());
}

void print_json(const Findings& findings) {
  std::string out = "{";
  append_member(out, "checks", findings.checks());
  append_name(out, "findings");
  out += '[';
  for (const Finding& finding : findings.all()) {
    out += out.back() == '[' ? "{" : ",{";
    append_member(out, "check", finding.check.name);
    append_member(out, "sentence", finding.check.sentence);
    append_member(out, "count", finding.count);
    append_name(out, "examples");
    out += '[';
    for (const std::string& example : finding.examples) {
      if (out.back() != '[') out += ',';
      append_json_string(out, example);
    }
    out += "]}";
  }
  fmt::print("{}]}}\n", out);
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
  const bool as_json = take_flag(arguments, "--json");
  const auto asked = verify_asked(arguments);
  if (!asked) return refuse(kExitUsage, asked.error());
  const auto findings = run_verify(*asked);
  if (!findings) return refuse(kExitFailed, findings.error());
  as_json ? print_json(*findings) : print(*findings);
  return findings->all().empty() ? 0 : kExitFindings;
}

}  // namespace clawdforge
