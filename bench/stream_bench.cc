// What it costs to watch a session, and what its growing journal costs:
//   stream_bench GATEWAY INSTANT_ACP PEERS DIRECTORY [ROUNDS]
// (a) A turn of 10,000 events to one reader of its stream, beside the agent over two pipes
//     and acpx.
// (b) The first event of a streamed turn, beside the answer of a plain one.
// (c) 100,000 events replayed.
// (d) Memory of 5,000 idle readers.
// (e) A turn in an empty ledger, in a session of 1,000,000 events, and beside 1,000,000
//     events of other sessions; and what its commits take.
// PEERS is where bench/run has put what comes from npm. DIRECTORY is on the disk that counts;
// everything is made below it and removed.
#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <random>

#include "event_stream.h"
#include "journal_filler.h"
#include "peers.h"
#include "proc.h"
#include "scratch.h"
#include "session_turns.h"

namespace clawdforge {
namespace {

constexpr int kRounds = 15;
constexpr int kPauseMs = 1;
constexpr int kEvents = 10'000;
constexpr int kAcpxRounds = 5;
constexpr int kFirstEvents = 300;
constexpr int kReplayEvents = 100'000;
constexpr int kReplays = 7;
constexpr int kReaders = 5'000;
constexpr int kGrowthTurns = 300;
constexpr int kWarmUp = 150;  // until the ledger writes over its log instead of growing it
constexpr std::string_view kEventStream = "text/event-stream";

struct Programs {
  std::string gateway;
  std::string agent;
  std::string peers;
};

void let_it_settle() { poll(nullptr, 0, kPauseMs); }

struct Streamed {
  double first = 0;  // microseconds to the first event
  double all = 0;
  std::size_t events = 0;
};

Streamed stream_turn(Connection& connection, const std::string& request) {
  Streamed streamed;
  const auto begin = SteadyClock::now();
  connection.send(request);
  EventStream stream(connection);
  std::string last;
  while (stream.next()) {
    if (streamed.events++ == 0) streamed.first = microseconds_since(begin);
    last = stream.name();
  }
  streamed.all = microseconds_since(begin);
  if (last != "done") give_up("a streamed turn did not end with done: " + last);
  return streamed;
}

void print_rate(std::string_view name, const Figures& rate, std::string_view aim) {
  fmt::print("| {} | {:.0f} | {:.0f} to {:.0f} | {} |\n", name, rate.median(), rate.at(0),
             rate.at(1), aim);
}

void measure_rate(const Programs& programs, const Gateway& gateway, const std::string& directory,
                  int rounds) {
  const std::string prompt = fmt::format("chunks {}", kEvents);
  DirectAgent direct(programs.agent);
  Connection connection(gateway.server.port());
  const std::string id = make_session(connection, gateway.token);
  const std::string request = turn_request(id, gateway.token, prompt, true);
  const auto acpx = Acpx::in(programs.peers, programs.agent, directory + "/acpx");
  if (acpx != nullptr) {
    acpx->open();
    acpx->prompt(kPrompt);
  }
  stream_turn(connection, request);
  Figures direct_rate;
  Figures gateway_rate;
  Figures acpx_rate;
  const double cpu_before = cpu_microseconds(gateway.server.pid());
  for (int round = 0; round < rounds; ++round) {
    const auto begin = SteadyClock::now();
    const std::size_t lines = direct.prompt(prompt);
    direct_rate.add(static_cast<double>(lines) / microseconds_since(begin) * 1e6);
    let_it_settle();
    const Streamed streamed = stream_turn(connection, request);
    gateway_rate.add(static_cast<double>(streamed.events) / streamed.all * 1e6);
    if (acpx == nullptr || round >= kAcpxRounds) continue;
    const Acpx::Taken taken = acpx->prompt(prompt);
    acpx_rate.add(static_cast<double>(taken.lines) / taken.to_stop * 1e6);
  }
  const double cpu = (cpu_microseconds(gateway.server.pid()) - cpu_before) / rounds;
  fmt::print(
      "\n| a turn of {} events, {} in turns: events a second | median | range | aim |\n"
      "| --- | --- | --- | --- |\n",
      kEvents, rounds);
  print_rate("the agent, over pipes", direct_rate, "");
  print_rate("gateway, to one reader, journal first", gateway_rate, "200,000, or 20 times acpx");
  if (!acpx_rate.empty()) {
    print_rate("acpx, to the stop line", acpx_rate, "");
    fmt::print("\nThe gateway is {:.0f} times as fast as acpx.\n",
               gateway_rate.median() / acpx_rate.median());
  }
  fmt::print("CPU of the gateway: {:.2f} µs an event.\n", cpu / kEvents);
}

void measure_first(const Gateway& gateway, int count) {
  Connection connection(gateway.server.port());
  const std::string id = make_session(connection, gateway.token);
  const std::string plain = turn_request(id, gateway.token, kPrompt, false);
  const std::string streamed = turn_request(id, gateway.token, kPrompt, true);
  Figures answer;
  Figures first;
  Figures last;
  for (int i = -kWarmUp; i < count; ++i) {
    let_it_settle();
    const auto begin = SteadyClock::now();
    if (connection.ask(plain).status != 200) give_up("a plain turn failed");
    const double taken = microseconds_since(begin);
    let_it_settle();
    const Streamed stream = stream_turn(connection, streamed);
    if (i < 0) continue;
    answer.add(taken);
    first.add(stream.first);
    last.add(stream.all);
  }
  fmt::print(
      "\n| a turn of one event, {} of each in turns | median | p90 | over the plain turn | aim |\n"
      "| --- | --- | --- | --- | --- |\n",
      count);
  const auto row = [&](std::string_view name, const Figures& taken, std::string_view aim) {
    fmt::print("| {} | {:.0f} µs | {:.0f} µs | {:.0f} µs | {} |\n", name, taken.median(),
               taken.at(0.9), taken.median() - answer.median(), aim);
  };
  row("plain, its answer", answer, "");
  row("streamed, its first event", first, "300 µs");
  row("streamed, to its end", last, "");
}

void measure_replay(const Gateway& gateway) {
  Connection connection(gateway.server.port());
  const std::string id = make_session(connection, gateway.token);
  const std::string fill =
      turn_request(id, gateway.token, fmt::format("chunks {}", kReplayEvents - 2), true);
  const std::size_t events = stream_turn(connection, fill).events;
  Figures rate;
  for (int i = 0; i < kReplays; ++i) {
    let_it_settle();
    Connection reader(gateway.server.port());
    const auto begin = SteadyClock::now();
    reader.send(get_request(fmt::format("/sessions/{}/events", id), gateway.token, kEventStream));
    EventStream stream(reader);
    const std::size_t seen = stream.read_to(static_cast<std::int64_t>(events));
    rate.add(static_cast<double>(seen) / microseconds_since(begin) * 1e6);
    if (seen != events) give_up(fmt::format("{} of {} events were replayed", seen, events));
  }
  fmt::print("\n| replay, {} times: events a second | median | range | aim |\n", kReplays);
  fmt::print("| --- | --- | --- | --- |\n");
  print_rate(fmt::format("{} events to one reader", events), rate, "");
}

struct Reader {
  Reader(std::uint16_t port, const std::string& request) : connection(port) {
    connection.send(request);
    stream.emplace(connection);
  }

  Connection connection;
  std::optional<EventStream> stream;
};

void measure_idle(const Programs& programs, const std::string& directory) {
  const std::string place = directory + "/idle";
  const Gateway gateway(programs.gateway, programs.agent, place,
                        session_settings(place, programs.agent));
  Connection connection(gateway.server.port());
  const std::string id = make_session(connection, gateway.token);
  connection.ask(turn_request(id, gateway.token, kPrompt, false));
  constexpr std::int64_t kLastId = 3;  // of that turn: a piece, the stop line, done
  const std::string request = get_request(fmt::format("/sessions/{}/events?after={}", id, kLastId),
                                          gateway.token, kEventStream);
  const double before = memory_of(gateway.server.pid()).rss_kib;
  std::vector<std::unique_ptr<Reader>> readers;
  for (int i = 0; i < kReaders; ++i) {
    readers.push_back(std::make_unique<Reader>(gateway.server.port(), request));
  }
  const double after = memory_of(gateway.server.pid()).rss_kib;
  fmt::print(
      "\n| {} idle readers of one session | measured | aim |\n| --- | --- | --- |\n"
      "| gateway before, resident | {:.1f} MiB | |\n| gateway with them | {:.1f} MiB | |\n"
      "| each | {:.2f} KiB | under 8 KB |\n",
      kReaders, before / 1024, after / 1024, (after - before) / kReaders);
  // They are all told of one turn.
  const auto begin = SteadyClock::now();
  connection.send(turn_request(id, gateway.token, kPrompt, false));
  for (const auto& reader : readers) {
    while (reader->stream->next() && reader->stream->name() != "done") {
    }
  }
  fmt::print(
      "\nA turn of one event reaches all of them within {:.1f} ms; then the gateway has "
      "{:.1f} MiB.\n",
      microseconds_since(begin) / 1000, memory_of(gateway.server.pid()).rss_kib / 1024);
  connection.receive();
}

// One ledger, and a turn in one of its sessions.
struct Grown {
  // Makes the ledger and fills it.
  Grown(const Programs& all, std::string place, std::string what, Fill fill)
      : programs(all), directory(std::move(place)), name(std::move(what)) {
    {
      const Gateway empty(programs.gateway, programs.agent, directory, settings());
      Connection connection(empty.server.port());
      session = make_session(connection, empty.token);
      token = empty.token;
    }
    fill_journal(directory + "/data/clawdforge.db", session, fill);
  }

  void start() {
    gateway.emplace(programs.gateway, programs.agent, directory, settings(), token);
    turn = session_turn(*gateway, session);
  }

  std::vector<std::string> settings() const {
    return session_settings(directory, programs.agent,
                            {"CLAWDFORGE_JOURNAL_MAX_BYTES_PER_SESSION=1099511627776",
                             "CLAWDFORGE_SWEEP_INTERVAL_SECS=86400"});
  }

  Programs programs;
  std::string directory;
  std::string name;
  std::string session;
  std::string token;
  std::optional<Gateway> gateway;
  std::unique_ptr<Turn> turn;
  Figures taken = {};
  Commits before = {};
};

void print_growth(const std::vector<std::unique_ptr<Grown>>& all, int count) {
  fmt::print(
      "\n| a warm turn, {} of each in turns | median | p90 | to the empty one | mean of its "
      "commits "
      "| to the empty one | aim |\n| --- | --- | --- | --- | --- | --- | --- |\n",
      count);
  double empty_commit = 0;
  for (const auto& grown : all) {
    const Commits now = commits_of(*grown->gateway);
    const double commit =
        (now.seconds - grown->before.seconds) / (now.count - grown->before.count) * 1e6;
    if (empty_commit == 0) empty_commit = commit;
    const double median = grown->taken.median();
    fmt::print("| {} | {:.0f} µs | {:.0f} µs | {:.2f} | {:.0f} µs | {:.2f} | {} |\n", grown->name,
               median, grown->taken.at(0.9), median / all[0]->taken.median(), commit,
               commit / empty_commit, grown == all[0] ? "" : "1.1");
  }
}

void measure_growth(const Programs& programs, const std::string& directory, int count) {
  std::vector<std::unique_ptr<Grown>> all;
  all.push_back(
      std::make_unique<Grown>(programs, directory + "/empty", "an empty ledger", Fill::nothing));
  all.push_back(std::make_unique<Grown>(programs, directory + "/one",
                                        "in a session of 1,000,000 events", Fill::this_session));
  all.push_back(std::make_unique<Grown>(programs, directory + "/others",
                                        "beside 1,000,000 events of 1,000 sessions",
                                        Fill::other_sessions));
  std::vector<Grown*> turns;
  for (const auto& grown : all) turns.push_back(grown.get());
  for (Grown* grown : turns) grown->start();
  std::mt19937 order(1);
  for (int i = -kWarmUp; i < count; ++i) {
    std::ranges::shuffle(turns, order);
    for (Grown* grown : turns) {
      let_it_settle();
      if (i == 0) grown->before = commits_of(*grown->gateway);
      const double taken = grown->turn->once();
      if (i >= 0) grown->taken.add(taken);
    }
  }
  print_growth(all, count);
}

void measure(const Programs& programs, const std::string& directory, int rounds) {
  fmt::print("\nLoad average at the beginning: {:.1f}.\n", load_average());
  {
    const std::string place = directory + "/gateway";
    const Gateway gateway(programs.gateway, programs.agent, place,
                          session_settings(place, programs.agent));
    measure_rate(programs, gateway, directory, rounds);
    measure_first(gateway, rounds * kFirstEvents / kRounds);
    measure_replay(gateway);
  }
  measure_idle(programs, directory);
  measure_growth(programs, directory, rounds * kGrowthTurns / kRounds);
  fmt::print("\nLoad average at the end: {:.1f}.\n", load_average());
}

}  // namespace
}  // namespace clawdforge

int main(int argc, char** argv) {
  if (argc < 5) {
    fmt::print(stderr, "stream_bench GATEWAY INSTANT_ACP PEERS DIRECTORY [ROUNDS]\n");
    return 2;
  }
  const auto absolute = [&](int i) { return std::filesystem::absolute(argv[i]).string(); };
  const clawdforge::Programs programs{absolute(1), absolute(2), absolute(3)};
  const int rounds = argc > 5 ? std::atoi(argv[5]) : clawdforge::kRounds;
  return clawdforge::in_scratch_directory(
      "stream_bench", absolute(4),
      [&](const std::string& directory) { clawdforge::measure(programs, directory, rounds); });
}
