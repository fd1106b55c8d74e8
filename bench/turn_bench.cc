// What a turn of a session costs over the agent that takes it:
//   turn_bench GATEWAY INSTANT_ACP PEERS DIRECTORY [ROUNDS]
// (a) One at a time: an instant stand-in for the agent spoken to over two pipes, the same
//     through POST /sessions/{id}/turn with its durable journal, one synced write to the same
//     disk, and the same agent behind sandbox-agent and acpx. All take turns, so that each
//     sees the same machine.
// (b) 1, 16 and 64 callers at once, each with a session of its own: gateway, sandbox-agent.
// (c) Making a session, over the agent's own start.
// (d) Memory with 100 live sessions.
// (e) The same agent driven by the gateway through acpx.
// PEERS is where bench/run has put what comes from npm. DIRECTORY is on the disk that counts;
// everything is made below it and removed.
#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <future>
#include <random>

#include "peers.h"
#include "proc.h"
#include "scratch.h"
#include "session_turns.h"

namespace clawdforge {
namespace {

constexpr int kWarmUp = 150;  // until the ledger writes over its log instead of growing it
constexpr int kRounds = 15;
constexpr int kTurnsARound = 20;
constexpr int kPauseMs = 1;
constexpr int kCpuTurns = 500;
constexpr int kCallerRounds = 5;
constexpr std::chrono::milliseconds kCallerRound(1000);
constexpr std::array<std::size_t, 3> kCallers = {1, 16, 64};
constexpr int kStarts = 40;
constexpr int kAcpxStarts = 5;
constexpr int kLiveSessions = 100;
constexpr int kThroughTurns = 6;
constexpr int kDrainMs = 2'000;  // acpx goes on for a second after a turn

struct Programs {
  std::string gateway;
  std::string agent;
  std::string peers;
};

struct Subject {
  std::string name;
  std::string aim;
  std::unique_ptr<Turn> turn;
  Figures taken = {};
};

// What one leaves to be done is not to be the next one's burden.
void let_it_settle() { poll(nullptr, 0, kPauseMs); }

void take_turns(std::vector<Subject*> subjects, int count, std::mt19937& order) {
  for (int i = 0; i < count; ++i) {
    std::ranges::shuffle(subjects, order);  // no subject always comes after the same other one
    for (Subject* subject : subjects) {
      let_it_settle();
      subject->taken.add(subject->turn->once());
    }
  }
}

void print_row(std::string_view name, const Figures& taken, double over, std::string_view aim) {
  fmt::print("| {} | {:.0f} µs | {:.0f} µs | {:.0f} to {:.0f} µs | {} | {} |\n", name,
             taken.median(), taken.at(0.9), taken.at(0), taken.at(1),
             over > 0 ? fmt::format("{:.0f} µs", taken.median() - over) : "", aim);
}

// The CPU of one turn, in microseconds.
double cpu_a_turn(pid_t pid, Turn& turn) {
  const double before = cpu_microseconds(pid);
  for (int i = 0; i < kCpuTurns; ++i) turn.once();
  return (cpu_microseconds(pid) - before) / kCpuTurns;
}

struct AcpxFigures {
  Figures to_stop;
  Figures cpu;
  double owner_cpu = 0;  // a turn
};

void print_single(const std::vector<Subject*>& subjects, const AcpxFigures& acpx, int rounds) {
  const double direct = subjects[0]->taken.median();
  const double gateway = subjects[1]->taken.median();
  fmt::print(
      "\n| one warm turn at a time, {} of each in turns | median | p90 | range | over the agent "
      "| aim |\n| --- | --- | --- | --- | --- | --- |\n",
      rounds * kTurnsARound);
  for (const Subject* subject : subjects) {
    const bool is_over = subject != subjects[0] && subject != subjects[2];
    print_row(subject->name, subject->taken, is_over ? direct : 0, subject->aim);
  }
  if (!acpx.to_stop.empty()) {
    print_row("acpx, to the stop line", acpx.to_stop, direct, "");
    fmt::print("\nacpx takes {:.0f} times as long as the gateway (aim: 300).\n",
               acpx.to_stop.median() / gateway);
  }
  if (subjects.size() > 3) {
    fmt::print("The gateway takes {:.2f} of sandbox-agent's time (aim: 0.5).\n",
               gateway / subjects[3]->taken.median());
  }
}

void measure_single(const Programs& programs, const Gateway& gateway, SandboxAgent* sandbox,
                    Acpx* acpx, const std::string& directory, int rounds) {
  Subject direct{"the agent, over pipes", "", direct_turn(programs.agent)};
  Subject session{"gateway, `POST /sessions/{id}/turn`", "500 µs over the agent",
                  session_turn(gateway)};
  Subject disk{"one write and `fdatasync`", "", disk_turn(directory)};
  Subject sandboxed{"sandbox-agent, not durable", "", sandbox ? sandbox->turn() : nullptr};
  std::vector<Subject*> subjects = {&direct, &session, &disk};
  if (sandbox != nullptr) subjects.push_back(&sandboxed);
  std::mt19937 order(1);
  take_turns(subjects, kWarmUp, order);
  for (Subject* subject : subjects) subject->taken = {};
  AcpxFigures figures;
  if (acpx != nullptr) {
    acpx->open();
    acpx->prompt(kPrompt);  // starts the process that lives on
  }
  const pid_t owner = acpx != nullptr ? acpx->owner() : 0;
  const double owner_before = cpu_microseconds(owner);
  for (int round = 0; round < rounds; ++round) {
    if (acpx != nullptr) {
      const Acpx::Taken taken = acpx->prompt(kPrompt);
      figures.to_stop.add(taken.to_stop);
      figures.cpu.add(taken.cpu);
    }
    take_turns(subjects, kTurnsARound, order);
  }
  figures.owner_cpu = (cpu_microseconds(owner) - owner_before) / rounds;
  print_single(subjects, figures, rounds);
  fmt::print("CPU of a turn: gateway {:.0f} µs", cpu_a_turn(gateway.server.pid(), *session.turn));
  if (sandbox != nullptr) {
    fmt::print(", sandbox-agent {:.0f} µs", cpu_a_turn(sandbox->server().pid(), *sandboxed.turn));
  }
  if (acpx != nullptr) {
    fmt::print(", acpx {:.0f} µs and its owner {:.0f} µs", figures.cpu.median(), figures.owner_cpu);
  }
  fmt::print(".\n");
}

using Turns = std::vector<std::unique_ptr<Turn>>;

struct AtOnce {
  Figures taken;
  Figures rate;
  double turns = 0;
};

// As many callers as `callers`, each asking again as soon as it is answered.
void ask_at_once(const Turns& turns, std::size_t callers, AtOnce& figures) {
  const auto begin = SteadyClock::now();
  const auto end = begin + kCallerRound;
  std::vector<std::future<std::vector<double>>> all;
  for (std::size_t i = 0; i < callers; ++i) {
    all.push_back(std::async(std::launch::async, [turn = turns[i].get(), end] {
      std::vector<double> taken;
      while (SteadyClock::now() < end) taken.push_back(turn->once());
      return taken;
    }));
  }
  std::size_t count = 0;
  for (auto& one : all) {
    for (const double taken : one.get()) {
      figures.taken.add(taken);
      ++count;
    }
  }
  const double seconds = microseconds_since(begin) / 1e6;
  figures.rate.add(static_cast<double>(count) / seconds);
  figures.turns += static_cast<double>(count);
}

void print_at_once(std::string_view name, std::size_t callers, const AtOnce& figures,
                   std::string_view more) {
  fmt::print("| {} | {} | {:.0f} µs | {:.0f} µs | {:.0f} ({:.0f} to {:.0f}) | {} |\n", callers,
             name, figures.taken.median(), figures.taken.at(0.99), figures.rate.median(),
             figures.rate.at(0), figures.rate.at(1), more);
}

// The CPU that a server uses while something is done.
double cpu_of(const Server& server, const std::function<void()>& work) {
  const double before = cpu_microseconds(server.pid());
  work();
  return cpu_microseconds(server.pid()) - before;
}

void measure_at_once(const Gateway& gateway, SandboxAgent* sandbox) {
  Turns ours;
  Turns theirs;
  for (std::size_t i = 0; i < kCallers.back(); ++i) {
    ours.push_back(session_turn(gateway));
    if (sandbox != nullptr) theirs.push_back(sandbox->turn());
  }
  fmt::print(
      "\n| callers | {} rounds of {} ms in turns | median | p99 | turns a second | CPU a turn | "
      "turns a commit | gateway's share of the time (aim: 0.5) |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- |\n",
      kCallerRounds, kCallerRound.count());
  for (const std::size_t callers : kCallers) {
    AtOnce our_figures;
    AtOnce their_figures;
    double our_cpu = 0;
    double their_cpu = 0;
    const double commits = commits_of(gateway).count;
    for (int round = 0; round < kCallerRounds; ++round) {
      our_cpu += cpu_of(gateway.server, [&] { ask_at_once(ours, callers, our_figures); });
      if (sandbox == nullptr) continue;
      their_cpu += cpu_of(sandbox->server(), [&] { ask_at_once(theirs, callers, their_figures); });
    }
    const std::string share =
        sandbox == nullptr
            ? ""
            : fmt::format("{:.2f}", our_figures.taken.median() / their_figures.taken.median());
    print_at_once("gateway", callers, our_figures,
                  fmt::format("{:.0f} µs | {:.1f} | {}", our_cpu / our_figures.turns,
                              our_figures.turns / (commits_of(gateway).count - commits), share));
    if (sandbox == nullptr) continue;
    print_at_once("sandbox-agent", callers, their_figures,
                  fmt::format("{:.0f} µs | | ", their_cpu / their_figures.turns));
  }
}

void measure_start(const Programs& programs, const Gateway& gateway, SandboxAgent* sandbox,
                   Acpx* acpx) {
  Figures direct;
  Figures made;
  Figures sandboxed;
  Figures by_acpx;
  Connection connection(gateway.server.port());
  for (int i = 0; i < kStarts; ++i) {
    let_it_settle();
    {
      const auto begin = SteadyClock::now();
      const DirectAgent agent(programs.agent);
      direct.add_since(begin);
    }
    let_it_settle();
    const auto begin = SteadyClock::now();
    const std::string id = make_session(connection, gateway.token);
    made.add_since(begin);
    close_session(connection, gateway.token, id);
    if (sandbox != nullptr) {
      let_it_settle();
      const auto sandbox_begin = SteadyClock::now();
      sandbox->turn();
      sandboxed.add_since(sandbox_begin);
    }
  }
  for (int i = 0; acpx != nullptr && i < kAcpxStarts; ++i) by_acpx.add(acpx->open());
  fmt::print(
      "\n| a new session, {} of each in turns | median | p90 | range | over the agent | aim |\n"
      "| --- | --- | --- | --- | --- | --- |\n",
      kStarts);
  print_row("the agent's own start, to its session", direct, 0, "");
  print_row("gateway, `POST /sessions`", made, direct.median(), "5,000 µs over the agent");
  if (!sandboxed.empty()) print_row("sandbox-agent", sandboxed, direct.median(), "");
  if (!by_acpx.empty()) {
    print_row(fmt::format("acpx, `sessions new` ({} times)", kAcpxStarts), by_acpx, direct.median(),
              "");
  }
}

struct SessionMemory {
  double gateway_kib = 0;
  double beside_kib = 0;  // processes of ours beside the gateway and the agents, PSS
  double agent_rss_kib = 0;
  double agent_pss_kib = 0;
};

// Sums over the whole tree of the gateway.
SessionMemory memory_now(const Gateway& gateway, const std::string& agent) {
  SessionMemory sum;
  sum.gateway_kib = memory_of(gateway.server.pid()).rss_kib;
  for (const pid_t pid : descendants(gateway.server.pid())) {
    const Memory memory = memory_of(pid);
    if (program_of(pid) == agent) {
      sum.agent_rss_kib += memory.rss_kib;
      sum.agent_pss_kib += memory.pss_kib;
    } else {
      sum.beside_kib += memory.pss_kib;
    }
  }
  return sum;
}

void measure_memory(const Programs& programs, const std::string& directory) {
  const std::string place = directory + "/memory";
  const Gateway gateway(programs.gateway, programs.agent, place,
                        session_settings(place, programs.agent));
  Connection connection(gateway.server.port());
  // The first one pays for what all share.
  const std::string first = make_session(connection, gateway.token);
  connection.ask(turn_request(first, gateway.token, kPrompt, false));
  const SessionMemory before = memory_now(gateway, programs.agent);
  std::vector<std::string> ids;
  for (int i = 0; i < kLiveSessions; ++i) ids.push_back(make_session(connection, gateway.token));
  const SessionMemory made = memory_now(gateway, programs.agent);
  for (const std::string& id : ids) {
    connection.ask(turn_request(id, gateway.token, kPrompt, false));
  }
  const SessionMemory after = memory_now(gateway, programs.agent);
  fmt::print(
      "\n| memory per live session, {} live | after its start | after one turn | aim |\n"
      "| --- | --- | --- | --- |\n",
      kLiveSessions);
  const auto row = [&](std::string_view name, double SessionMemory::* part, std::string_view aim) {
    fmt::print("| {} | {:.1f} KiB | {:.1f} KiB | {} |\n", name,
               (made.*part - before.*part) / kLiveSessions,
               (after.*part - before.*part) / kLiveSessions, aim);
  };
  row("gateway, resident", &SessionMemory::gateway_kib, "under 100 KB");
  row("launchers, proportional", &SessionMemory::beside_kib, "");
  row("the stand-in agent, resident", &SessionMemory::agent_rss_kib, "");
  row("the stand-in agent, proportional", &SessionMemory::agent_pss_kib, "");
  fmt::print("\nThe gateway as a whole: {:.1f} MiB with one session, {:.1f} MiB with {}.\n",
             before.gateway_kib / 1024, after.gateway_kib / 1024, kLiveSessions + 1);
}

// What the whole tree uses for `count` turns, acpx's last words included. A turn's part.
double tree_cpu_a_turn(const Gateway& gateway, Turn& turn, int count, int pause_ms,
                       Figures& taken) {
  const double before = tree_cpu_microseconds(gateway.server.pid());
  for (int i = 0; i < count; ++i) {
    taken.add(turn.once());
    poll(nullptr, 0, pause_ms);
  }
  return (tree_cpu_microseconds(gateway.server.pid()) - before) / count;
}

void measure_through_acpx(const Programs& programs, const std::string& directory) {
  const std::string place = directory + "/through";
  const std::string acpx = Acpx::program_in(programs.peers, place);
  if (acpx.empty()) return;
  const Gateway gateway(
      programs.gateway, programs.agent, place,
      session_settings(place, programs.agent, {"CLAWDFORGE_ACPX_BIN=" + acpx, "TMPDIR=" + place}));
  Connection connection(gateway.server.port());
  const auto begin = SteadyClock::now();
  const std::string id = make_session(connection, gateway.token, "through-acpx");
  const double start = microseconds_since(begin);
  const auto through = session_turn(gateway, id);
  const auto native = session_turn(gateway);
  through->once();
  native->once();
  poll(nullptr, 0, kDrainMs);
  Figures through_taken;
  Figures native_taken;
  const double through_cpu =
      tree_cpu_a_turn(gateway, *through, kThroughTurns, kDrainMs, through_taken);
  const double native_cpu = tree_cpu_a_turn(gateway, *native, kCpuTurns, 0, native_taken);
  close_session(connection, gateway.token, id);
  fmt::print(
      "\n| a warm turn of a session, to its answer | median | range | CPU of all processes |\n"
      "| --- | --- | --- | --- |\n");
  const auto row = [](std::string_view name, const Figures& taken, double cpu) {
    fmt::print("| {} | {:.2f} ms | {:.2f} to {:.2f} ms | {:.2f} ms |\n", name,
               taken.median() / 1000, taken.at(0) / 1000, taken.at(1) / 1000, cpu / 1000);
  };
  row("`protocol = \"acp\"`", native_taken, native_cpu);
  row("`protocol = \"acpx\"`", through_taken, through_cpu);
  fmt::print("\nThe session through acpx was made in {:.0f} ms.\n", start / 1000);
}

void measure(const Programs& programs, const std::string& directory, int rounds) {
  fmt::print("\nLoad average at the beginning: {:.1f}.\n", load_average());
  {
    const std::string place = directory + "/gateway";
    const Gateway gateway(programs.gateway, programs.agent, place,
                          session_settings(place, programs.agent));
    const auto sandbox = SandboxAgent::in(programs.peers, programs.agent, directory + "/sandbox");
    const auto acpx = Acpx::in(programs.peers, programs.agent, directory + "/acpx");
    measure_single(programs, gateway, sandbox.get(), acpx.get(), directory, rounds);
    measure_at_once(gateway, sandbox.get());
    measure_start(programs, gateway, sandbox.get(), acpx.get());
  }
  measure_memory(programs, directory);
  measure_through_acpx(programs, directory);
  fmt::print("\nLoad average at the end: {:.1f}.\n", load_average());
}

}  // namespace
}  // namespace clawdforge

int main(int argc, char** argv) {
  if (argc < 5) {
    fmt::print(stderr, "turn_bench GATEWAY INSTANT_ACP PEERS DIRECTORY [ROUNDS]\n");
    return 2;
  }
  const auto absolute = [&](int i) { return std::filesystem::absolute(argv[i]).string(); };
  const clawdforge::Programs programs{absolute(1), absolute(2), absolute(3)};
  const int rounds = argc > 5 ? std::atoi(argv[5]) : clawdforge::kRounds;
  return clawdforge::in_scratch_directory(
      "turn_bench", absolute(4),
      [&](const std::string& directory) { clawdforge::measure(programs, directory, rounds); });
}
