#include "agent/acp_agent.h"

#include <fmt/format.h>

#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <utility>

#include "agent/acp_failure.h"
#include "agent/acp_works.h"
#include "agent/agent_process.h"
#include "base/tokens.h"

namespace clawdforge {
namespace {

constexpr std::size_t kReadBytes = 64 * 1024;
// After so many pieces others get their turn: a pipe that is always full would keep the
// thread for itself.
constexpr unsigned kPiecesAtOnce = 4;

AgentFailure agent_failed(std::string_view code, std::string sentence) {
  return {
      .kind = Errc::agent_failed, .code = code, .sentence = std::move(sentence), .retry_after = {}};
}

}  // namespace

AcpAgent::AcpAgent(std::unique_ptr<Child> child, Setup setup)
    : child_(std::move(child)), setup_(std::move(setup)) {}

AcpAgent::~AcpAgent() = default;

ProcessMark AcpAgent::mark() const { return mark_of(*child_, setup_.boot_id); }

std::string AcpAgent::error_tail() const {
  return shown_tail(child_->error_tail(), setup_.secrets);
}

// Writing

void AcpAgent::send(std::string line) {
  if (trouble_ || is_stopped_) return;
  Works& works = *works_;
  works.outbox.append(line).append("\n");
  if (works.outbox.size() + works.writing_bytes > kAgentOutboxBytesMax) {
    end_for(agent_failed("agent_not_reading",
                         fmt::format("{} does not read what it is sent.", setup_.spec.name)));
    return;
  }
  if (!std::exchange(works.is_writing, true)) works.tasks.spawn(write_out());
}

Task<void> AcpAgent::write_out() {
  Works& works = *works_;
  while (!works.outbox.empty()) {
    works.writing_bytes = works.outbox.size();
    auto writing = child_->write(std::exchange(works.outbox, {}));
    const auto written = co_await std::move(writing);
    works.writing_bytes = 0;
    // It may still have something to say: its output tells how it ended.
    if (!written) co_return;
  }
  works.is_writing = false;
}

void AcpAgent::end_for(AgentFailure trouble) {
  if (!trouble_) trouble_ = std::move(trouble);
  child_->let_go();
}

// Reading

// False: nothing comes any more.
Task<bool> AcpAgent::read_more() {
  if (++works_->pieces % kPiecesAtOnce == 0) {
    co_await boost::asio::post(co_await boost::asio::this_coro::executor, kAwait);
  }
  auto reading = child_->read(kReadBytes);
  auto piece = co_await std::move(reading);
  if (piece && !piece->empty()) {
    reader_.feed(std::move(*piece));
    co_return true;
  }
  reader_.finish();
  co_return false;
}

// None: more must be read.
std::optional<AcpMessage> AcpAgent::next_message() {
  while (const auto line = reader_.next()) {
    if (auto message = acp_message(*line)) return message;
    if (line->find_first_not_of(" \t\r") != std::string_view::npos) ++skipped_lines_;
  }
  if (reader_.is_too_long() && !trouble_) {
    end_for(agent_failed("agent_line_too_long",
                         fmt::format("{} sent a line of more than {} MiB.", setup_.spec.name,
                                     kAgentLineBytesMax / (1024 * 1024))));
  }
  return std::nullopt;
}

Task<void> AcpAgent::await_end() {
  auto ending = child_->exit();
  works_->status = co_await std::move(ending);
  works_->ended.cancel();
  works_->farewell.cancel();
}

// Its output has ended, or we have ended it. Only in the first case it matters how.
Task<AgentFailure> AcpAgent::cause_of_end() {
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

Task<AgentNews> AcpAgent::next() {
  // Whatever way it leaves, finish() may be waiting for that.
  struct Presence {
    Works& works;
    explicit Presence(Works& all) : works(all) { works.is_reading = true; }
    ~Presence() {
      works.is_reading = false;
      works.quiet.cancel();
    }
  };
  const Presence presence(*works_);

  AgentNews news;
  news.events = std::exchange(early_, {});
  news.is_early = !news.events.empty();
  while (news.events.empty() && !death_) {
    while (auto message = next_message()) take(std::move(*message), news.events);
    if (!news.events.empty()) break;
    auto reading = read_more();
    const bool has_more = co_await std::move(reading);
    if (has_more) continue;
    while (auto message = next_message()) take(std::move(*message), news.events);
    if (!news.events.empty()) break;
    auto finding = cause_of_end();
    death_ = co_await std::move(finding);
  }
  if (news.events.empty()) news.death = death_;
  news.skipped_lines = std::exchange(skipped_lines_, 0);
  co_return news;
}

// What a message means

void AcpAgent::take(AcpMessage message, std::vector<AgentEvent>& events) {
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
  event.json = std::move(message.json);
  event.text = std::move(message.text);
  event.question = std::move(message.question);
  events.push_back(std::move(event));
}

void AcpAgent::take_question(PermissionQuestion& question, const std::string& tool_call_id) {
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
  if (message.cost_usd) {
    cost_told_ = *message.cost_usd;
    has_cost_ = true;
  }
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
  TurnEnd end;
  if (message.error && is_cancelled_ && message.error->code == kAcpCancelled) {
    end.stop_reason = "cancelled";
  } else if (message.error) {
    end.failure = failure_of_error(*message.error);
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

void AcpAgent::stop() {
  is_stopped_ = true;
  child_->let_go();
  if (!works_) return;
  works_->ended.cancel();
  works_->farewell.cancel();
}

Task<void> AcpAgent::finish(bool /*is_for_good*/) {
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
