#include "agent/claude/claude_one_shot.h"

#include <utility>

#include "agent/claude/claude_cli.h"
#include "agent/claude/cli_failure.h"
#include "agent/claude/cli_result.h"
#include "agent/failure/agent_failure.h"
#include "agent/failure/api_failure.h"

namespace clawdforge {
namespace {

constexpr std::size_t kOneShotReadBytes = 64 * 1024;
// What a line of stream-json has somewhere that answers our request, or that is a result.
constexpr std::string_view kGreeted = R"("control_response")";
constexpr std::string_view kResultMark = R"("result")";

}  // namespace

std::vector<std::string> claude_one_shot_arguments(const StartOrder& order,
                                                   const OneShotRequest& request) {
  return claude_arguments(request, order.spec.applies_owner_settings, order.is_spare);
}

ClaudeOneShot::ClaudeOneShot(std::unique_ptr<Child> child, AgentSetup setup,
                             const OneShotRequest& request)
    : child_(std::move(child)),
      setup_(std::move(setup)),
      prompt_(prompt_text(request)),
      held_(setup_.open_memory()),
      tasks_(child_->executor()) {}

void ClaudeOneShot::stop() {
  is_stopped_ = true;
  child_->let_go();
  ended_.notify_all();  // a caller that stops it does not wait for how it ends
}

Task<void> ClaudeOneShot::send_prompt() {
  // Not having read all of it is the program's own affair; its result tells what it made of
  // what it has read.
  (void)co_await child_->write(std::exchange(prompt_, {}));
  child_->close_input();
}

Task<void> ClaudeOneShot::await_end() {
  status_ = co_await child_->exit();
  ended_.notify_all();
}

Task<void> ClaudeOneShot::wait_for_end(std::chrono::milliseconds most) {
  if (status_ || is_stopped_) co_return;
  co_await ended_.wait_for(most);
}

// The first step of the protocol is most of what a program needs to begin.
Task<std::optional<Failure>> ClaudeOneShot::warm_up() {
  is_begun_ = true;
  tasks_.spawn(await_end());
  tasks_.spawn(watch_warm_up());
  (void)co_await child_->write(spare_greeting());
  while (!is_warm_) {
    auto piece = co_await child_->read(kOneShotReadBytes);
    if (!piece || piece->empty()) break;
    lines_.feed(std::move(*piece));
    while (const auto line = lines_.next()) is_warm_ = is_warm_ || line->contains(kGreeted);
    if (lines_.is_too_long()) break;
  }
  ended_.notify_all();  // the watch is over
  if (is_warm_) co_return std::nullopt;
  co_await wait_for_end(kWindDownMax);
  co_return agent_failed("agent_exited", setup_.spec.name + " did not get ready for a prompt.");
}

Task<void> ClaudeOneShot::watch_warm_up() {
  const auto end = Timer::clock_type::now() + setup_.start_max;
  while (!is_warm_ && !status_ && !is_stopped_ && Timer::clock_type::now() < end) {
    co_await ended_.wait_until(end);
  }
  if (!is_warm_) child_->let_go();
}

void ClaudeOneShot::adopt(AppName app, OneShotRequest request) {
  setup_.adopt(std::move(app));
  reads_on_ = setup_.permission_mode == PermissionMode::approve_all;
  held_ = setup_.open_memory();
  prompt_ = spare_prompt(prompt_text(request));
}

// A command in the background can wake the model up once more: the print mode waits for that and
// prints the last result. Until then, or until the first where no command can be left.
Task<void> ClaudeOneShot::read_lines(ResultReader* reader, GaugeShare* held) {
  while (true) {
    while (const auto line = lines_.next()) {
      if (!line->contains(kResultMark)) continue;
      ResultReader one;
      one.feed(*line);
      co_await feed(&one, "\n");  // a large one is read by the compute worker
      if (no_memory_) co_return;
      if (!one.result()) continue;
      *reader = std::move(one);
      if (!reads_on_) co_return;
    }
    held->set(lines_.held_bytes());
    if (lines_.is_too_long() || !count_held(lines_.held_bytes())) {
      child_->let_go();
      co_return;
    }
    auto piece = co_await child_->read(kOneShotReadBytes);
    if (!piece || piece->empty()) co_return;
    lines_.feed(std::move(*piece));
  }
}

// False: there is no memory for so much.
bool ClaudeOneShot::count_held(std::size_t bytes) {
  const auto counted = refused_by(held_.resize(bytes > kUncountedOutputBytesMax ? bytes : 0));
  if (!counted) no_memory_ = counted.error();
  return counted.has_value();
}

// Until the result is there, the output has ended, or there is too much of it.
Task<void> ClaudeOneShot::read_result(ResultReader* reader, GaugeShare* held) {
  if (is_warm_) {
    co_await read_lines(reader, held);
    co_return;
  }
  while (true) {
    auto piece = co_await child_->read(kOneShotReadBytes);
    if (!piece || piece->empty()) break;
    const bool is_done = co_await feed(reader, std::move(*piece));
    held->set(reader->held_bytes());
    if (is_done) co_return;
    if (!count_held(reader->held_bytes())) {
      child_->let_go();
      co_return;
    }
  }
  co_await feed(reader, std::nullopt);
}

// What may be the end of a large result is read by the compute worker; without a piece the output
// has ended.
Task<bool> ClaudeOneShot::feed(ResultReader* reader, std::optional<std::string> piece) {
  const auto read = [](ResultReader& to, const std::optional<std::string>& output) {
    if (output) return to.feed(*output);
    to.finish();
    return true;
  };
  const bool may_be_read = !piece || piece->contains('\n');
  if (setup_.compute == nullptr || !may_be_read || reader->held_bytes() < kComputeBytesMin) {
    co_return read(*reader, piece);
  }
  // The length of the text decides which thread reads it: the reader has it.
  using Read = std::pair<ResultReader, bool>;
  auto done = co_await setup_.compute->call(
      Lane(setup_.app),
      [read, own = std::move(*reader), piece = std::move(piece)]() mutable -> Result<Read> {
        const bool is_done = read(own, piece);
        return Read(std::move(own), is_done);
      });
  if (!done) {
    no_memory_ = std::move(done.error());
    child_->let_go();
    co_return true;
  }
  *reader = std::move(done->first);
  co_return done->second;
}

Task<OneShotAnswer> ClaudeOneShot::answer() {
  if (!std::exchange(is_begun_, true)) tasks_.spawn(await_end());
  tasks_.spawn(send_prompt());
  ResultReader reader;
  GaugeShare held(setup_.gauges.output_bytes);
  co_await read_result(&reader, &held);

  OneShotAnswer answer;
  if (const auto& result = reader.result()) {
    answer.text = result->is_error ? "" : result->text;
    answer.structured = result->structured;
    answer.stop_reason = result->stop_reason;
    answer.usage = result->usage;
    answer.cost_usd = result->cost_usd;
    answer.denials = result->denials;
    if (result->is_error) {
      answer.failure =
          with_login_hint(failure_of(result->report(), setup_.now(), setup_.secrets), setup_.spec);
      // A failure can wait for what the program still says on its standard error.
      co_await wait_for_end(kWindDownMax);
    }
  } else if (no_memory_) {
    answer.failure = no_memory_;
    co_await wait_for_end(kWindDownMax);
  } else {
    answer.failure = co_await fail_without_result(&reader);
  }
  note_end(answer);
  co_return answer;
}

Task<Failure> ClaudeOneShot::fail_without_result(const ResultReader* reader) {
  if (!reader->is_too_large()) {
    co_await wait_for_end(kSpeechlessMax);
  }
  if (!status_ && !is_stopped_) {
    child_->let_go();
    while (!status_ && !is_stopped_) co_await ended_.wait();
  }
  Failure why = failure_of(setup_.spec, SilentEnd{.status = status_.value_or(Unknown{}),
                                                  .has_output = reader->has_output(),
                                                  .is_too_large = reader->is_too_large(),
                                                  .error_tail = child_->error_tail()});
  if (!is_stopped_) setup_.report_end(why, setup_.shown_tail(child_->error_tail()));
  co_return why;
}

void ClaudeOneShot::note_end(OneShotAnswer& answer) const {
  answer.error_tail = setup_.shown_tail(child_->error_tail());
  if (!status_) return;
  if (const auto* exited = std::get_if<Exited>(&*status_)) answer.exit_code = exited->code;
  if (const auto* killed = std::get_if<Signaled>(&*status_)) answer.exit_signal = killed->number;
}

Task<void> ClaudeOneShot::finish() {
  if (is_begun_) {
    co_await wait_for_end(kWindDownMax);
  }
  child_->let_go();
  co_await tasks_.join();
  co_await child_->gone();
}

}  // namespace clawdforge
