#include "agent/claude/claude_one_shot.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "agent/claude/claude_cli.h"
#include "agent/claude/cli_failure.h"
#include "agent/claude/cli_result.h"
#include "agent/failure/api_failure.h"

namespace clawdforge {
namespace {

constexpr std::size_t kOneShotReadBytes = 64 * 1024;

// Only the agent's user can read it, and it goes with the run's directory.
Result<std::string> write_system_file(const std::string& temp_dir, std::string_view system) {
  const std::string path = temp_dir + "/system-prompt.txt";
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  bool is_written = file >= 0;
  while (is_written && !system.empty()) {
    const ssize_t count = write(file, system.data(), system.size());
    is_written = count > 0 || (count < 0 && errno == EINTR);
    if (count > 0) system.remove_prefix(static_cast<std::size_t>(count));
  }
  const int error = errno;
  if (file >= 0 && close(file) != 0) is_written = false;
  if (is_written) return path;
  return fail(Errc::unavailable,
              error == ENOSPC || error == EDQUOT ? "disk_full" : "workspace_unavailable",
              "The system prompt could not be put on disk.", std::strerror(error));
}

}  // namespace

Result<std::vector<std::string>> claude_one_shot_arguments(const StartOrder& order,
                                                           const OneShotRequest& request) {
  std::string system_file;
  if (needs_file(request.system)) {
    auto written = write_system_file(order.temp_dir, request.system);
    if (!written) return std::unexpected(std::move(written.error()));
    system_file = std::move(*written);
  }
  return claude_arguments(request, order.spec.applies_owner_settings, system_file);
}

ClaudeOneShot::ClaudeOneShot(std::unique_ptr<Child> child, AgentSetup setup,
                             const OneShotRequest& request)
    : child_(std::move(child)),
      setup_(std::move(setup)),
      prompt_(prompt_text(request)),
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

// Until the result is there, the output has ended, or there is too much of it.
Task<void> ClaudeOneShot::read_result(ResultReader* reader, GaugeShare* held) {
  while (true) {
    const auto piece = co_await child_->read(kOneShotReadBytes);
    if (!piece || piece->empty()) break;
    const bool is_done = reader->feed(*piece);
    held->set(reader->held_bytes());
    if (is_done) co_return;
  }
  reader->finish();
}

Task<OneShotAnswer> ClaudeOneShot::answer() {
  is_begun_ = true;
  tasks_.spawn(send_prompt());
  tasks_.spawn(await_end());
  ResultReader reader;
  GaugeShare held(setup_.gauges.output_bytes);
  co_await read_result(&reader, &held);

  OneShotAnswer answer;
  if (const auto& result = reader.result()) {
    answer.text = result->is_error ? "" : result->text;
    answer.stop_reason = result->stop_reason;
    answer.usage = result->usage;
    answer.cost_usd = result->cost_usd;
    if (result->is_error) {
      answer.failure = failure_of(result->report(), setup_.now(), setup_.secrets);
      // A failure can wait for what the program still says on its standard error.
      co_await wait_for_end(kWindDownMax);
    }
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
  co_return failure_of(setup_.spec.name, SilentEnd{.status = status_.value_or(Unknown{}),
                                                   .has_output = reader->has_output(),
                                                   .is_too_large = reader->is_too_large(),
                                                   .error_tail = child_->error_tail()});
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
