#include "process/tree/proc_entry.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <time.h>

#include <array>
#include <charconv>
#include <filesystem>
#include <string_view>

#include "base/descriptor.h"

namespace clawdforge {

namespace {

// Empty if it is not there.
std::string text_of(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  std::array<char, 4096> part{};
  for (ssize_t size = 0; (size = ::read(file.number(), part.data(), part.size())) > 0;) {
    text.append(part.data(), static_cast<std::size_t>(size));
  }
  return text;
}

template <class Number>
Number number_in(std::string_view text) {
  Number number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// The next word of `rest`, which then begins after it.
std::string_view next_word(std::string_view& rest) {
  rest.remove_prefix(std::min(rest.find_first_not_of(" \n"), rest.size()));
  const std::string_view word = rest.substr(0, rest.find_first_of(" \n"));
  rest.remove_prefix(word.size());
  return word;
}

}  // namespace

// The second field is the program's name in parentheses, which may hold anything.
std::optional<ProcEntry> proc_entry(pid_t pid) {
  constexpr int kStateField = 3;
  constexpr int kParentField = 4;
  constexpr int kStartTimeField = 22;
  const std::string text = text_of(fmt::format("/proc/{}/stat", pid));
  const std::size_t name_end = text.rfind(')');
  if (name_end == text.npos) return std::nullopt;
  std::string_view rest = text;
  rest.remove_prefix(name_end + 1);
  ProcEntry entry;
  for (int field = kStateField; field <= kStartTimeField; ++field) {
    const std::string_view word = next_word(rest);
    if (word.empty()) return std::nullopt;
    if (field == kStateField) entry.state = word.front();
    if (field == kParentField) entry.parent = number_in<pid_t>(word);
    if (field == kStartTimeField) entry.start_time = number_in<std::int64_t>(word);
  }
  return entry;
}

std::vector<pid_t> proc_children(pid_t pid) {
  std::vector<pid_t> children;
  std::error_code error;
  const std::string tasks = fmt::format("/proc/{}/task", pid);
  for (std::filesystem::directory_iterator task(tasks, error), end; !error && task != end;
       task.increment(error)) {
    const std::string text = text_of(task->path() / "children");
    std::string_view rest = text;
    for (std::string_view word = next_word(rest); !word.empty(); word = next_word(rest)) {
      if (const auto child = number_in<pid_t>(word); child > 0) children.push_back(child);
    }
  }
  return children;
}

std::int64_t ticks_since_boot() {
  constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;
  static const std::int64_t tick_ns = kNanosecondsPerSecond / ::sysconf(_SC_CLK_TCK);
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return (now.tv_sec * kNanosecondsPerSecond + now.tv_nsec) / tick_ns;
}

std::string read_boot_id() {
  const std::string text = text_of("/proc/sys/kernel/random/boot_id");
  return text.substr(0, text.find('\n'));
}

}  // namespace clawdforge
