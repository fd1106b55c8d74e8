#include "cli/top/top.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <boost/json.hpp>
#include <chrono>
#include <ctime>
#include <optional>

#include "base/descriptor.h"
#include "cli/core/ask.h"
#include "cli/core/invocation.h"
#include "cli/terminal/terminal.h"
#include "cli/top/top_view.h"
#include "json/json_fields.h"

namespace clawdforge {
namespace json = boost::json;
namespace {

constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l";
constexpr std::string_view kLeave = "\x1b[?25h\x1b[?1049l";
constexpr std::int64_t kIntervalDefault = 2;
constexpr std::int64_t kIntervalMax = 3600;
constexpr std::chrono::seconds kTopCallMax{10};

std::string member_of(const json::object& object, std::string_view key) {
  return std::string(text_in(object, key).value_or(std::string_view()));
}

Asked<GatewayAnswer> get(const Destination& to, std::string target) {
  ClientRequest request;
  request.method = "GET";
  request.target = std::move(target);
  return ask(to, std::move(request), kTopCallMax);
}

// Prometheus' text is not JSON, so `ask` has no use for it.
Asked<std::string> get_metrics(const Destination& to) {
  ClientRequest request;
  request.method = "GET";
  request.target = "/metrics";
  request.accept = "text/plain";
  request.token = Secret(std::string(to.token.reveal()));
  auto answer = call_server(to.address, request, kTopCallMax);
  if (!answer) return complain(kExitNoAnswer, answer.error().message);
  if (answer->status != 200) return std::unexpected(complaint_of(*answer));
  return std::move(answer->body);
}

template <class Take>
void each_in(const json::object& body, std::string_view key, Take take) {
  const json::array* const list = array_in(body, key);
  if (list == nullptr) return;
  for (const json::value& entry : *list) {
    if (entry.is_object()) take(entry.get_object());
  }
}

Asked<TopSnapshot> look(const Destination& to) {
  TopSnapshot now;
  const auto metrics = get_metrics(to);
  if (!metrics) return std::unexpected(metrics.error());
  now.at =
      std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  read_metrics(MetricsText(*metrics), now);
  const auto agents = get(to, "/agents");
  if (!agents) return std::unexpected(agents.error());
  each_in(agents->body, "agents", [&](const json::object& agent) {
    std::string version = member_of(agent, "version");
    if (is_true_in(agent, "present") && version.empty()) version = "installed";
    now.agents.push_back(
        {member_of(agent, "name"), member_of(agent, "login"), std::move(version), ""});
  });
  const auto runs = get(to, "/admin/runs?limit=50");
  if (!runs) return std::unexpected(runs.error());
  each_in(runs->body, "runs", [&](const json::object& run) {  // the newest first
    for (TopAgent& agent : now.agents) {
      if (agent.name == member_of(run, "agent") && agent.last.empty()) {
        agent.last = member_of(run, "outcome");
      }
    }
  });
  const auto sessions = get(to, "/admin/sessions?include_closed=false&limit=1000");
  if (!sessions) return std::unexpected(sessions.error());
  each_in(sessions->body, "sessions", [&](const json::object& session) {
    if (!is_true_in(session, "busy")) return;
    const std::int64_t since = count_in(session, "last_turn_at");
    now.busy.push_back({member_of(session, "session_id"), member_of(session, "app_name"),
                        member_of(session, "agent"), count_in(session, "turn_count"),
                        since > 0 ? std::max<std::int64_t>(0, std::time(nullptr) - since) : 0});
  });
  return now;
}

// The whole screen, until this object ends; then the terminal is as it was.
class FullScreen {
 public:
  FullScreen() : keys_(STDIN_FILENO) { write_all(STDOUT_FILENO, kEnter); }
  ~FullScreen() { write_all(STDOUT_FILENO, kLeave); }
  FullScreen(const FullScreen&) = delete;
  FullScreen& operator=(const FullScreen&) = delete;

  bool draw(const StyledLines& lines, bool has_colour) {
    std::string bytes = "\x1b[H";
    for (std::size_t i = 0; i < lines.size(); ++i) {
      bytes += encode(lines[i], has_colour) + "\x1b[K";
      if (i + 1 < lines.size()) bytes += "\r\n";
    }
    return write_all(STDOUT_FILENO, bytes + "\x1b[J");
  }

 private:
  KeyMode keys_;
};

Descriptor open_top_signals() {
  sigset_t wanted;
  sigemptyset(&wanted);
  for (const int number : {SIGINT, SIGWINCH, SIGTERM, SIGHUP}) sigaddset(&wanted, number);
  ::pthread_sigmask(SIG_BLOCK, &wanted, nullptr);
  return Descriptor(::signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
}

// Waits for the next look, a key or a signal. True: the user leaves.
bool wait_or_leave(const Descriptor& signals, std::chrono::milliseconds left) {
  std::array<pollfd, 2> ready = {{{STDIN_FILENO, POLLIN, 0}, {signals.number(), POLLIN, 0}}};
  ::poll(ready.data(), ready.size(), static_cast<int>(left.count()));
  signalfd_siginfo info{};
  while (::read(signals.number(), &info, sizeof info) == sizeof info) {
    if (info.ssi_signo != SIGWINCH) return true;
  }
  if (ready[0].revents == 0) return false;
  char key = 0;
  return ::read(STDIN_FILENO, &key, 1) != 1 || key == 'q' || key == 'Q' || key == 0x04;
}

Done top(Invocation& invocation) {
  const auto to = find_destination(invocation, TokenKind::admin);
  if (!to) return std::unexpected(to.error());
  auto now = look(*to);
  if (!now) return std::unexpected(now.error());
  TopSnapshot before;
  before.at = now->at;
  const bool is_terminal = ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1;
  if (!is_terminal) {  // once, for a script
    std::string text;
    const TerminalSize wide{.columns = 200, .rows = 1000};
    for (const StyledText& line : top_lines(before, *now, to->url, "", wide)) {
      text += plain_of(line) + "\n";
    }
    write_all(STDOUT_FILENO, text);
    return 0;
  }
  const std::chrono::seconds interval(std::clamp<std::int64_t>(
      invocation.arguments.number("--interval").value_or(kIntervalDefault), 1, kIntervalMax));
  const bool has_colour = shows_escape_codes(STDOUT_FILENO);
  const Descriptor signals = open_top_signals();
  FullScreen screen;
  std::string trouble;
  auto next = std::chrono::steady_clock::now() + interval;
  for (;;) {
    const TerminalSize size = terminal_size(STDOUT_FILENO);
    if (!screen.draw(top_lines(before, *now, to->url, trouble, size), has_colour)) return 0;
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(next - std::chrono::steady_clock::now());
    if (left.count() > 0 && wait_or_leave(signals, left)) return 0;
    if (std::chrono::steady_clock::now() < next) continue;
    next = std::chrono::steady_clock::now() + interval;
    auto later = look(*to);
    trouble = later ? "" : "no answer, trying again";
    if (!later) continue;
    before = std::move(*now);
    now = std::move(later);
  }
}

}  // namespace

std::vector<Command> top_commands() {
  return {
      {.name = "top",
       .group = "On the gateway's machine",
       .summary = "a live view of a gateway: places, queues, asks, agents, busy sessions",
       .run = top,
       .options = {{.name = "--interval",
                    .value = "SECS",
                    .help = "how often it looks (default: 2)",
                    .is_number = true}},
       .examples = {"clawdforge top", "clawdforge top --interval 10"},
       .about =
           "Needs the admin token. q leaves the terminal as it was. Without a terminal it prints "
           "the figures once."},
  };
}

}  // namespace clawdforge
