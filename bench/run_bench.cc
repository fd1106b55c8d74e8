// What POST /run costs over the agent it runs:
//   run_bench GATEWAY INSTANT_CLI FASTAPI_STANDIN DIRECTORY [COUNT]
// (a) One at a time: a bare spawn of an instant stand-in for the agent, the same behind
//     the launcher, POST /run to the gateway without and with PID namespaces, POST /run
//     to a FastAPI service on one uvicorn worker, and one synced write to the same disk.
//     All take turns, so that each sees the same machine.
// (b) Answers a second with 4 and 16 callers at once.
// DIRECTORY is on the disk that counts; everything is made below it and removed.
#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <future>
#include <optional>
#include <random>

#include "scratch.h"
#include "server.h"
#include "turns.h"

namespace clawdforge {
namespace {

constexpr int kWarmUp = 150;  // until the ledger writes over its log instead of growing it
constexpr int kCount = 500;
constexpr int kPauseMs = 4;
constexpr int kRounds = 5;
constexpr std::chrono::milliseconds kRound(1500);

// One thing that is measured; the functions make a Turn of their own for each caller.
struct Subject {
  std::string name;
  std::function<std::unique_ptr<Turn>()> make;
  bool is_measured_at_once = true;
  Figures taken = {};

  double median() const { return taken.median(); }
};

struct Subjects {
  Subject bare, launcher, launcher_namespace, gateway, gateway_namespace, fastapi, disk;
  Figures bare_end = {};

  std::vector<Subject*> all() {
    return {&bare, &launcher, &launcher_namespace, &gateway, &gateway_namespace, &fastapi, &disk};
  }
};

// The gateway answers before the last process of a run has ended: what is left of it is
// not to be the next one's burden.
void let_it_settle() { poll(nullptr, 0, kPauseMs); }

void take_turns(Subjects& subjects, int count) {
  std::vector<std::pair<Subject*, std::unique_ptr<Turn>>> turns;
  for (Subject* subject : subjects.all()) {
    if (auto turn = subject->make()) turns.emplace_back(subject, std::move(turn));
  }
  std::mt19937 order(1);
  for (int i = -kWarmUp; i < count; ++i) {
    if (i == 0) subjects.bare_end = {};
    // Shuffled, so that no subject always comes after the same other one.
    std::ranges::shuffle(turns, order);
    for (auto& [subject, turn] : turns) {
      let_it_settle();
      const double taken = turn->once();
      if (i >= 0) subject->taken.add(taken);
    }
  }
}

// Answers a second, with `callers` that each ask again as soon as they are answered.
double rate(const Subject& subject, int callers) {
  const auto begin = SteadyClock::now();
  const auto end = begin + kRound;
  std::vector<std::future<int>> counts;
  for (int i = 0; i < callers; ++i) {
    counts.push_back(std::async(std::launch::async, [&subject, end] {
      const auto turn = subject.make();
      int count = 0;
      for (; SteadyClock::now() < end; ++count) turn->once();
      return count;
    }));
  }
  int sum = 0;
  for (auto& count : counts) sum += count.get();
  return sum / std::chrono::duration<double>(SteadyClock::now() - begin).count();
}

void print_row(const Subject& subject, double over) {
  if (subject.taken.empty()) {
    fmt::print("| {} | not possible here | | |\n", subject.name);
    return;
  }
  fmt::print("| {} | {:.0f} µs | {:.0f} µs | {:.0f} µs |\n", subject.name, subject.median(),
             subject.taken.at(0.9), subject.median() - over);
}

void print_latencies(const Subjects& subjects, int count) {
  const double bare = subjects.bare.median();
  const double bare_end = subjects.bare_end.median();
  fmt::print("\n| one at a time, {} of each in turns | median | p90 | over the bare spawn |\n",
             count);
  fmt::print("| --- | --- | --- | --- |\n");
  fmt::print("| {}, to its result line | {:.0f} µs | {:.0f} µs | |\n", subjects.bare.name, bare,
             subjects.bare.taken.at(0.9));
  fmt::print("| {}, to its end | {:.0f} µs | {:.0f} µs | |\n", subjects.bare.name, bare_end,
             subjects.bare_end.at(0.9));
  for (const Subject* subject : {&subjects.launcher, &subjects.launcher_namespace,
                                 &subjects.gateway, &subjects.gateway_namespace}) {
    print_row(*subject, bare);
  }
  print_row(subjects.fastapi, bare_end);
  fmt::print("| {} | {:.0f} µs | {:.0f} µs | |\n", subjects.disk.name, subjects.disk.median(),
             subjects.disk.taken.at(0.9));
  for (const Subject* subject : {&subjects.gateway, &subjects.gateway_namespace}) {
    if (subject->taken.empty()) continue;
    fmt::print("{}FastAPI's overhead is {:.1f} times that of the {}.\n",
               subject == &subjects.gateway ? "\n" : "",
               (subjects.fastapi.median() - bare_end) / (subject->median() - bare), subject->name);
  }
}

void print_rates(Subjects& subjects) {
  fmt::print("\n| answers a second, median of {} rounds | 4 at once | 16 at once |\n", kRounds);
  fmt::print("| --- | --- | --- |\n");
  std::vector<Subject*> measured;
  for (Subject* subject : subjects.all()) {
    if (subject->is_measured_at_once && !subject->taken.empty()) measured.push_back(subject);
  }
  std::vector<std::vector<Figures>> rates(measured.size(), std::vector<Figures>(2));
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t i = 0; i < measured.size(); ++i) {
      rates[i][0].add(rate(*measured[i], 4));
      rates[i][1].add(rate(*measured[i], 16));
    }
  }
  for (std::size_t i = 0; i < measured.size(); ++i) {
    fmt::print("| {} | {:.0f} | {:.0f} |\n", measured[i]->name, rates[i][0].median(),
               rates[i][1].median());
  }
}

struct Programs {
  std::string gateway;
  std::string claude;
  std::string standin;
};

void measure(const Programs& programs, const std::string& directory, int count) {
  const std::string room = "CLAWDFORGE_MAX_RUNS=16";
  const Gateway plain(programs.gateway, programs.claude, directory + "/plain",
                      {room, "CLAWDFORGE_PID_NAMESPACE=off"});
  const bool has_namespaces = launcher_turn(programs.claude, directory, true) != nullptr;
  std::optional<Gateway> confined;
  if (has_namespaces) {
    confined.emplace(programs.gateway, programs.claude, directory + "/confined",
                     std::vector<std::string>{room, "CLAWDFORGE_PID_NAMESPACE=on"});
  }
  const Standin standin(programs.standin, programs.claude, directory + "/standin");
  const auto asks = [](const Server& server, const std::string& token) {
    return [port = server.port(), token] { return request_turn(port, token); };
  };
  Subjects subjects{
      .bare = {.name = "bare `posix_spawn`", .make = {}},
      .launcher = {.name = "behind the launcher, to the result line",
                   .make = [&] { return launcher_turn(programs.claude, directory, false); },
                   .is_measured_at_once = false},
      .launcher_namespace = {.name = "behind the launcher with a PID namespace",
                             .make =
                                 [&] { return launcher_turn(programs.claude, directory, true); },
                             .is_measured_at_once = false},
      .gateway = {.name = "gateway, `POST /run`", .make = asks(plain.server, plain.token)},
      .gateway_namespace = {.name = "gateway with PID namespaces",
                            .make = [&]() -> std::unique_ptr<Turn> {
                              if (!confined) return nullptr;
                              return request_turn(confined->server.port(), confined->token);
                            }},
      .fastapi = {.name = "FastAPI, `POST /run` (over the spawn's end)",
                  .make = asks(standin.server, standin.token)},
      .disk = {.name = "one write and `fdatasync`",
               .make = [&] { return disk_turn(directory); },
               .is_measured_at_once = false}};
  subjects.bare.make = [&] { return bare_turn(programs.claude, &subjects.bare_end); };
  take_turns(subjects, count);
  print_latencies(subjects, count);
  subjects.bare.make = [&] { return bare_turn(programs.claude, nullptr); };
  print_rates(subjects);
}

}  // namespace
}  // namespace clawdforge

int main(int argc, char** argv) {
  if (argc < 5) {
    fmt::print(stderr, "run_bench GATEWAY INSTANT_CLI FASTAPI_STANDIN DIRECTORY [COUNT]\n");
    return 2;
  }
  const auto absolute = [&](int i) { return std::filesystem::absolute(argv[i]).string(); };
  const clawdforge::Programs programs{absolute(1), absolute(2), absolute(3)};
  const int count = argc > 5 ? std::atoi(argv[5]) : clawdforge::kCount;
  return clawdforge::in_scratch_directory(
      "run_bench", absolute(4),
      [&](const std::string& directory) { clawdforge::measure(programs, directory, count); });
}
