#include "agent/acp/acp_agent.h"

#include <fmt/format.h>

#include <utility>

#include "agent/failure/agent_failure.h"
#include "base/async/async_tokens.h"
#include "base/free_memory.h"

namespace clawdforge {

AcpAgent::AcpAgent(std::unique_ptr<Child> child, AgentSetup setup)
    : setup_(std::move(setup)),
      pipe_(std::move(child), setup_),
      early_shown_(setup_.gauges.early_bytes) {}

void AcpAgent::send(std::string line) { pipe_.send(line.append("\n")); }

// Reading

// False: nothing comes any more.
Task<bool> AcpAgent::read_more() {
  co_await pipe_.count_held(reader_.held_bytes());
  auto piece = co_await pipe_.read();
  if (!piece) {
    reader_.finish();
    co_return false;
  }
  reader_.feed(std::move(*piece));
  co_return true;
}

// None: more must be read, or read_large_line() called.
std::optional<AcpMessage> AcpAgent::next_message() {
  if (auto message = std::exchange(large_message_, std::nullopt)) return message;
  while (large_line_.empty() && !is_nonsense_) {
    const auto line = reader_.next();
    if (!line) break;
    if (line->size() >= kComputeBytesMin && setup_.compute != nullptr) {
      large_line_ = reader_.extract(*line);
      return std::nullopt;
    }
    const bool is_blank = line->find_first_not_of(" \t\r") == std::string_view::npos;
    if (auto message = checked(acp_message(std::string(*line)), is_blank)) return message;
  }
  if (reader_.is_too_long() && !pipe_.has_trouble()) {
    pipe_.end_for(agent_failed("agent_line_too_long",
                               fmt::format("{} sent a line of more than {} MiB.", setup_.spec.name,
                                           kAgentLineBytesMax / (1024 * 1024))));
  }
  return std::nullopt;
}

// The message, if it is one that may be used; what is none is counted.
std::optional<AcpMessage> AcpAgent::checked(std::optional<AcpMessage> message, bool is_blank) {
  if (message && check_id(*message)) return message;
  if (!message && !is_blank) ++skipped_lines_;
  return std::nullopt;
}

// Nothing else of the agent is read meanwhile, so messages stay in order.
Task<bool> AcpAgent::read_large_line() {
  if (large_line_.empty()) co_return false;
  const std::size_t bytes = large_line_.size();
  co_await pipe_.count_held(reader_.held_bytes() + bytes);
  if (pipe_.has_trouble()) {
    free_memory(large_line_);
    co_return true;
  }
  using Read = std::optional<AcpMessage>;
  auto read = co_await setup_.compute->run(
      Lane(setup_.app), std::exchange(large_line_, {}),
      [](std::string& line) -> Result<Read> { return acp_message(std::move(line)); });
  if (!read) {
    if (!pipe_.has_trouble()) pipe_.end_for(std::move(read.error()));
    co_return true;
  }
  large_message_ = checked(std::move(*read), false);
  if (large_message_) large_memory_ = pipe_.hand_over(bytes);
  co_return true;
}

bool AcpAgent::check_id(const AcpMessage& message) {
  if (message.kind != AcpKind::request || message.id.size() <= kAgentIdBytesMax) return true;
  is_nonsense_ = true;
  pipe_.end_for(agent_failed("agent_nonsense",
                             fmt::format("{} asked a question with an id of more than {} bytes.",
                                         setup_.spec.name, kAgentIdBytesMax)));
  return false;
}

Task<AgentNews> AcpAgent::next() {
  const AgentPipe::Presence presence(pipe_);
  AgentNews news;
  news.events = std::exchange(early_, {});
  early_shown_.set(0);
  news.is_early = !news.events.empty();
  while (news.events.empty() && !death_) {
    while (auto message = next_message()) take(std::move(*message), news.events);
    if (!news.events.empty()) break;
    if (co_await read_large_line()) continue;
    if (co_await read_more()) continue;
    while (auto message = next_message()) take(std::move(*message), news.events);
    if (!news.events.empty() || !large_line_.empty()) continue;
    death_ = co_await pipe_.cause_of_end();
  }
  if (news.events.empty()) news.death = death_;
  news.skipped_lines = std::exchange(skipped_lines_, 0);
  co_return news;
}

// What a message means

void AcpAgent::take(AcpMessage message, std::vector<AgentEvent>& events) {
  ByteHold memory = std::exchange(large_memory_, {});
  AgentEvent event;
  if (message.kind == AcpKind::response) {
    const bool is_end = prompt_id_ && message.id == fmt::to_string(*prompt_id_);
    if (!is_end) {
      ++skipped_lines_;  // an answer to nothing that was asked
      return;
    }
    event.end = end_turn(message);
  } else if (message.kind == AcpKind::request && !message.question) {
    send(unknown_method_answer(message.id));
    return;
  } else {
    note_update(message);
    if (message.question) take_question(*message.question, message.tool_call_id);
  }
  event.memory = std::move(memory);
  event.json = std::move(message.json);
  event.text = std::move(message.text);
  event.is_of_tool = !message.tool_call_id.empty();
  event.question = std::move(message.question);
  event.context = message.context;
  events.push_back(std::move(event));
}

void AcpAgent::take_question(PermissionRequest& question, const std::string& tool_call_id) {
  const auto known = tool_kinds_.find(tool_call_id);
  if (question.kind.empty() && known != tool_kinds_.end()) question.kind = known->second;
  if (is_cancelled_ || questions_.size() >= kAgentQuestionsMax) {
    send(permission_answer(question.ask_id, std::nullopt));
    question.is_answered = true;
  } else {
    questions_.insert(question.ask_id);
  }
}

void AcpAgent::note_update(const AcpMessage& message) {
  cost_.note(message);
  if (message.tool_kind.empty() || message.tool_call_id.empty() ||
      message.tool_call_id.size() > kAgentToolIdBytesMax) {
    return;
  }
  if (tool_kinds_.size() >= kAgentToolKindsMax && !tool_kinds_.contains(message.tool_call_id)) {
    tool_kinds_.clear();
  }
  tool_kinds_[message.tool_call_id] = message.tool_kind;
}

TurnEnd AcpAgent::end_turn(const AcpMessage& message) {
  TurnEnd end = turn_end_of(message, is_cancelled_, setup_);
  end.cost_usd = cost_.take();
  prompt_id_.reset();
  is_cancelled_ = false;
  cancel_questions();
  return end;
}

// What its owner asks for

void AcpAgent::begin_turn(std::string prompt) {
  std::vector<std::string_view> texts;
  if (std::exchange(owes_system_, false)) texts.emplace_back(conversation_.system);
  texts.emplace_back(prompt);
  prompt_id_ = ++last_id_;
  is_cancelled_ = false;
  send(acp_request(*prompt_id_, "session/prompt",
                   prompt_params(conversation_.agent_session_id, texts)));
}

void AcpAgent::cancel() {
  if (!prompt_id_ || std::exchange(is_cancelled_, true)) return;
  send(acp_notification("session/cancel", cancel_params(conversation_.agent_session_id)));
  cancel_questions();
}

void AcpAgent::cancel_questions() {
  for (const std::string& ask_id : std::exchange(questions_, {})) {
    send(permission_answer(ask_id, std::nullopt));
  }
}

void AcpAgent::answer(std::string ask_id, std::optional<std::string> option_id) {
  if (questions_.erase(ask_id) == 0) return;
  send(permission_answer(ask_id, option_id));
}

Task<void> AcpAgent::finish(bool /*is_for_good*/) { co_await pipe_.wind_down(); }

}  // namespace clawdforge
