// The checks of the doctor, by subject. Each adds its lines.
#pragma once

#include <map>
#include <string>

#include "config/config.h"
#include "doctor/diagnosis.h"
#include "doctor/doctor.h"
#include "doctor/program_trial.h"

namespace clawdforge {

// Of this process.
using Variables = std::map<std::string, std::string>;

// The program, what the kernel allows, and the limits of this process.
void check_machine(const ProgramTrials* trials, Diagnosis& diagnosis);
// The data directory, the files with tokens in it and in the user's configuration, the ledger.
void check_data(const Config& config, const Variables& environment, Diagnosis& diagnosis);
// The port, and who has it; the certificate.
void check_network(const Config& config, const DoctorLinks& links, Diagnosis& diagnosis);
// The directories that apps may have worked on.
void check_workspaces(const Config& config, Diagnosis& diagnosis);
// Files of systemd that start a gateway.
void check_services(const Variables& environment, Diagnosis& diagnosis);
// The agents; with `asks`, one real question to each that is there.
void check_agents(const Config& config, const Variables& environment, const DoctorLinks& links,
                  ProgramTrials* trials, bool asks, Diagnosis& diagnosis);

}  // namespace clawdforge
