#include "cli/core/ask.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <thread>

#include "base/descriptor.h"
#include "cli/core/live_line.h"
#include "cli/core/table.h"

namespace clawdforge {
namespace json = boost::json;
namespace {

const json::value* member(const json::object& object, std::string_view name) {
  return object.if_contains({name.data(), name.size()});
}

std::string string_in(const json::object& object, std::string_view name) {
  const json::value* const value = member(object, name);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

// What to do about a refusal, where the gateway's own sentence does not say it.
struct NextStep {
  std::string_view code;
  std::string_view step;
};
constexpr std::array kNextSteps = std::to_array<NextStep>({
    {"name_taken", "clawdforge token rotate NAME gives it another token."},
    {"unauthorized",
     "clawdforge login URL stores another token, clawdforge token mint NAME makes one."},
    {"agent_unknown", "clawdforge agents lists those there are."},
});

std::string_view step_after(std::string_view code) {
  for (const auto& [known, step] : kNextSteps) {
    if (known == code) return step;
  }
  return {};
}

std::string fields_in(const json::object& body) {
  std::string text;
  const json::array* const errors = list_of(body, "errors");
  if (errors == nullptr) return text;
  for (const json::value& error : *errors) {
    if (!error.is_object()) continue;
    text += fmt::format(" {}: {}", string_in(error.get_object(), "field"),
                        string_in(error.get_object(), "message"));
  }
  return text;
}

// The answer, or why there is none.
Asked<ClientAnswer> heard(const Destination& to, Result<ClientAnswer> answer) {
  if (answer) return std::move(*answer);
  const auto where = fmt::format("{}, by {}", to.url, to.source);
  const Failure& failure = answer.error();
  // A file that could not be sent is not the gateway's fault.
  if (failure.kind != Errc::unavailable) return complain(kExitUsage, failure.message, where);
  return complain(kExitNoAnswer, failure.message + " Is a gateway running there?", where);
}

Asked<GatewayAnswer> read_answer(const Destination& to, Asked<ClientAnswer> answer) {
  if (!answer) return std::unexpected(answer.error());
  if (answer->status >= 400) return std::unexpected(complaint_of(*answer));
  json::error_code error;
  json::value parsed = json::parse(answer->body, error);
  if (error || !parsed.is_object()) {
    return complain(kExitFailed, fmt::format("what answers at {} is not a clawdforge gateway; look "
                                             "at its address.",
                                             to.url));
  }
  return GatewayAnswer{std::move(*answer), std::move(parsed.get_object())};
}

constexpr std::chrono::milliseconds kRedraw{100};

// Ctrl-C and SIGTERM are read from a descriptor while this lives, and another descriptor wakes the
// one who waits.
class Interrupts {
 public:
  Interrupts() {
    sigset_t ends{};
    ::sigemptyset(&ends);
    for (const int number : {SIGINT, SIGTERM}) ::sigaddset(&ends, number);
    ::pthread_sigmask(SIG_BLOCK, &ends, &before_);
    signals_ = Descriptor(::signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK));
    wake_ = Descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  }
  ~Interrupts() {
    signalfd_siginfo taken{};
    while (::read(signals_.number(), &taken, sizeof taken) > 0) continue;
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  // True: the user wants it to end.
  bool wait(std::chrono::milliseconds most) const {
    std::array<pollfd, 2> looked = {pollfd{signals_.number(), POLLIN, 0},
                                    pollfd{wake_.number(), POLLIN, 0}};
    ::poll(looked.data(), looked.size(), static_cast<int>(most.count()));
    return (looked[0].revents & POLLIN) != 0;
  }
  // From another thread.
  void wake() const { ::eventfd_write(wake_.number(), 1); }

 private:
  sigset_t before_{};
  Descriptor signals_;
  Descriptor wake_;
};

}  // namespace

Complaint complaint_of(const ClientAnswer& answer) {
  Complaint complaint{answer.status >= 500 ? kExitFailed : kExitRefused, {}, {}};
  json::error_code error;
  const json::value parsed = json::parse(answer.body, error);
  const json::object body = !error && parsed.is_object() ? parsed.get_object() : json::object();
  const std::string code = string_in(body, "code");
  complaint.sentence = string_in(body, "detail");
  if (complaint.sentence.empty()) complaint.sentence = string_in(body, "error");
  if (complaint.sentence.empty()) {
    complaint.sentence = fmt::format("the answer was HTTP {}.", answer.status);
  }
  complaint.sentence += fields_in(body);
  if (const auto step = step_after(code); !step.empty()) {
    complaint.sentence.append(" ").append(step);
  }
  complaint.sentence = plain_line(complaint.sentence);
  complaint.details =
      plain_line(fmt::format("HTTP {}, code {}, request id {}", answer.status,
                             code.empty() ? "-" : code, answer.header("X-Request-Id")));
  return complaint;
}

Asked<ClientAnswer> ask_raw(const Destination& to, ClientRequest request,
                            std::chrono::seconds timeout) {
  request.token = Secret(std::string(to.token.reveal()));
  return heard(to, call_server(to.address, request, timeout));
}

Asked<GatewayAnswer> ask(const Destination& to, ClientRequest request,
                         std::chrono::seconds timeout) {
  return read_answer(to, ask_raw(to, std::move(request), timeout));
}

Asked<GatewayAnswer> ask_and_wait(const Destination& to, ClientRequest request, Wait wait) {
  request.token = Secret(std::string(to.token.reveal()));
  const Interrupts interrupts;
  StreamCall call;
  Result<ClientAnswer> answer = ClientAnswer();
  std::atomic<bool> is_done = false;
  std::thread caller([&] {
    answer = call.run(to.address, request, [](std::string_view) {}, wait.timeout);
    is_done = true;
    interrupts.wake();
  });
  LiveLine line(wait.screen, wait.live_line);
  bool is_interrupted = false;
  while (!is_done && !is_interrupted) {
    is_interrupted = interrupts.wait(kRedraw);
    line.draw();
  }
  if (is_interrupted) call.stop();
  caller.join();
  line.erase();
  if (is_interrupted) return complain(kExitInterrupted, wait.interrupted);
  return read_answer(to, heard(to, std::move(answer)));
}

Asked<GatewayAnswer> ask(const Invocation& invocation, TokenKind kind, std::string method,
                         std::string target, std::string body) {
  auto to = find_destination(invocation, kind);
  if (!to) return std::unexpected(to.error());
  ClientRequest request;
  request.method = std::move(method);
  request.target = std::move(target);
  request.body = std::move(body);
  return ask(*to, std::move(request));
}

std::string path_part(std::string_view text) {
  std::string path;
  for (const unsigned char c : text) {
    if (std::isalnum(c) != 0 || c == '-' || c == '_') {
      path += static_cast<char>(c);
    } else {
      fmt::format_to(std::back_inserter(path), "%{:02X}", c);
    }
  }
  return path;
}

std::string text_of(const json::value& value) {
  if (value.is_string()) return std::string(value.get_string());
  if (value.is_null()) return "-";
  if (!value.is_array()) return json::serialize(value);
  std::string joined;
  for (const json::value& item : value.get_array()) {
    if (!joined.empty()) joined += ',';
    joined += text_of(item);
  }
  return joined.empty() ? "-" : joined;
}

std::string field_of(const json::object& object, std::string_view name) {
  const json::value* const value = member(object, name);
  return value == nullptr ? "-" : text_of(*value);
}

std::string time_of(const json::object& object, std::string_view name) {
  const json::value* const value = member(object, name);
  constexpr std::int64_t kYear10000 = 253'402'300'800;
  if (value == nullptr || !value->is_int64()) return "never";
  if (value->get_int64() < 0 || value->get_int64() >= kYear10000) return text_of(*value);
  return fmt::format("{:%Y-%m-%d %H:%M:%S}Z",
                     fmt::gmtime(static_cast<std::time_t>(value->get_int64())));
}

const json::array* list_of(const json::object& object, std::string_view name) {
  const json::value* const value = member(object, name);
  return value == nullptr ? nullptr : value->if_array();
}

std::vector<std::pair<std::string, std::string>> fields_of(const json::object& object,
                                                           std::string_view without) {
  std::vector<std::pair<std::string, std::string>> fields;
  for (const auto& [key, value] : object) {
    const std::string name(key);
    if (name == without) continue;
    fields.emplace_back(name, name.ends_with("_at") ? time_of(object, name) : text_of(value));
  }
  return fields;
}

Done print_fields(const Invocation& invocation, const Asked<GatewayAnswer>& answer,
                  std::string_view without) {
  if (!answer) return std::unexpected(answer.error());
  print_answer(invocation.as_json()
                   ? answer->raw.body
                   : fields_text(invocation.screen, fields_of(answer->body, without)));
  return 0;
}

void print_answer(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  if (!text.ends_with('\n')) std::fputc('\n', stdout);
}

}  // namespace clawdforge
