// Whether one gateway is slower than another, such as the program of an earlier commit:
//   compare_bench EARLIER NOW INSTANT_CLI INSTANT_ACP DIRECTORY [ROUNDS]
// Both serve at the same time and are asked in turns, so that each sees the same machine; the order
// changes from round to round.
// (a) POST /run, one at a time, beside a bare spawn of the same program.
// (b) A warm turn, one at a time, beside one synced write; and the CPU of it.
// (c) Turns a second and the CPU of a turn with 16 and 64 callers, and answers a second of 16
// callers
//     of POST /run.
// DIRECTORY is on the disk that counts; everything is made below it and removed.
#include <fmt/format.h>
#include <poll.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <future>

#include "proc.h"
#include "scratch.h"
#include "session_turns.h"

namespace clawdforge {
namespace {

constexpr int kWarmUp = 100;
constexpr int kRounds = 5;
constexpr int kAsksARound = 60;
constexpr int kPauseMs = 3;
constexpr std::chrono::milliseconds kCallersRound(600);
constexpr std::size_t kCallersMax = 64;
constexpr std::size_t kRunCallers = 16;

using Turns = std::vector<std::unique_ptr<Turn>>;

struct Pair {
  Figures earlier;
  Figures now;
  Figures& of(std::size_t which) { return which == 0 ? earlier : now; }
};

struct Subject {
  Subject(const std::string& program, const std::string& cli, const std::string& agent,
          const std::string& directory)
      : gateway(program, cli, directory,
                session_settings(directory, agent,
                                 {"CLAWDFORGE_MAX_RUNS=16", "CLAWDFORGE_PID_NAMESPACE=off"})) {
    for (std::size_t i = 0; i < kCallersMax; ++i) turns.push_back(session_turn(gateway));
    run = make_run();
  }
  std::unique_ptr<Turn> make_run() const {
    return request_turn(gateway.server.port(), gateway.token);
  }
  double cpu() const { return cpu_microseconds(gateway.server.pid()); }

  Gateway gateway;
  Turns turns;
  std::unique_ptr<Turn> run;
};

using Subjects = std::array<std::unique_ptr<Subject>, 2>;

// How many were answered.
std::size_t ask_at_once(const Turns& turns, std::size_t callers) {
  const auto end = SteadyClock::now() + kCallersRound;
  std::vector<std::future<std::size_t>> counts;
  for (std::size_t i = 0; i < callers; ++i) {
    counts.push_back(std::async(std::launch::async, [turn = turns[i].get(), end] {
      std::size_t count = 0;
      for (; SteadyClock::now() < end; ++count) turn->once();
      return count;
    }));
  }
  std::size_t sum = 0;
  for (auto& count : counts) sum += count.get();
  return sum;
}

void print_row(std::string_view name, Pair& figures, std::string_view unit) {
  const double earlier = figures.earlier.median();
  const double now = figures.now.median();
  fmt::print("| {} | {:.0f} {} | {:.0f} {} | {:.3f} |\n", name, earlier, unit, now, unit,
             now / earlier);
}

void print_beside(std::string_view name, const Figures& figures) {
  fmt::print("| {} | {:.0f} µs | | |\n", name, figures.median());
}

void measure_lone(Subjects& subjects, const std::string& cli, const std::string& directory,
                  int rounds) {
  const auto bare = bare_turn(cli, nullptr);
  const auto disk = disk_turn(directory);
  Figures bare_taken;
  Figures disk_taken;
  Pair runs;
  Pair turns;
  Pair cpu;
  Pair run_cpu;
  for (int round = -1; round < rounds; ++round) {
    const int count = round < 0 ? kWarmUp : kAsksARound;
    for (int i = 0; i < count; ++i) {
      for (std::size_t k = 0; k < 2; ++k) {
        const std::size_t which = (k + static_cast<std::size_t>(i)) % 2;
        Subject& subject = *subjects[which];
        poll(nullptr, 0, kPauseMs);
        const double before_run = subject.cpu();
        const double run = subject.run->once();
        poll(nullptr, 0, kPauseMs);
        const double before_turn = subject.cpu();
        const double turn = subject.turns[0]->once();
        const double after = subject.cpu();
        if (round < 0) continue;
        runs.of(which).add(run);
        run_cpu.of(which).add(before_turn - before_run);
        turns.of(which).add(turn);
        cpu.of(which).add(after - before_turn);
      }
      poll(nullptr, 0, kPauseMs);
      bare_taken.add(bare->once());
      disk_taken.add(disk->once());
    }
  }
  print_row("`POST /run`, one at a time", runs, "µs");
  print_beside("a bare spawn of the same program", bare_taken);
  print_row("CPU of such a run", run_cpu, "µs");
  print_row("a warm turn, one at a time", turns, "µs");
  print_beside("one write and `fdatasync`", disk_taken);
  print_row("CPU of such a turn", cpu, "µs");
}

void measure_callers(Subjects& subjects, std::size_t callers, int rounds) {
  Pair rate;
  Pair cpu;
  for (int round = -1; round < rounds; ++round) {
    for (std::size_t k = 0; k < 2; ++k) {
      const std::size_t which = (k + static_cast<std::size_t>(round + 1)) % 2;
      Subject& subject = *subjects[which];
      const double before = subject.cpu();
      const auto begin = SteadyClock::now();
      const auto count = static_cast<double>(ask_at_once(subject.turns, callers));
      if (round < 0) continue;
      rate.of(which).add(count * 1e6 / microseconds_since(begin));
      cpu.of(which).add((subject.cpu() - before) / count);
    }
  }
  print_row(fmt::format("turns a second, {} callers", callers), rate, "");
  print_row(fmt::format("CPU of a turn, {} callers", callers), cpu, "µs");
}

void measure_run_callers(Subjects& subjects, int rounds) {
  Pair rate;
  for (int round = -1; round < rounds; ++round) {
    for (std::size_t k = 0; k < 2; ++k) {
      const std::size_t which = (k + static_cast<std::size_t>(round + 1)) % 2;
      Turns runs;
      while (runs.size() < kRunCallers) runs.push_back(subjects[which]->make_run());
      const auto begin = SteadyClock::now();
      const auto count = static_cast<double>(ask_at_once(runs, kRunCallers));
      if (round >= 0) rate.of(which).add(count * 1e6 / microseconds_since(begin));
    }
  }
  print_row(fmt::format("runs a second, {} callers", kRunCallers), rate, "");
}

}  // namespace
}  // namespace clawdforge

int main(int argc, char** argv) {
  if (argc < 6) {
    fmt::print(stderr, "compare_bench EARLIER NOW INSTANT_CLI INSTANT_ACP DIRECTORY [ROUNDS]\n");
    return 2;
  }
  const auto absolute = [&](int i) { return std::filesystem::absolute(argv[i]).string(); };
  const int rounds = argc > 6 ? std::atoi(argv[6]) : clawdforge::kRounds;
  return clawdforge::in_scratch_directory(
      "compare_bench", absolute(5), [&](const std::string& directory) {
        clawdforge::Subjects subjects;
        for (std::size_t i = 0; i < 2; ++i) {
          subjects[i] = std::make_unique<clawdforge::Subject>(absolute(static_cast<int>(i) + 1),
                                                              absolute(3), absolute(4),
                                                              fmt::format("{}/{}", directory, i));
        }
        fmt::print("\n| | earlier | now | ratio |\n| --- | --- | --- | --- |\n");
        clawdforge::measure_lone(subjects, absolute(3), directory, rounds);
        clawdforge::measure_callers(subjects, 16, rounds);
        clawdforge::measure_callers(subjects, 64, rounds);
        clawdforge::measure_run_callers(subjects, rounds);
      });
}
