// Tells the ways apart in which acpx fails, by its error lines and exit codes. Pure. The
// codes are stable: docs/openapi.yaml lists them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/acpx/acpx_line.h"
#include "base/result.h"
#include "model/agent.h"
#include "process/tree/exit_status.h"

namespace clawdforge {

// By its own words. Secrets are masked. Without `now`, in Unix seconds, the end of a limit
// is not known.
Failure failure_of(const AcpxFault& fault, const AgentSpec& spec, std::optional<std::int64_t> now,
                   const std::vector<std::string>& secrets);

// False: failure_of() knows nothing of it but that it is an error.
bool is_recognised(const AcpxFault& fault);

// It ended without a word that counts, whatever its exit code.
Failure failure_of_acpx(const AgentSpec& spec, const ExitStatus& status,
                        std::string_view error_tail = {});

// Why the model was not chosen; none: that is not what the fault is about.
std::optional<Failure> model_failure(const AcpxFault& fault, const AgentSpec& spec,
                                     const std::string& model);

}  // namespace clawdforge
