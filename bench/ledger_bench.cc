// How fast the ledger is, through the interface that the gateway uses, beside what the
// disk itself can do in the same run:
//   ledger_bench [directory]     (default: the current one)
// (a) durable rows a second with 1, 8, 64 and 512 writers; a row is answered after its
//     commit was synced, then its writer sends the next.
// (b) a lone write's latency against a bare write and fdatasync of 4 KiB, taken in turns
//     so that both see the same disk.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "base/async/run_to_end.h"
#include "base/ids.h"
#include "ledger/open_ledger.h"

namespace clawdforge {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr int kRowsPerRun = 100'000;
constexpr std::chrono::seconds kRunMax(3);
constexpr int kLoneWrites = 2'000;
constexpr std::size_t kBlockBytes = 4096;

[[noreturn]] void give_up(const std::string& reason) {
  fmt::print(stderr, "ledger_bench: {}\n", reason);
  std::exit(1);
}

struct Bench {
  explicit Bench(const std::string& path) {
    auto opened =
        open_ledger(io.get_executor(), "sqlite:" + path, InstanceId("bench"), log, metrics);
    if (!opened) give_up(opened.error().message);
    ledger = std::move(*opened);
  }

  // Names and digests grow with time, as the keys of runs, sessions and the journal do.
  App next_app() {
    App app;
    app.name = AppName(ids.uuid());
    std::ranges::copy(app.name.str().substr(0, app.token_digest.size()), app.token_digest.begin());
    app.created_at = clock.now();
    return app;
  }

  IoContext io;
  Log log{LogLevel::warn, LogFormat::text};
  Metrics metrics;
  SystemClock clock;
  RandomIds ids{clock};
  std::unique_ptr<Ledger> ledger;
};

Task<void> write_rows(Bench* bench, int* left, SteadyClock::time_point end) {
  while (*left > 0 && SteadyClock::now() < end) {
    --*left;
    App app = bench->next_app();
    const auto added = co_await bench->ledger->apps.add(std::move(app));
    if (!added) give_up(added.error().detail);
  }
}

void measure_rows(const std::string& path, int writers) {
  Bench bench(path);
  int left = kRowsPerRun;
  const auto begin = SteadyClock::now();
  for (int i = 0; i < writers; ++i) {
    boost::asio::co_spawn(bench.io, write_rows(&bench, &left, begin + kRunMax),
                          [](std::exception_ptr thrown) {
                            if (thrown) std::rethrow_exception(thrown);
                          });
  }
  bench.io.run();
  const double seconds = std::chrono::duration<double>(SteadyClock::now() - begin).count();
  fmt::print("{:4} writers: {:8.0f} rows/s\n", writers, (kRowsPerRun - left) / seconds);
  bench.ledger.reset();
  for (const char* end : {"", "-wal", "-shm"}) std::filesystem::remove(path + end);
}

struct Latencies {
  std::vector<double> microseconds;

  void add(SteadyClock::time_point begin) {
    microseconds.push_back(
        std::chrono::duration<double, std::micro>(SteadyClock::now() - begin).count());
  }
  double at(double share) {
    std::ranges::sort(microseconds);
    return microseconds[static_cast<std::size_t>(share * (microseconds.size() - 1))];
  }
};

Task<bool> take_turns(Bench* bench, int file, Latencies* bare, Latencies* lone) {
  const std::string block(kBlockBytes, 'x');
  for (int i = 0; i < kLoneWrites; ++i) {
    const auto bare_begin = SteadyClock::now();
    const auto offset = static_cast<off_t>(i) * static_cast<off_t>(kBlockBytes);
    if (pwrite(file, block.data(), block.size(), offset) < 0 || fdatasync(file) != 0) {
      give_up("the bare write failed");
    }
    bare->add(bare_begin);
    App app = bench->next_app();
    const auto lone_begin = SteadyClock::now();
    const auto added = co_await bench->ledger->apps.add(std::move(app));
    lone->add(lone_begin);
    if (!added) give_up(added.error().detail);
  }
  co_return true;
}

// `preallocated`: the bare write goes over blocks that exist, so that its sync has no
// new length to record; the kindest thing that can be asked of a disk.
void measure_latency(const std::string& directory, bool preallocated) {
  const std::string bare_path = directory + "/bare";
  const int file = ::open(bare_path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) give_up("cannot make a file in " + directory);
  if (preallocated) {
    const std::string blocks(kBlockBytes * kLoneWrites, 'y');
    if (pwrite(file, blocks.data(), blocks.size(), 0) < 0 || fsync(file) != 0) give_up("no room");
  }
  Latencies bare;
  Latencies lone;
  {
    Bench bench(directory + "/lone.db");
    run_to_end(bench.io, take_turns(&bench, file, &bare, &lone));
  }
  close(file);
  fmt::print(
      "bare {} fdatasync: median {:.0f} us, p99 {:.0f} us; lone ledger write: median {:.0f} us, "
      "p99 {:.0f} us; ratio of medians {:.2f}\n",
      preallocated ? "overwrite +" : "append +", bare.at(0.5), bare.at(0.99), lone.at(0.5),
      lone.at(0.99), lone.at(0.5) / bare.at(0.5));
  for (const char* name : {"/bare", "/lone.db", "/lone.db-wal", "/lone.db-shm"}) {
    std::filesystem::remove(directory + name);
  }
}

int run(const std::string& parent) {
  std::string directory = parent + "/ledger-bench-XXXXXX";
  if (mkdtemp(directory.data()) == nullptr) give_up("cannot make a directory in " + parent);
  for (const int writers : {1, 8, 64, 512}) measure_rows(directory + "/rows.db", writers);
  measure_latency(directory, true);
  measure_latency(directory, false);
  std::filesystem::remove_all(directory);
  return 0;
}

}  // namespace
}  // namespace clawdforge

int main(int argc, char** argv) { return clawdforge::run(argc > 1 ? argv[1] : "."); }
