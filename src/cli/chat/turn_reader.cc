#include "cli/chat/turn_reader.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "json/json_fields.h"
#include "json/json_members.h"

namespace clawdforge {
namespace {

constexpr std::chrono::seconds kSilenceMax{45};  // the gateway says something every 15 seconds
constexpr std::chrono::milliseconds kWaitFirst{50};
constexpr std::chrono::milliseconds kWaitMax{1000};
constexpr std::size_t kTriesMax = 900;  // a quarter of an hour

std::string raw_line(const ServerEvent& event) {
  std::string out = "{";
  if (event.id) append_member(out, "id", *event.id);
  append_member(out, "event", event.name);
  append_name(out, "data");
  return out.append(event.data).append("}");
}

}  // namespace

TurnReader::TurnReader(TurnOrder order, FindGateway find)
    : order_(std::move(order)),
      find_(std::move(find)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      last_id_(order_.after),
      thread_([this] { run(); }) {}

TurnReader::~TurnReader() {
  {
    const std::lock_guard lock(mutex_);
    is_stopped_ = true;
    if (call_) call_->stop();
  }
  changed_.notify_all();
  thread_.join();
}

std::vector<TurnNews> TurnReader::take() {
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = ::read(wake_.number(), &count, sizeof count);
  const std::lock_guard lock(mutex_);
  changed_.notify_all();
  return std::exchange(queue_, {});
}

bool TurnReader::has_ended() {
  const std::lock_guard lock(mutex_);
  return has_ended_ && queue_.empty();
}

bool TurnReader::is_away() {
  const std::lock_guard lock(mutex_);
  return is_away_;
}

std::uint64_t TurnReader::last_id() {
  const std::lock_guard lock(mutex_);
  return last_id_;
}

void TurnReader::push(TurnNews news) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return is_stopped_ || queue_.size() < kQueuedNewsMax; });
  const bool was_empty = queue_.empty();
  queue_.push_back(std::move(news));
  lock.unlock();
  const std::uint64_t one = 1;
  if (was_empty) [[maybe_unused]]
    const ssize_t written = ::write(wake_.number(), &one, sizeof one);
}

void TurnReader::refuse(Complaint complaint) { push({.refusal = std::move(complaint)}); }

void TurnReader::set_away(bool is_away) {
  const std::lock_guard lock(mutex_);
  is_away_ = is_away;
}

// Longer from time to time. False: the chat does not want it any more.
bool TurnReader::wait_a_moment() {
  const auto pause = std::min(kWaitFirst * (1U << std::min<std::size_t>(tries_, 6)), kWaitMax);
  ++tries_;
  set_away(true);
  std::unique_lock lock(mutex_);
  return !changed_.wait_for(lock, pause, [this] { return is_stopped_; });
}

void TurnReader::come_back() {
  tries_ = 0;
  set_away(false);
  push({.note = "The connection was lost and is back; nothing was missed."});
}

void TurnReader::take_event(const ServerEvent& event) {
  if (event.id) {
    const std::lock_guard lock(mutex_);
    if (*event.id <= last_id_) return;
    last_id_ = *event.id;
  }
  TurnNews news{.event = read_chat_event(event.name, event.data)};
  if (order_.keeps_raw) news.raw = raw_line(event);
  const auto* end = std::get_if<ChatTurnEnd>(&news.event);
  if (end != nullptr && end->turn_index > order_.turns_before) saw_end_ = true;
  if (std::holds_alternative<Unshown>(news.event) && !order_.keeps_raw) return;
  push(std::move(news));
}

Result<ClientAnswer> TurnReader::stream(const Destination& to, ClientRequest request) {
  request.token = Secret(std::string(to.token.reveal()));
  request.accept = "text/event-stream";
  {
    const std::lock_guard lock(mutex_);
    if (is_stopped_) return fail(Errc::unavailable, "stopped", "stopped");
    call_ = std::make_unique<StreamCall>();
  }
  EventParser parser;
  auto answer = call_->run(
      to.address, request,
      [&](std::string_view piece) {
        if (tries_ > 0) come_back();
        parser.feed(piece, [this](const ServerEvent& event) { take_event(event); });
        if (saw_end_) call_->stop();  // the stream of a session goes on after the turn
      },
      kSilenceMax);
  const std::lock_guard lock(mutex_);
  call_.reset();
  return answer;
}

TurnReader::Step TurnReader::ask_turn(const Destination& to) {
  ClientRequest request;
  request.method = "POST";
  request.target = fmt::format("/sessions/{}/turn", path_part(order_.session_id));
  request.body = order_.body;
  const std::uint64_t before = last_id();
  const auto answer = stream(to, std::move(request));
  if (answer && answer->status != 200) {
    if (answer->status == 503) {  // draining, or it has only just been started
      if (answer->body.contains("draining")) return Step::again;
    }
    refuse(complaint_of(*answer));
    return Step::ended;
  }
  if (saw_end_) return Step::ended;
  if (answer || last_id() > before) return Step::follow;
  return look_for_turn(to);
}

// The connection was lost before the answer began: was the turn accepted?
TurnReader::Step TurnReader::look_for_turn(const Destination& to) {
  ClientRequest request;
  request.method = "GET";
  request.target = "/sessions/" + path_part(order_.session_id);
  const auto state = ask(to, std::move(request));
  if (!state) return Step::again;
  return count_in(state->body, "turn_count") > order_.turns_before ? Step::follow : Step::again;
}

TurnReader::Step TurnReader::follow(const Destination& to) {
  ClientRequest request;
  request.method = "GET";
  request.target = fmt::format("/sessions/{}/events", path_part(order_.session_id));
  request.last_event_id = last_id();
  const auto answer = stream(to, std::move(request));
  if (saw_end_) return Step::ended;
  if (answer && answer->status == 204) {
    refuse({kExitRefused, "this session is closed; clawdforge chat begins another one.", {}});
    return Step::ended;
  }
  if (answer && answer->status >= 400 && answer->status < 500) {
    refuse(complaint_of(*answer));
    return Step::ended;
  }
  return Step::follow;
}

void TurnReader::run() {
  Step step = order_.body.empty() ? Step::follow : Step::again;
  for (;;) {
    const auto to = find_();
    if (to) {
      step = step == Step::follow ? follow(*to) : ask_turn(*to);
      if (step == Step::ended) break;
    } else if (to.error().exit_code != kExitNoAnswer) {
      refuse(to.error());
      break;
    }
    if (tries_ >= kTriesMax) {
      refuse({kExitNoAnswer, "the gateway does not come back; try again later.", {}});
      break;
    }
    if (!wait_a_moment()) break;
  }
  {
    const std::lock_guard lock(mutex_);
    has_ended_ = true;
  }
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_.number(), &one, sizeof one);
}

}  // namespace clawdforge
