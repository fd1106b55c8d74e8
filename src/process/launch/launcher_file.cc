#include "process/launch/launcher_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "process/launch/launch.h"
#include "process/launch/launcher_words.h"

namespace clawdforge {

namespace {

#ifndef MFD_EXEC
constexpr unsigned MFD_EXEC = 0x0010U;  // since Linux 6.3
#endif

std::unexpected<Failure> unusable() {
  return fail(Errc::unavailable, "no_launcher",
              fmt::format("The launcher cannot be put into memory: {}.", std::strerror(errno)));
}

Descriptor make_memory_file() {
  constexpr unsigned kFlags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  Descriptor file(::memfd_create("clawdforge-launcher", kFlags | MFD_EXEC));
  if (!file.is_open() && errno == EINVAL) {  // an older kernel, where all are executable
    file = Descriptor(::memfd_create("clawdforge-launcher", kFlags));
  }
  return move_out_of_the_way(std::move(file));
}

}  // namespace

Result<Descriptor> make_launcher_file() {
  Descriptor file = make_memory_file();
  if (!file.is_open()) return unusable();
  const auto* bytes = reinterpret_cast<const char*>(kLauncherWords);
  for (std::size_t done = 0; done < kLauncherBytes;) {
    const ssize_t written = ::write(file.number(), bytes + done, kLauncherBytes - done);
    if (written < 0) return unusable();
    done += static_cast<std::size_t>(written);
  }
  constexpr int kSeals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
  if (::fcntl(file.number(), F_ADD_SEALS, kSeals) != 0) return unusable();
  return file;
}

}  // namespace clawdforge
