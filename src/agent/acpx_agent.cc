#include "agent/acpx_agent.h"

#include <fmt/format.h>

#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <utility>

#include "agent/acp_agent.h"
#include "agent/acp_failure.h"
#include "agent/acpx_failure.h"
#include "agent/acpx_works.h"
#include "agent/agent_process.h"
#include "agent/masking.h"
#include "base/tokens.h"

namespace clawdforge {
namespace {

constexpr std::size_t kReadBytes = 64 * 1024;
// After so many pieces others get their turn: a pipe that is always full would keep the
// thread for itself.
constexpr unsigned kPiecesAtOnce = 4;
constexpr std::size_t kVersionCharacters = 100;

AgentFailure agent_failed(std::string_view code, std::string sentence) {
  return {
      .kind = Errc::agent_failed, .code = code, .sentence = std::move(sentence), .retry_after = {}};
}

}  // namespace

AcpxAgent::AcpxAgent(std::unique_ptr<Child> host, Setup setup)
    : child_(std::move(host)), setup_(std::move(setup)) {}

AcpxAgent::~AcpxAgent() = default;

ProcessMark AcpxAgent::mark() const { return mark_of(*child_, setup_.boot_id); }

std::string AcpxAgent::error_tail() const {
  return shown_tail(child_->error_tail(), setup_.secrets);
}

std::optional<std::int64_t> AcpxAgent::now() const {
  if (setup_.clock == nullptr) return std::nullopt;
  return unix_seconds(setup_.clock->now());
}

// Writing

std::uint32_t AcpxAgent::start(Verb verb, HostOrder order) {
  const std::uint32_t number = ++last_operation_;
  operations_[number].verb = verb;
  send(host_frame(HostFrameKind::start, number, encode_order(order)));
  return number;
}

void AcpxAgent::send(std::string frame) {
  if (trouble_ || is_stopped_) return;
  Works& works = *works_;
  works.outbox.append(frame);
  if (works.outbox.size() + works.writing_bytes > kAgentOutboxBytesMax) {
    end_for(agent_failed("agent_not_reading",
                         fmt::format("{} does not read what it is sent.", setup_.spec.name)));
    return;
  }
  if (!std::exchange(works.is_writing, true)) works.tasks.spawn(write_out());
}

Task<void> AcpxAgent::write_out() {
  Works& works = *works_;
  while (!works.outbox.empty()) {
    works.writing_bytes = works.outbox.size();
    auto writing = child_->write(std::exchange(works.outbox, {}));
    const auto written = co_await std::move(writing);
    works.writing_bytes = 0;
    if (!written) co_return;  // its end is seen by whoever reads
  }
  works.is_writing = false;
}

void AcpxAgent::end_for(AgentFailure trouble) {
  if (!trouble_) trouble_ = std::move(trouble);
  child_->let_go();
}

// Reading

// False: nothing comes any more.
Task<bool> AcpxAgent::read_more() {
  if (++works_->pieces % kPiecesAtOnce == 0) {
    co_await boost::asio::post(co_await boost::asio::this_coro::executor, kAwait);
  }
  auto reading = child_->read(kReadBytes);
  const auto piece = co_await std::move(reading);
  if (!piece || piece->empty()) co_return false;
  frames_.feed(*piece);
  co_return true;
}

void AcpxAgent::take_frames(AgentNews& news) {
  while (auto frame = frames_.next()) {
    const auto found = operations_.find(frame->operation);
    if (found == operations_.end()) continue;
    Operation& operation = found->second;
    if (frame->kind == HostFrameKind::output) {
      operation.lines.feed(std::move(frame->bytes));
      take_lines(frame->operation, operation, news);
    } else if (frame->kind == HostFrameKind::ended) {
      operation.lines.finish();
      take_lines(frame->operation, operation, news);
      operation.status = decode_end(frame->bytes);
      note_end(frame->operation, operation);
    }
  }
  if (frames_.is_broken()) {
    end_for(agent_failed("agent_nonsense",
                         fmt::format("What runs {} cannot be understood.", setup_.spec.name)));
  }
}

void AcpxAgent::take_lines(std::uint32_t number, Operation& operation, AgentNews& news) {
  while (const auto line = operation.lines.next()) {
    if (operation.verb == Verb::prompt) {
      take_traffic(number, operation, *line, news);
    } else if (auto answer = acpx_answer(*line)) {
      operation.answer = std::move(answer);
    }
  }
  if (operation.lines.is_too_long()) {
    end_for(agent_failed("agent_line_too_long",
                         fmt::format("{} sent a line of more than {} MiB.", setup_.spec.name,
                                     kAgentLineBytesMax / (1024 * 1024))));
  }
}

void AcpxAgent::take_traffic(std::uint32_t number, Operation& operation, std::string_view line,
                             AgentNews& news) {
  using Kind = AcpxTraffic::Kind;
  auto heard = operation.traffic.take(line);
  switch (heard.kind) {
    case Kind::nothing:
      break;
    case Kind::no_object:
      if (line.find_first_not_of(" \t\r") != line.npos) ++news.skipped_lines;
      break;
    case Kind::fault:
      operation.fault = std::move(heard.fault);
      break;
    case Kind::opening:
      if (const auto& result = heard.message.result; result && setup_.version != nullptr) {
        *setup_.version = masked_line(result->agent_version, kVersionCharacters);
      }
      break;
    case Kind::loading:
      if (has_talked_) news.is_resumed = true;
      break;
    case Kind::beginning:
      if (has_talked_) news.is_resumed = false;
      break;
    case Kind::asked:
      // Whatever acpx shows of it: another session is another conversation.
      if (has_talked_ && !session_id_.empty() && heard.session_id != session_id_) {
        news.is_resumed = false;
      }
      session_id_ = std::move(heard.session_id);
      has_talked_ = true;
      if (number == turn_) is_asked_ = true;
      if (is_cancelled_) begin_cancel();
      break;
    case Kind::event:
      note_event(std::move(heard.message), number != turn_, news);
      break;
    case Kind::end:
      if (number == turn_) end_turn(operation, std::move(heard.message), news);
      break;
  }
  if (news.is_resumed == false) owes_system_ = !call_.conversation.system.empty();
}

void AcpxAgent::note_event(AcpMessage message, bool is_late, AgentNews& news) {
  if (message.cost_usd) {
    cost_told_ = *message.cost_usd;
    has_cost_ = true;
  }
  AgentEvent event;
  event.json = std::move(message.json);
  event.text = std::move(message.text);
  event.question = std::move(message.question);
  event.is_late = is_late;
  news.events.push_back(std::move(event));
}

void AcpxAgent::end_turn(Operation& operation, AcpMessage message, AgentNews& news) {
  for (AcpMessage& question : operation.traffic.take_questions()) {
    note_event(std::move(question), false, news);
  }
  TurnEnd end;
  if (message.error && is_cancelled_ && message.error->code == kAcpCancelled) {
    end.stop_reason = "cancelled";
  } else if (message.error) {
    end.failure = failure_of(*message.error, setup_.spec, now(), setup_.secrets);
    end.has_lost_conversation = is_conversation_lost(*message.error);
  } else if (message.result) {
    end.stop_reason = message.result->stop_reason;
    end.usage = message.result->usage;
    if (end.stop_reason.empty()) {
      end.failure = agent_failed(
          "agent_nonsense", fmt::format("{} ended its turn without a reason.", setup_.spec.name));
    }
  }
  if (has_cost_) {
    // One that has begun to count anew tells less than before.
    const double before = cost_told_ < cost_counted_ ? 0 : cost_counted_;
    end.cost_usd = cost_told_ - before;
    cost_counted_ = cost_told_;
    has_cost_ = false;
  }
  operation.is_over = true;
  turn_ = 0;
  is_cancelled_ = false;
  AgentEvent event;
  event.json = std::move(message.json);
  event.end = std::move(end);
  news.events.push_back(std::move(event));
}

// The exit code says nothing about a turn that has had its end: a good one may come with
// any. Without that end the process tells why, and what it has left behind is not trusted
// with another turn.
void AcpxAgent::note_end(std::uint32_t number, Operation& operation) {
  if (operation.verb == Verb::control) {
    if (works_->is_closing) works_->quiet.cancel();
    return;  // ask() looks at it
  }
  if (operation.verb == Verb::cancel) {
    const bool has_worked = operation.answer && operation.answer->is_cancelled;
    operations_.erase(number);
    if (!has_worked && is_cancelled_ && turn_ != 0) begin_cancel();
    return;
  }
  if (!operation.is_over && number == turn_) {
    end_for(operation.fault ? failure_of(*operation.fault, setup_.spec, now(), setup_.secrets)
                            : failure_of_acpx(setup_.spec, *operation.status));
  }
  operations_.erase(number);
}

Task<void> AcpxAgent::await_end() {
  auto ending = child_->exit();
  works_->status = co_await std::move(ending);
  works_->ended.cancel();
  works_->farewell.cancel();
}

// The host's output has ended, or we have ended it.
Task<AgentFailure> AcpxAgent::cause_of_end() {
  Works& works = *works_;
  const auto is_known = [&] { return trouble_ || is_stopped_ || works.status; };
  if (!is_known()) {
    works.ended.expires_after(kAgentWindDownMax);
    co_await works.ended.async_wait(kAwait);
  }
  if (!is_known()) {
    child_->let_go();
    works.ended.expires_at(Timer::time_point::max());
    while (!is_known()) co_await works.ended.async_wait(kAwait);
  }
  if (trouble_) co_return *trouble_;
  co_return failure_of_end(setup_.spec, works.status);
}

Task<AgentNews> AcpxAgent::next() {
  struct Presence {
    Works& works;
    explicit Presence(Works& all) : works(all) { works.is_reading = true; }
    ~Presence() {
      works.is_reading = false;
      works.quiet.cancel();
    }
  };
  AgentNews news;
  if (works_->is_finishing) {  // which reads by itself
    if (!death_) death_ = failure_of_end(setup_.spec, std::nullopt);
    news.death = death_;
    co_return news;
  }
  const Presence presence(*works_);
  while (news.events.empty() && !news.is_resumed && !death_) {
    take_frames(news);
    if (!news.events.empty() || news.is_resumed) break;
    auto reading = read_more();
    const bool has_more = co_await std::move(reading);
    if (has_more) continue;
    auto finding = cause_of_end();
    death_ = co_await std::move(finding);
  }
  if (news.events.empty() && !news.is_resumed) news.death = death_;
  co_return news;
}

// What its owner asks for

void AcpxAgent::begin_turn(std::string prompt) {
  std::vector<std::string_view> texts;
  if (std::exchange(owes_system_, false)) texts.emplace_back(call_.conversation.system);
  texts.emplace_back(prompt);
  is_asked_ = false;
  is_cancelled_ = false;
  cancels_ = 0;
  turn_ = start(Verb::prompt, acpx_prompt(call_, config_, texts));
}

// acpx cancels what its queue owner is busy with, so the prompt must be there first.
void AcpxAgent::cancel() {
  if (turn_ == 0 || std::exchange(is_cancelled_, true)) return;
  if (is_asked_) begin_cancel();
}

void AcpxAgent::begin_cancel() {
  if (turn_ == 0 || ++cancels_ > kAcpxCancelsMax) return;
  start(Verb::cancel, acpx_cancel(call_));
}

void AcpxAgent::stop() {
  is_stopped_ = true;
  child_->let_go();
  if (!works_) return;
  works_->ended.cancel();
  works_->farewell.cancel();
}

Task<void> AcpxAgent::finish(bool is_for_good) {
  if (works_) works_->is_finishing = true;
  if (works_ && is_for_good && !record_id_.empty()) {
    auto closing = close_session();
    co_await std::move(closing);
  }
  // The host ends by itself then, and the launcher ends what it leaves.
  child_->close_input();
  if (works_ && !works_->status && !is_stopped_ && !trouble_) {
    works_->farewell.expires_after(kAgentWindDownMax);
    co_await works_->farewell.async_wait(kAwait);
  }
  is_stopped_ = true;
  child_->let_go();
  if (works_) {
    works_->is_opening = false;
    works_->deadline.cancel();
    works_->ended.cancel();
    auto joining = works_->tasks.join();
    co_await std::move(joining);
    while (works_->is_reading) co_await works_->quiet.async_wait(kAwait);
  }
  auto going = child_->gone();
  co_await std::move(going);
}

}  // namespace clawdforge
