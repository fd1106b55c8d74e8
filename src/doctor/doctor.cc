#include "doctor/doctor.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "config/effective/effective_config.h"
#include "doctor/checks.h"

namespace clawdforge {
namespace {

void look(std::vector<std::string> flags, const DoctorLinks& links, bool asks,
          Diagnosis& diagnosis) {
  const auto trials = ProgramTrials::make();
  ProgramTrials* const usable = trials ? trials->get() : nullptr;
  check_machine(usable, diagnosis);
  if (!trials) {
    diagnosis.bad("launcher", trials.error().message,
                  "in a container: allow memfd_create and exec from it");
  }
  const auto config = effective_config(std::move(flags));
  if (!config) {
    diagnosis.bad("configuration", config.error().message, "clawdforge serve --help");
    return;
  }
  if (config->warnings.empty()) diagnosis.good("configuration", "every key is known and in range");
  for (const std::string& warning : config->warnings) {
    diagnosis.warn("configuration", warning, "clawdforge config");
  }
  const auto environment = environment_variables();
  check_data(*config, environment, diagnosis);
  check_network(*config, links, diagnosis);
  check_workspaces(*config, diagnosis);
  check_services(environment, diagnosis);
  check_agents(*config, environment, links, usable, asks, diagnosis);
}

}  // namespace

int doctor(std::vector<std::string> arguments, const DoctorLinks& links) {
  const bool asks = take_flag(arguments, "--ask");
  const bool as_json = take_flag(arguments, "--json");
  Diagnosis diagnosis;
  look(std::move(arguments), links, asks, diagnosis);
  const bool is_terminal = ::isatty(STDOUT_FILENO) == 1;
  const char* const colourless = std::getenv("NO_COLOR");
  const std::string text =
      as_json       ? json_text(diagnosis)
      : is_terminal ? readable_text(diagnosis, colourless == nullptr || *colourless == '\0')
                    : table_text(diagnosis);
  std::fputs(text.c_str(), stdout);
  return exit_code_of(diagnosis.worst());
}

}  // namespace clawdforge
