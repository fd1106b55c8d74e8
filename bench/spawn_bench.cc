// What a start costs through the Spawner, over a bare posix_spawn of the same program:
//   spawn_bench [program]        (default: /bin/true)
// The call is how long the io thread stands still; the end is when the exit is known; gone
// is when the launcher is reaped and nothing of the tree is left. All kinds take turns, so
// that they see the same machine. Once from a small process, once with 1 GB in use.
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/async/run_to_end.h"
#include "process/launch/launch.h"
#include "process/tree/spawner.h"

extern char** environ;

namespace clawdforge {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr int kRounds = 500;
constexpr std::size_t kLargeBytes = std::size_t{1} << 30;

[[noreturn]] void give_up(const std::string& reason) {
  fmt::print(stderr, "spawn_bench: {}\n", reason);
  std::exit(1);
}

double microseconds_since(SteadyClock::time_point begin) {
  return std::chrono::duration<double, std::micro>(SteadyClock::now() - begin).count();
}

double at(std::vector<double> values, double share) {
  const auto place =
      values.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size()));
  std::ranges::nth_element(values, place);
  return *place;
}

double median(std::vector<double> values) { return at(std::move(values), 0.5); }

struct Figures {
  std::vector<double> call;
  std::vector<double> end;
  std::vector<double> gone;
};

void start_bare(const std::string& program, Figures& figures) {
  std::string name = program;
  char* const arguments[] = {name.data(), nullptr};
  pid_t pid = 0;
  const auto begin = SteadyClock::now();
  if (::posix_spawn(&pid, program.c_str(), nullptr, nullptr, arguments, environ) != 0) {
    give_up("posix_spawn failed");
  }
  figures.call.push_back(microseconds_since(begin));
  ::waitpid(pid, nullptr, 0);
  figures.end.push_back(microseconds_since(begin));
  figures.gone.push_back(figures.end.back());
}

Task<bool> start_one(Spawner* spawner, ChildPlan plan, Figures* figures) {
  const auto begin = SteadyClock::now();
  auto child = spawner->spawn(plan);
  figures->call.push_back(microseconds_since(begin));
  if (!child) give_up(child.error().detail);
  const ExitStatus status = co_await (*child)->exit();
  figures->end.push_back(microseconds_since(begin));
  if (status != ExitStatus(Exited{0})) give_up("the program did not exit with 0");
  co_await (*child)->gone();
  figures->gone.push_back(microseconds_since(begin));
  co_return true;
}

Task<bool> stop(Spawner* spawner) {
  co_await spawner->stop();
  co_return true;
}

struct Bench {
  explicit Bench(const std::string& path) : program(path) {
    if (::mkdtemp(data_dir.data()) == nullptr) give_up("there is no place for a directory");
    const std::string own = data_dir + "/sessions/own";
    std::filesystem::create_directories(own);
    plan = {.argv = {program},
            .environment = {{"PATH", "/usr/bin:/bin"}},
            .working_dir = own,
            .own_dir = own};
    without = make(PidNamespace::off, {});
    within = make(PidNamespace::on, {});
    hidden = make(PidNamespace::on, {.path = data_dir, .kept = {}});
  }
  ~Bench() {
    run_to_end(io, stop(without.get()));
    if (within) run_to_end(io, stop(within.get()));
    if (hidden) run_to_end(io, stop(hidden.get()));
    std::filesystem::remove_all(data_dir);
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  std::unique_ptr<Spawner> make(PidNamespace pid_namespace, HiddenDir hidden_dir) {
    Spawner::Options options;
    options.pid_namespace = pid_namespace;
    options.hidden = std::move(hidden_dir);
    leave_launcher_capabilities();  // as the gateway does
    auto made = Spawner::make(io.get_executor(), options, log);
    if (made) return std::move(*made);
    fmt::print("NOT MEASURED: {}\n", made.error().message);
    return nullptr;
  }

  std::string program;
  std::string data_dir = (std::filesystem::temp_directory_path() / "spawn_bench-XXXXXX").string();
  ChildPlan plan;
  IoContext io;
  Log log{LogLevel::warn, LogFormat::text};
  std::unique_ptr<Spawner> without;
  std::unique_ptr<Spawner> within;
  std::unique_ptr<Spawner> hidden;  // within, and without the data directory
};

// The tenth percentile is what a start costs when nothing else wants the processor: more
// processes take part in one of ours, so a busy machine makes them wait more often.
void print_row(const char* what, const Figures& figures, const Figures& bare) {
  fmt::print("{:32} {:8.0f} {:8.0f} {:8.0f} {:10.0f} {:8.2f} {:8.0f} {:10.0f}\n", what,
             median(figures.call), median(figures.end), median(figures.gone),
             median(figures.end) - median(bare.end), median(figures.end) / median(bare.end),
             at(figures.end, 0.1), at(figures.end, 0.1) - at(bare.end, 0.1));
}

void measure(Bench& bench, const char* size) {
  Figures bare;
  Figures without;
  Figures within;
  Figures hidden;
  for (int i = 0; i < kRounds; ++i) {
    start_bare(bench.program, bare);
    run_to_end(bench.io, start_one(bench.without.get(), bench.plan, &without));
    if (bench.within) run_to_end(bench.io, start_one(bench.within.get(), bench.plan, &within));
    if (bench.hidden) run_to_end(bench.io, start_one(bench.hidden.get(), bench.plan, &hidden));
  }
  fmt::print("{}; medians of {} starts, microseconds\n", size, kRounds);
  fmt::print("{:32} {:>8} {:>8} {:>8} {:>10} {:>8} {:>8} {:>10}\n", "", "call", "end", "gone",
             "end, more", "ratio", "end, p10", "more, p10");
  print_row("bare posix_spawn and waitpid", bare, bare);
  print_row("Spawner, no namespace", without, bare);
  if (bench.within) print_row("Spawner, PID namespace", within, bare);
  if (bench.hidden) print_row("the same, data directory hidden", hidden, bare);
}

int run(const std::string& program) {
  ::signal(SIGPIPE, SIG_IGN);
  Bench bench(program);
  measure(bench, "from a small process");
  auto* memory = static_cast<char*>(
      ::mmap(nullptr, kLargeBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (memory == MAP_FAILED) give_up("there is no gigabyte of memory");
  ::madvise(memory, kLargeBytes, MADV_NOHUGEPAGE);  // small pages cost a fork most
  for (std::size_t i = 0; i < kLargeBytes; i += 4096) memory[i] = 1;
  measure(bench, "from a process with 1 GB in use");
  ::munmap(memory, kLargeBytes);
  return 0;
}

}  // namespace
}  // namespace clawdforge

int main(int argc, char** argv) { return clawdforge::run(argc > 1 ? argv[1] : "/bin/true"); }
