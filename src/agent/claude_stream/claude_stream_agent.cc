#include "agent/claude_stream/claude_stream_agent.h"

#include <fmt/format.h>

#include <utility>

#include "agent/claude_stream/stream_cli.h"
#include "agent/failure/agent_failure.h"
#include "agent/failure/masking.h"
#include "base/free_memory.h"
#include "json/json_members.h"

namespace clawdforge {
namespace {

constexpr std::string_view kDenied = "The tool was not allowed.";
constexpr std::string_view kStopTurnEnd = "end_turn";
constexpr int kInternalError = -32603;
constexpr int kNotLoggedIn = -32000;

// In the words of the Agent Client Protocol.
std::string_view stop_reason_of(const CliResult& result) {
  const std::string_view told = result.stop_reason ? *result.stop_reason : std::string_view();
  if (told == "max_tokens" || told == "refusal") return told;
  return kStopTurnEnd;
}

void append_tokens(std::string& out, const Usage& usage) {
  append_name(out, "usage");
  out += '{';
  append_member(out, "inputTokens", usage.input_tokens);
  append_member(out, "outputTokens", usage.output_tokens);
  append_member(out, "cachedReadTokens", usage.cache_read_tokens);
  append_member(out, "cachedWriteTokens", usage.cache_write_tokens);
  append_member(out, "totalTokens",
                usage.input_tokens + usage.output_tokens + usage.cache_read_tokens +
                    usage.cache_write_tokens);
  out += '}';
}

}  // namespace

ClaudeStreamAgent::ClaudeStreamAgent(std::unique_ptr<Child> child, AgentSetup setup)
    : setup_(std::move(setup)),
      pipe_(std::move(child), setup_),
      translator_(setup_.conversation_id, setup_.working_dir) {}

// Reading

// None: read_more() is to be called.
std::optional<ClaudeReading> ClaudeStreamAgent::next_reading() {
  if (auto reading = std::exchange(large_reading_, std::nullopt)) return reading;
  while (large_line_.empty() && !pipe_.has_trouble()) {
    const auto line = reader_.next();
    if (!line) break;
    if (line->size() >= kComputeBytesMin && setup_.compute != nullptr) {
      large_line_ = reader_.extract(*line);
      break;
    }
    if (auto reading = translator_.read(*line)) return reading;
    note_skipped(*line);
  }
  if (reader_.is_too_long() && !pipe_.has_trouble()) {
    pipe_.end_for(agent_failed("agent_line_too_long",
                               fmt::format("{} sent a line of more than {} MiB.", setup_.spec.name,
                                           kAgentLineBytesMax / (1024 * 1024))));
  }
  return std::nullopt;
}

void ClaudeStreamAgent::note_skipped(std::string_view line) {
  if (line.find_first_not_of(" \t\r") != std::string_view::npos) ++skipped_lines_;
}

// False: nothing comes any more.
Task<bool> ClaudeStreamAgent::read_more() {
  if (!large_line_.empty()) {
    co_await read_large_line();
    co_return true;
  }
  if (has_ended_) co_return false;
  co_await pipe_.count_held(reader_.held_bytes());
  auto piece = co_await pipe_.read();
  if (piece) {
    reader_.feed(std::move(*piece));
  } else {
    reader_.finish();
    has_ended_ = true;
  }
  co_return true;
}

// The translator goes with the line. Nothing else of the agent is read meanwhile, so it is missed
// by none, and what is said stays in order.
Task<void> ClaudeStreamAgent::read_large_line() {
  const std::size_t bytes = large_line_.size();
  co_await pipe_.count_held(reader_.held_bytes() + bytes);
  if (pipe_.has_trouble()) {
    free_memory(large_line_);
    co_return;
  }
  using Read = std::pair<ClaudeTranslator, std::optional<ClaudeReading>>;
  auto read = co_await setup_.compute->call(
      Lane(setup_.app),
      [translator = translator_, line = std::exchange(large_line_, {})]() mutable -> Result<Read> {
        auto reading = translator.read(line);
        return Read(std::move(translator), std::move(reading));
      });
  if (!read) {
    if (!pipe_.has_trouble()) pipe_.end_for(std::move(read.error()));
    co_return;
  }
  translator_ = std::move(read->first);
  large_reading_ = std::move(read->second);
  if (large_reading_) {
    large_memory_ = pipe_.hand_over(bytes);
  } else {
    ++skipped_lines_;
  }
}

Task<AgentNews> ClaudeStreamAgent::next() {
  const AgentPipe::Presence presence(pipe_);
  AgentNews news;
  news.events = std::exchange(early_, {});
  news.is_early = !news.events.empty();
  while (news.events.empty() && !death_) {
    while (auto reading = next_reading()) take(std::move(*reading), news.events);
    if (!news.events.empty() || co_await read_more()) continue;
    death_ = co_await pipe_.cause_of_end();
  }
  if (news.events.empty()) news.death = death_;
  news.skipped_lines = std::exchange(skipped_lines_, 0);
  co_return news;
}

// What a line means

void ClaudeStreamAgent::take(ClaudeReading reading, std::vector<AgentEvent>& events) {
  ByteHold memory = std::exchange(large_memory_, {});
  for (ClaudeSaid& said : reading.said) {
    AgentEvent event;
    event.json = std::move(said.json);
    event.text = std::move(said.text);
    event.is_of_tool = said.is_of_tool;
    event.memory = std::exchange(memory, {});
    events.push_back(std::move(event));
  }
  if (!reading.withdrawn.empty()) {
    std::erase_if(questions_,
                  [&](const auto& entry) { return entry.second.request_id == reading.withdrawn; });
  }
  if (!reading.unknown_request.empty()) send(unknown_request_answer(reading.unknown_request));
  if (reading.question) take_question(std::move(*reading.question), events);
  if (reading.end) take_end(*reading.end, events);
}

void ClaudeStreamAgent::take_question(ClaudeQuestion question, std::vector<AgentEvent>& events) {
  if (question.request_id.size() > kClaudeIdBytesMax) {
    pipe_.end_for(agent_failed("agent_nonsense",
                               fmt::format("{} asked a question with an id of more than {} bytes.",
                                           setup_.spec.name, kClaudeIdBytesMax)));
    return;
  }
  AgentEvent event;
  event.json = std::move(question.json);
  event.question = question.asked;
  // Between turns there is no caller who could be asked.
  if (turn_id_ == 0 || is_cancelled_ || questions_.size() >= kClaudeQuestionsMax) {
    send(deny_answer(question.request_id, kDenied));
    event.question->is_answered = true;
  } else {
    std::string always;
    for (const PermissionOption& option : question.asked.options) {
      if (option.kind == "allow_always") always = option.option_id;
    }
    questions_[question.asked.ask_id] = {.request_id = std::move(question.request_id),
                                         .input = std::move(question.input),
                                         .updates = std::move(question.updates),
                                         .always = std::move(always)};
  }
  events.push_back(std::move(event));
}

// What the agent does by itself, such as to read what became of a command in the background, has
// results too. They end no turn; what they cost is counted to the next turn that ends.
void ClaudeStreamAgent::take_end(const ClaudeEnd& end, std::vector<AgentEvent>& events) {
  count_cost(end);
  if (turn_id_ == 0 || !end.is_of_prompt) {
    if (turn_id_ == 0) early_error_ = end.result.is_error ? end.result.text : std::string();
    return;
  }
  TurnEnd turn = turn_end_of(end);
  if (!turn.failure) {
    AgentEvent usage;
    usage.json = translator_.usage_json(end, cost_usd_);
    usage.context =
        ContextUse{.used = end.context_used, .size = std::max(end.context_size, end.context_used)};
    events.push_back(std::move(usage));
  }
  AgentEvent event;
  event.json = closing_json(end, turn);
  event.end = std::move(turn);
  events.push_back(std::move(event));
  for (const auto& [ask_id, open] : std::exchange(questions_, {})) {
    send(deny_answer(open.request_id, kDenied));
  }
  turn_id_ = 0;
  is_cancelled_ = false;
}

void ClaudeStreamAgent::count_cost(const ClaudeEnd& end) {
  const double told = end.result.cost_usd.value_or(told_usd_);
  // A process that has loaded a conversation may count from zero again.
  double more = told < told_usd_ ? told : told - told_usd_;
  told_usd_ = told;
  if (end.cost_since_last) more = *end.cost_since_last;
  uncounted_usd_ += more;
  cost_usd_ += more;
}

TurnEnd ClaudeStreamAgent::turn_end_of(const ClaudeEnd& end) {
  TurnEnd turn;
  turn.usage = end.result.usage;
  turn.cost_usd = std::exchange(uncounted_usd_, 0);
  turn.denials = end.result.denials;
  if (!end.result.is_error) {
    turn.result = end.result.text;
    turn.structured = end.result.structured;
  }
  if (is_cancelled_ && end.result.is_error) {
    turn.stop_reason = kStopCancelled;
  } else if (end.result.subtype == "error_max_turns") {
    turn.stop_reason = "max_turn_requests";
  } else if (end.result.is_error) {
    turn.failure =
        with_login_hint(failure_of(end.result.report(), setup_.now(), setup_.secrets), setup_.spec);
  } else {
    turn.stop_reason = stop_reason_of(end.result);
  }
  return turn;
}

// The answer to the prompt, as an agent of the protocol would give it.
std::string ClaudeStreamAgent::closing_json(const ClaudeEnd& end, const TurnEnd& turn) const {
  std::string out = R"({"jsonrpc":"2.0")";
  append_member(out, "id", turn_id_);
  if (turn.failure) {
    append_name(out, "error");
    out += '{';
    append_member(out, "code", turn.failure->cause == Cause::login ? kNotLoggedIn : kInternalError);
    append_member(out, "message", turn.failure->message);
    append_name(out, "data");
    return out.append(end.meta).append("}}");
  }
  append_name(out, "result");
  out += '{';
  append_member(out, "stopReason", turn.stop_reason);
  if (turn.usage) append_tokens(out, *turn.usage);
  append_name(out, "_meta");
  return out.append(end.meta).append("}}");
}

// What its owner asks for

void ClaudeStreamAgent::begin_turn(std::string prompt) {
  turn_id_ = ++last_id_;
  is_cancelled_ = false;
  send(user_message(prompt));
}

// Claude withdraws its open questions by itself.
void ClaudeStreamAgent::cancel() {
  if (turn_id_ == 0 || std::exchange(is_cancelled_, true)) return;
  questions_.clear();
  send(control_request(fmt::to_string(++last_id_), R"({"subtype":"interrupt"})"));
}

void ClaudeStreamAgent::answer(std::string ask_id, std::optional<std::string> option_id) {
  const auto found = questions_.find(ask_id);
  if (found == questions_.end()) return;
  const OpenAsk open = std::move(found->second);
  questions_.erase(found);
  const bool is_always = option_id && !open.always.empty() && *option_id == open.always;
  const bool is_allowed = is_always || (option_id && *option_id == kAllowOnce);
  send(is_allowed ? allow_answer(open.request_id, open.input, is_always ? open.updates : "")
                  : deny_answer(open.request_id, kDenied));
}

Task<void> ClaudeStreamAgent::finish(bool /*is_for_good*/) { co_await pipe_.wind_down(); }

}  // namespace clawdforge
