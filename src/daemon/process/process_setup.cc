#include "daemon/process/process_setup.h"

#include <fmt/format.h>
#include <link.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "base/text.h"

namespace clawdforge {
namespace {

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CLAWDFORGE_MUST_STAY_TRACEABLE 1  // the leak check traces its own process
#endif
#endif

// More than any limit of ours can use, and not so many that a program which closes all
// possible descriptors one by one takes minutes.
constexpr rlim_t kDescriptorsMax = 65'536;

// By itself glibc raises this to the largest block that was ever freed, up to 32 MiB, and then each
// thread's arena keeps twice as much for later. With fixed limits what an app or an agent made us
// hold is given back to the system as soon as it is freed.
constexpr int kMappedBytesMin = 1024 * 1024;
constexpr int kKeptFreeBytesMax = 8 * 1024 * 1024;

// The limit that was.
std::optional<std::uint64_t> raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return std::nullopt;
  const rlim_t before = limit.rlim_cur;
  const rlim_t wanted = std::min(limit.rlim_max, kDescriptorsMax);
  if (before >= wanted) return before;
  limit.rlim_cur = wanted;
  setrlimit(RLIMIT_NOFILE, &limit);
  return before;
}

// Of one program or library: its code and constants, which no one writes to, so the file has all of
// it. The segments that are written to when the program is loaded are other ones.
int give_back_pages_of(dl_phdr_info* object, std::size_t /*size*/, void* /*nothing*/) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0) continue;
    const std::uintptr_t begin = (object->dlpi_addr + segment.p_vaddr) / page * page;
    const std::uintptr_t end = object->dlpi_addr + segment.p_vaddr + segment.p_memsz;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): addresses of the loader are numbers
    ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
  }
  return 0;
}

// In a signal's handler only the simplest of calls are allowed.
void end_late(int /*number*/) {
  constexpr std::string_view kSentence =
      "clawdforge: the gateway does not come to its end and is ended\n";
  static_cast<void>(::write(STDERR_FILENO, kSentence.data(), kSentence.size()));
  std::_Exit(kExitLate);
}

}  // namespace

std::optional<std::uint64_t> prepare_process() {
#if !defined(CLAWDFORGE_MUST_STAY_TRACEABLE)
  prctl(PR_SET_DUMPABLE, 0);
#endif
  ::mallopt(M_MMAP_THRESHOLD, kMappedBytesMin);
  ::mallopt(M_TRIM_THRESHOLD, kKeptFreeBytesMax);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  std::signal(SIGCHLD, SIG_DFL);
  return raise_descriptor_limit();
}

Result<std::string> own_program() {
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) return path.string();
  return fail(Errc::unavailable, "no_proc",
              fmt::format("The gateway cannot find its own program: {}.", error.message()));
}

void give_back_start_pages() { ::dl_iterate_phdr(give_back_pages_of, nullptr); }

void end_process_after(std::chrono::seconds most) {
  std::signal(SIGALRM, end_late);
  ::alarm(static_cast<unsigned>(most.count()));
}

std::size_t descriptors_max() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return kDescriptorsMax;
  return std::min(limit.rlim_cur, kDescriptorsMax);
}

std::string own_host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "localhost";
  std::string text(name.data());
  std::ranges::transform(text, text.begin(), lower_case);
  return text;
}

}  // namespace clawdforge
