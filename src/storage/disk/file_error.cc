#include "storage/disk/file_error.h"

#include <fmt/format.h>

#include <cerrno>
#include <system_error>

#include "base/refusals.h"

namespace clawdforge {
namespace {

constexpr std::chrono::seconds kFileRetryAfter{5};

}  // namespace

std::unexpected<Failure> file_failure(int error_number, std::string_view during) {
  std::string detail = fmt::format("{}: {}", during, std::generic_category().message(error_number));
  const bool is_full = error_number == ENOSPC || error_number == EDQUOT || error_number == EFBIG;
  return fail_for_now(
      Errc::unavailable, is_full ? "disk_full" : "workspace_unavailable",
      is_full ? "The gateway has no room on its disk."
              : "The gateway cannot use its working directory; the reason is in its log.",
      kFileRetryAfter, std::move(detail));
}

}  // namespace clawdforge
