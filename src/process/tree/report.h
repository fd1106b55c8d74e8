// The one line in which the launcher tells what became of its program; src/launcher/order.h
// has the form.
#pragma once

#include <optional>
#include <string_view>

#include "process/tree/child.h"

namespace clawdforge {

struct Report {
  ExitStatus status;
  std::string_view step;  // what failed, for NotStarted; a part of the line

  bool operator==(const Report&) const = default;
};

inline constexpr std::size_t kReportBytesMax = 128;

// `line` without its end. None: it is not a report.
std::optional<Report> parse_report(std::string_view line);

}  // namespace clawdforge
