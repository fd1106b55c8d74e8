#include "cli/commands/follow.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <optional>

#include "cli/core/ask.h"
#include "client/event_parser.h"

namespace clawdforge {
namespace json = boost::json;
namespace {

constexpr int kPageEvents = 500;
constexpr std::chrono::milliseconds kAgainMin{50};
constexpr std::chrono::milliseconds kAgainMax{2000};
constexpr std::chrono::minutes kAwayMax{10};
constexpr std::chrono::seconds kFollowSilenceMax{45};  // the gateway gives a sign every 15 seconds

// False: there is no reader of standard output any more.
bool print_event(const Invocation& invocation, std::string_view id, std::string_view name,
                 std::string_view data) {
  const std::string line =
      invocation.as_json()
          ? fmt::format(R"({{"id":{},"event":"{}","data":{}}})", id.empty() ? "null" : id, name,
                        data)
          : fmt::format("{}\t{}\t{}", id.empty() ? "-" : id, name, plain_line(data));
  print_answer(line);
  return std::fflush(stdout) == 0;
}

// Starting, draining, or for the moment too busy.
bool is_passing(int status) { return status == 502 || status == 503 || status == 429; }

// The stream of a session, until it is closed. A lost connection, a reader that was cut and a
// restart of the gateway are healed with Last-Event-ID.
class Follower {
 public:
  Follower(const Invocation& invocation, Destination to, std::string target)
      : invocation_(invocation), to_(std::move(to)), target_(std::move(target)) {}

  void begin_after(std::uint64_t number) { last_ = number; }
  Done run();

 private:
  Result<ClientAnswer> read();
  std::optional<ServerAddress> address_now() const;

  const Invocation& invocation_;
  const Destination to_;
  const std::string target_;
  std::optional<std::uint64_t> last_;
  bool was_connected_ = false;
  bool is_cut_ = false;  // told so by the gateway
};

// A gateway of this machine may come back on another port.
std::optional<ServerAddress> Follower::address_now() const {
  if (!to_.is_local) return to_.address;
  auto found = find_destination(invocation_, TokenKind::none);
  if (!found) return std::nullopt;
  return found->address;
}

Result<ClientAnswer> Follower::read() {
  const auto address = address_now();
  if (!address) return fail(Errc::unavailable, "unreachable", "No gateway is there.");
  ClientRequest request;
  request.method = "GET";
  request.target = target_;
  request.accept = "text/event-stream";
  request.last_event_id = last_;
  request.token = Secret(std::string(to_.token.reveal()));
  is_cut_ = false;
  StreamCall call;
  EventParser parser;
  const auto take = [&](const ServerEvent& event) {
    if (event.id) last_ = event.id;
    is_cut_ = event.name == "shutdown" || event.name == "lagged";
    if (is_cut_) return;
    const std::string id = event.id ? fmt::format("{}", *event.id) : std::string();
    // Without a reader of standard output there is nothing left to do.
    if (!print_event(invocation_, id, event.name, event.data)) std::_Exit(kExitNoAnswer);
  };
  const auto feed = [&](std::string_view piece) {
    was_connected_ = true;
    if (!parser.feed(piece, take)) call.stop();
  };
  return call.run(*address, request, feed, kFollowSilenceMax);
}

Done Follower::run() {
  auto pause = kAgainMin;
  auto give_up_at = std::chrono::steady_clock::now() + kAwayMax;
  for (;;) {
    const auto before = last_;
    const auto answer = read();
    const bool has_moved = last_ != before;
    if (answer && answer->status == 204) return 0;  // the session is closed, and all was told
    if (answer && answer->status == 200 && !is_cut_) return 0;
    if (answer && answer->status >= 400 && !(was_connected_ && is_passing(answer->status))) {
      return std::unexpected(complaint_of(*answer));
    }
    if (has_moved || (answer && answer->status == 200)) {
      pause = kAgainMin;
      give_up_at = std::chrono::steady_clock::now() + kAwayMax;
    }
    if (!was_connected_ || std::chrono::steady_clock::now() > give_up_at) {
      const auto why = answer ? complaint_of(*answer).sentence : answer.error().message;
      const auto next = last_ ? fmt::format("--after {} goes on where it ended.", *last_)
                              : std::string("Is a gateway running there?");
      return complain(kExitNoAnswer, fmt::format("{} {}", why, next), to_.url);
    }
    if (invocation_.is_verbose()) {
      fmt::print(stderr, "clawdforge: the connection is lost; trying again.\n");
    }
    ::poll(nullptr, 0, static_cast<int>(pause.count()));
    pause = std::min(pause * 2, kAgainMax);
  }
}

Done follow_events(const Invocation& invocation, const std::string& target) {
  auto to = find_destination(invocation, TokenKind::app);
  if (!to) return std::unexpected(to.error());
  // Each event is written when it comes, so nothing is left to do at the end.
  std::signal(SIGINT, [](int) { std::_Exit(kExitInterrupted); });
  Follower follower(invocation, std::move(*to), target);
  if (const auto after = invocation.arguments.number("--after")) {
    follower.begin_after(static_cast<std::uint64_t>(*after));
  }
  return follower.run();
}

// One page after the other, until one is empty.
Done print_journal(const Invocation& invocation, const std::string& target, std::string after) {
  if (after.empty()) after = "0";
  for (;;) {
    const auto answer =
        ask(invocation, TokenKind::app, "GET",
            fmt::format("{}?after={}&limit={}", target, path_part(after), kPageEvents));
    if (!answer) return std::unexpected(answer.error());
    const json::array* const events = list_of(answer->body, "events");
    if (events == nullptr || events->empty()) return 0;
    for (const json::value& event : *events) {
      if (!event.is_object()) continue;
      const json::object& row = event.get_object();
      if (invocation.as_json()) {
        print_answer(json::serialize(row));
        continue;
      }
      const json::value* const data = row.if_contains("data");
      print_event(invocation, field_of(row, "id"), field_of(row, "event"),
                  data == nullptr ? "-" : json::serialize(*data));
    }
    const std::string next = field_of(answer->body, "next_after");
    if (next == after || next == "-") return 0;
    after = next;
  }
}

}  // namespace

std::vector<Option> event_options() {
  return {{.name = "--follow", .help = "go on with what comes"},
          {.name = "--after",
           .value = "NUMBER",
           .help = "begin after the event of this number",
           .is_number = true}};
}

Done session_events(Invocation& invocation) {
  const Arguments& arguments = invocation.arguments;
  const auto target = fmt::format("/sessions/{}/events", path_part(arguments.word(0)));
  if (arguments.has("--follow")) return follow_events(invocation, target);
  return print_journal(invocation, target, arguments.text("--after"));
}

}  // namespace clawdforge
