// How fast a file comes in, and what it costs in memory:
//   upload_bench GATEWAY INSTANT_CLI FASTAPI_STANDIN DIRECTORY [ROUNDS]
// 100 MB over loopback to POST /files of the gateway and of a FastAPI service, beside two
// floors in the same run: the disk alone (the same bytes written and synced), and the
// least that a receiver can do (one thread from a socket to a file, then a sync). All take
// turns.
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <random>
#include <thread>

#include "figures.h"
#include "raw_http.h"
#include "scratch.h"
#include "server.h"

namespace clawdforge {
namespace {

constexpr std::size_t kPieceBytes = 1'000'000;
constexpr std::size_t kPieces = 100;
constexpr double kMegabytes = 100;
constexpr int kRounds = 11;
constexpr int kPauseMs = 100;
constexpr std::string_view kBoundary = "bench-boundary-7d1a";

// Bytes of every value, as a real file has them: line ends and dashes keep a parser busy.
std::string random_piece() {
  std::mt19937 random(1);
  std::string piece(kPieceBytes, '\0');
  for (char& c : piece) c = static_cast<char>(random());
  return piece;
}

double megabytes_a_second(SteadyClock::time_point begin) {
  return kMegabytes / std::chrono::duration<double>(SteadyClock::now() - begin).count();
}

class File {
 public:
  explicit File(const std::string& path)
      : path_(path), file_(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)) {}
  ~File() {
    close(file_);
    unlink(path_.c_str());
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  void append(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t count = write(file_, bytes.data(), bytes.size());
      if (count <= 0) give_up("the disk does not take the file");
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
  }
  void sync() {
    if (fdatasync(file_) != 0) give_up("the disk does not sync");
  }

 private:
  const std::string path_;
  const int file_;
};

double disk_alone(const std::string& directory, const std::string& piece) {
  File file(directory + "/alone");
  const auto begin = SteadyClock::now();
  for (std::size_t i = 0; i < kPieces; ++i) file.append(piece);
  file.sync();
  return megabytes_a_second(begin);
}

// Takes one connection, writes all that comes to a file, syncs it and answers.
void receive_to_file(int listener, const std::string& path) {
  const int socket = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  File file(path);
  std::string buffer(256 * 1024, '\0');
  for (std::size_t left = kPieceBytes * kPieces; left > 0;) {
    const ssize_t count = recv(socket, buffer.data(), buffer.size(), 0);
    if (count <= 0) break;
    file.append(std::string_view(buffer).substr(0, static_cast<std::size_t>(count)));
    left -= static_cast<std::size_t>(count);
  }
  file.sync();
  constexpr std::string_view kAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
  if (send(socket, kAnswer.data(), kAnswer.size(), MSG_NOSIGNAL) < 0) perror("send");
  close(socket);
}

double bare_receiver(const std::string& directory, const std::string& piece) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* plain = reinterpret_cast<sockaddr*>(&address);
  if (bind(listener, plain, size) != 0 || listen(listener, 1) != 0 ||
      getsockname(listener, plain, &size) != 0) {
    give_up("cannot listen");
  }
  std::jthread receiver(receive_to_file, listener, directory + "/received");
  Connection connection(ntohs(address.sin_port));
  const auto begin = SteadyClock::now();
  for (std::size_t i = 0; i < kPieces; ++i) connection.send(piece);
  connection.receive();
  const double speed = megabytes_a_second(begin);
  receiver.join();
  close(listener);
  return speed;
}

double upload(std::uint16_t port, const std::string& token, const std::string& piece) {
  const std::string before = fmt::format(
      "--{}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.bin\"\r\n"
      "Content-Type: application/octet-stream\r\n\r\n",
      kBoundary);
  const std::string after = fmt::format("\r\n--{}--\r\n", kBoundary);
  Connection connection(port);
  const auto begin = SteadyClock::now();
  connection.send(
      fmt::format("POST /files HTTP/1.1\r\nHost: localhost\r\n"
                  "Authorization: Bearer {}\r\nContent-Length: {}\r\n"
                  "Content-Type: multipart/form-data; boundary={}\r\n\r\n",
                  token, before.size() + kPieceBytes * kPieces + after.size(), kBoundary));
  connection.send(before);
  for (std::size_t i = 0; i < kPieces; ++i) connection.send(piece);
  connection.send(after);
  const Answer answer = connection.receive();
  const double speed = megabytes_a_second(begin);
  if (answer.status != 200 || !answer.body.contains("100000000")) {
    give_up(fmt::format("POST /files answered {}: {}", answer.status, answer.body));
  }
  return speed;
}

struct Subject {
  std::string_view name;
  std::function<double()> once;  // megabytes a second
  std::vector<double> speeds = {};
};

// What one upload leaves to be written or removed is not to be the next one's burden.
void let_it_settle() {
  poll(nullptr, 0, kPauseMs);
  ::sync();
}

void take_turns(std::vector<Subject>& subjects, int rounds) {
  std::vector<Subject*> turns;
  for (Subject& subject : subjects) turns.push_back(&subject);
  std::mt19937 order(1);
  for (int round = 0; round < rounds; ++round) {
    std::ranges::shuffle(turns, order);  // no subject always comes after the same other one
    for (Subject* subject : turns) {
      let_it_settle();
      subject->speeds.push_back(subject->once());
    }
  }
}

Figures ratios(const Subject& subject, const Subject& to) {
  Figures out;
  for (std::size_t i = 0; i < subject.speeds.size(); ++i) {
    out.add(subject.speeds[i] / to.speeds[i]);
  }
  return out;
}

void print_speeds(const std::vector<Subject>& subjects, int rounds) {
  fmt::print("\n| 100 MB, {} rounds in turns | median | range |\n| --- | --- | --- |\n", rounds);
  for (const Subject& subject : subjects) {
    Figures speed;
    for (const double value : subject.speeds) speed.add(value);
    fmt::print("| {} | {:.0f} MB/s | {:.0f} to {:.0f} |\n", subject.name, speed.median(),
               speed.at(0), speed.at(1));
  }
}

void measure(const std::vector<std::string>& programs, const std::string& directory, int rounds) {
  const Gateway gateway(programs[0], programs[1], directory + "/gateway", {});
  const Standin standin(programs[2], programs[1], directory + "/standin");
  const std::string piece = random_piece();
  std::vector<Subject> subjects = {
      {"the disk alone: written and synced", [&] { return disk_alone(directory, piece); }},
      {"a bare receiver: socket to file, synced", [&] { return bare_receiver(directory, piece); }},
      {"gateway, `POST /files`, synced",
       [&] { return upload(gateway.server.port(), gateway.token, piece); }},
      {"FastAPI, `UploadFile`, not synced",
       [&] { return upload(standin.server.port(), standin.token, piece); }}};
  const double gateway_before = gateway.server.peak_mib();
  const double standin_before = standin.server.peak_mib();
  take_turns(subjects, 1);
  const double gateway_first = gateway.server.peak_mib();
  for (Subject& subject : subjects) subject.speeds.clear();  // that was the warm-up
  take_turns(subjects, rounds);
  print_speeds(subjects, rounds);
  fmt::print(
      "\nMedians of each round's ratio: gateway to the disk alone {:.2f}, to the bare receiver "
      "{:.2f}, to FastAPI {:.1f}.\n",
      ratios(subjects[2], subjects[0]).median(), ratios(subjects[2], subjects[1]).median(),
      ratios(subjects[2], subjects[3]).median());
  fmt::print(
      "Peak memory: gateway {:.1f} MiB before, {:.1f} after the first upload, {:.1f} after {}; "
      "FastAPI {:.1f} before, {:.1f} after.\n",
      gateway_before, gateway_first, gateway.server.peak_mib(), rounds + 1, standin_before,
      standin.server.peak_mib());
}

}  // namespace
}  // namespace clawdforge

int main(int argc, char** argv) {
  if (argc < 5) {
    fmt::print(stderr, "upload_bench GATEWAY INSTANT_CLI FASTAPI_STANDIN DIRECTORY [ROUNDS]\n");
    return 2;
  }
  const auto absolute = [&](int i) { return std::filesystem::absolute(argv[i]).string(); };
  const std::vector<std::string> programs = {absolute(1), absolute(2), absolute(3)};
  const int rounds = argc > 5 ? std::atoi(argv[5]) : clawdforge::kRounds;
  return clawdforge::in_scratch_directory(
      "upload_bench", absolute(4),
      [&](const std::string& directory) { clawdforge::measure(programs, directory, rounds); });
}
