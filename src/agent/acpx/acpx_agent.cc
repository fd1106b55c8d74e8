#include "agent/acpx/acpx_agent.h"

#include <fmt/format.h>

#include <utility>

#include "agent/acpx/acpx_failure.h"
#include "agent/failure/agent_failure.h"
#include "base/async/async_tokens.h"

namespace clawdforge {

AcpxAgent::AcpxAgent(std::unique_ptr<Child> host, AgentSetup setup, std::string program)
    : setup_(std::move(setup)), program_(std::move(program)), pipe_(std::move(host), setup_) {}

std::uint32_t AcpxAgent::start(Verb verb, HostOrder order) {
  const std::uint32_t number = ++last_operation_;
  operations_[number].verb = verb;
  pipe_.send(host_frame(HostFrameKind::start, number, encode_order(order)));
  return number;
}

// Reading

std::size_t AcpxAgent::held_bytes() const {
  std::size_t held = frames_.held_bytes();
  for (const auto& [number, operation] : operations_) held += operation.lines.held_bytes();
  return held;
}

// False: nothing comes any more.
Task<bool> AcpxAgent::read_more() {
  co_await pipe_.count_held(held_bytes());
  const auto piece = co_await pipe_.read();
  if (piece) frames_.feed(*piece);
  co_return piece.has_value();
}

void AcpxAgent::take_frames(AgentNews& news) {
  while (!large_) {
    auto frame = frames_.next();
    if (!frame) break;
    const auto found = operations_.find(frame->operation);
    if (found == operations_.end()) continue;
    Operation& operation = found->second;
    if (frame->kind == HostFrameKind::output) {
      operation.lines.feed(std::move(frame->bytes));
      take_lines(frame->operation, operation, news);
    } else if (frame->kind == HostFrameKind::ended) {
      operation.lines.finish();
      take_lines(frame->operation, operation, news);
      if (large_) {
        large_->end = std::move(frame->bytes);
      } else {
        take_end(frame->operation, operation, frame->bytes);
      }
    }
  }
  if (frames_.is_broken()) {
    pipe_.end_for(agent_failed(
        "agent_nonsense", fmt::format("What runs {} cannot be understood.", setup_.spec.name)));
  }
}

void AcpxAgent::take_lines(std::uint32_t number, Operation& operation, AgentNews& news) {
  while (const auto line = is_nonsense_ ? std::nullopt : operation.lines.next()) {
    const bool is_large = line->size() >= kComputeBytesMin && setup_.compute != nullptr;
    if (is_large && operation.verb == Verb::prompt) {
      large_ = LargeLine{.number = number, .line = operation.lines.extract(*line), .end = {}};
      return;
    }
    if (operation.verb == Verb::prompt) {
      const bool is_blank = line->find_first_not_of(" \t\r") == line->npos;
      auto heard = operation.traffic.take(*line);
      if (!is_blank) take_traffic(number, operation, std::move(heard), news);
    } else if (is_large) {
      continue;  // not an answer of acpx
    } else if (auto answer = acpx_answer(*line)) {
      operation.answer = std::move(answer);
    }
  }
  if (operation.lines.is_too_long()) {
    pipe_.end_for(agent_failed("agent_line_too_long",
                               fmt::format("{} sent a line of more than {} MiB.", setup_.spec.name,
                                           kAgentLineBytesMax / (1024 * 1024))));
  }
}

void AcpxAgent::take_end(std::uint32_t number, Operation& operation, std::string_view end) {
  operation.status = decode_end(end);
  note_end(number, operation);
}

// Nothing else is taken meanwhile, so messages stay in order.
Task<bool> AcpxAgent::take_large_line(AgentNews* news) {
  auto taken = std::exchange(large_, std::nullopt);
  if (!taken) co_return false;
  LargeLine large = std::move(*taken);
  const auto found = operations_.find(large.number);
  if (found == operations_.end()) co_return true;
  Operation& operation = found->second;
  const std::size_t bytes = large.line.size();
  co_await pipe_.count_held(held_bytes() + bytes);
  if (pipe_.has_trouble()) co_return true;
  using Read = std::pair<AcpxTraffic, AcpxTraffic::Heard>;
  auto read = co_await setup_.compute->run(
      Lane(setup_.app), std::move(large.line),
      [traffic = std::move(operation.traffic)](std::string& line) mutable -> Result<Read> {
        auto heard = traffic.take(line);
        return Read(std::move(traffic), std::move(heard));
      });
  if (!read) {
    if (!pipe_.has_trouble()) pipe_.end_for(std::move(read.error()));
    co_return true;
  }
  operation.traffic = std::move(read->first);
  const std::size_t events = news->events.size();
  take_traffic(large.number, operation, std::move(read->second), *news);
  if (news->events.size() > events) news->events.back().memory = pipe_.hand_over(bytes);
  take_lines(large.number, operation, *news);
  if (large_) {
    large_->end = std::move(large.end);
  } else if (large.end) {
    take_end(large.number, operation, *large.end);
  }
  co_return true;
}

void AcpxAgent::take_traffic(std::uint32_t number, Operation& operation, AcpxTraffic::Heard heard,
                             AgentNews& news) {
  using Kind = AcpxTraffic::Kind;
  switch (heard.kind) {
    case Kind::nothing:
      break;
    case Kind::no_object:
      ++news.skipped_lines;
      break;
    case Kind::bad_id:
      is_nonsense_ = true;
      pipe_.end_for(
          agent_failed("agent_nonsense", fmt::format("{} asked with an id of more than {} bytes.",
                                                     setup_.spec.name, kAgentIdBytesMax)));
      break;
    case Kind::fault:
      operation.fault = std::move(heard.fault);
      break;
    case Kind::opening:
      if (const auto& result = heard.message.result) setup_.note_version(result->agent_version);
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
  cost_.note(message);
  AgentEvent event;
  event.json = std::move(message.json);
  event.text = std::move(message.text);
  event.is_of_tool = !message.tool_call_id.empty();
  event.question = std::move(message.question);
  event.context = message.context;
  event.is_late = is_late;
  news.events.push_back(std::move(event));
}

void AcpxAgent::end_turn(Operation& operation, AcpMessage message, AgentNews& news) {
  for (AcpMessage& question : operation.traffic.take_questions()) {
    note_event(std::move(question), false, news);
  }
  TurnEnd end = turn_end_of(message, is_cancelled_, setup_);
  end.cost_usd = cost_.take();
  operation.is_over = true;
  turn_ = 0;
  is_cancelled_ = false;
  AgentEvent event;
  event.json = std::move(message.json);
  event.end = std::move(end);
  news.events.push_back(std::move(event));
}

// The exit code says nothing about a turn that has had its end: a good one may come with
// any. Without that end the process tells why, and what it has left is not trusted
// with another turn.
void AcpxAgent::note_end(std::uint32_t number, Operation& operation) {
  if (operation.verb == Verb::control) {
    pipe_.nudge();  // close_session() may wait
    return;         // ask() looks at it
  }
  if (operation.verb == Verb::cancel) {
    const bool has_worked = operation.answer && operation.answer->is_cancelled;
    operations_.erase(number);
    if (!has_worked && is_cancelled_ && turn_ != 0) begin_cancel();
    return;
  }
  if (!operation.is_over && number == turn_) {
    pipe_.end_for(operation.fault
                      ? failure_of(*operation.fault, setup_.spec, setup_.now(), setup_.secrets)
                      : failure_of_acpx(setup_.spec, *operation.status, pipe_.error_tail()));
  }
  operations_.erase(number);
}

Task<AgentNews> AcpxAgent::next() {
  AgentNews news;
  if (is_finishing_) {  // which reads by itself
    if (!death_) death_ = failure_of_end(setup_.spec, std::nullopt, {});
    news.death = death_;
    co_return news;
  }
  const AgentPipe::Presence presence(pipe_);
  while (news.events.empty() && !news.is_resumed && !death_) {
    take_frames(news);
    if (!news.events.empty() || news.is_resumed) break;
    if (co_await take_large_line(&news)) continue;
    const bool has_more = co_await read_more();
    if (has_more) continue;
    death_ = co_await pipe_.cause_of_end();
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

Task<void> AcpxAgent::finish(bool is_for_good) {
  is_finishing_ = true;
  if (is_for_good && !record_id_.empty()) {
    co_await close_session();
  }
  // The host ends by itself then, and the launcher ends what it leaves.
  co_await pipe_.wind_down();
}

}  // namespace clawdforge
