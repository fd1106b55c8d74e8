#include "workspace/file_error.h"

#include <fmt/format.h>

#include <cerrno>
#include <system_error>

namespace clawdforge {

std::unexpected<Error> file_failure(int error_number, std::string_view during) {
  std::string detail = fmt::format("{}: {}", during, std::generic_category().message(error_number));
  if (error_number == ENOSPC || error_number == EDQUOT || error_number == EFBIG) {
    return fail(Errc::unavailable, "disk_full", "The gateway has no room on its disk.",
                std::move(detail));
  }
  return fail(Errc::unavailable, "workspace_unavailable",
              "The gateway cannot use its working directory; the reason is in its log.",
              std::move(detail));
}

}  // namespace clawdforge
