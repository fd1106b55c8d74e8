#include "agent/core/one_shot.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/this_coro.hpp>
#include <cerrno>
#include <cstring>

#include "agent/claude/claude_cli.h"
#include "agent/claude/cli_failure.h"
#include "agent/claude/cli_result.h"
#include "agent/core/agent_process.h"
#include "base/signal.h"
#include "base/task_group.h"
#include "process/tree/proc_entry.h"

namespace clawdforge {
namespace {

constexpr std::size_t kOneShotReadBytes = 64 * 1024;

}  // namespace

// The prompt is written, and the program's end awaited, while its output is read: a
// program may print before it has read, and need not read at all.
struct OneShot::Works {
  explicit Works(IoExecutor executor) : tasks(executor) {}

  Signal ended;  // the program has ended, or is being stopped
  std::optional<ExitStatus> status;
  TaskGroup tasks;
};

OneShot::OneShot(std::unique_ptr<Child> child, Setup setup)
    : child_(std::move(child)), setup_(std::move(setup)) {}

OneShot::~OneShot() = default;

ProcessMark OneShot::mark() const { return mark_of(*child_, setup_.boot_id); }

void OneShot::stop() {
  is_stopped_ = true;
  child_->let_go();
  if (works_) works_->ended.notify_all();  // whoever stops it does not wait for how it ends
}

Task<void> OneShot::send_prompt() {
  auto writing = child_->write(std::move(setup_.prompt));
  // Not having read all of it is the program's own affair; its result tells what it made
  // of what it has read.
  (void)co_await std::move(writing);
  child_->close_input();
}

Task<void> OneShot::await_end() {
  works_->status = co_await child_->exit();
  works_->ended.notify_all();
}

Task<void> OneShot::wait_for_end(std::chrono::milliseconds most) {
  if (works_->status || is_stopped_) co_return;
  co_await works_->ended.wait_for(most);
}

// Until the result is there, the output has ended, or there is too much of it.
Task<void> OneShot::read_result(ResultReader* reader, GaugeShare* held) {
  while (true) {
    const auto piece = co_await child_->read(kOneShotReadBytes);
    if (!piece || piece->empty()) break;
    const bool is_done = reader->feed(*piece);
    held->set(reader->held_bytes());
    if (is_done) co_return;
  }
  reader->finish();
}

Task<OneShotAnswer> OneShot::answer() {
  works_ = std::make_unique<Works>(co_await boost::asio::this_coro::executor);
  works_->tasks.spawn(send_prompt());
  works_->tasks.spawn(await_end());
  ResultReader reader;
  GaugeShare held(setup_.output_bytes);
  co_await read_result(&reader, &held);

  OneShotAnswer answer;
  if (const auto& result = reader.result()) {
    answer.text = result->is_error ? "" : result->text;
    answer.stop_reason = result->stop_reason;
    answer.usage = result->usage;
    answer.cost_usd = result->cost_usd;
    if (result->is_error) {
      answer.failure = failure_of(*result, unix_seconds(setup_.clock->now()), setup_.secrets);
      // A failure can wait for what the program still says on its standard error.
      co_await wait_for_end(kWindDownMax);
    }
  } else {
    answer.failure = co_await fail_without_result(&reader);
  }
  note_end(answer);
  co_return answer;
}

Task<Failure> OneShot::fail_without_result(const ResultReader* reader) {
  if (!reader->is_too_large()) {
    co_await wait_for_end(kSpeechlessMax);
  }
  if (!works_->status && !is_stopped_) {
    child_->let_go();
    while (!works_->status && !is_stopped_) co_await works_->ended.wait();
  }
  co_return failure_of(setup_.agent, SilentEnd{.status = works_->status.value_or(Unknown{}),
                                               .has_output = reader->has_output(),
                                               .is_too_large = reader->is_too_large(),
                                               .error_tail = child_->error_tail()});
}

void OneShot::note_end(OneShotAnswer& answer) const {
  answer.error_tail = shown_tail(child_->error_tail(), setup_.secrets);
  const std::optional<ExitStatus> status = works_->status;
  if (!status) return;
  if (const auto* exited = std::get_if<Exited>(&*status)) answer.exit_code = exited->code;
  if (const auto* killed = std::get_if<Signaled>(&*status)) answer.exit_signal = killed->number;
}

Task<void> OneShot::finish() {
  if (works_) {
    co_await wait_for_end(kWindDownMax);
  }
  child_->let_go();
  if (works_) {
    co_await works_->tasks.join();
  }
  co_await child_->gone();
}

namespace {

// Only the agent's user can read it, and it goes with the run's directory.
Result<std::string> write_system_file(const OneShotRequest& question) {
  const std::string path = question.temp_dir + "/system-prompt.txt";
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  std::string_view rest = question.system;
  bool is_written = file >= 0;
  while (is_written && !rest.empty()) {
    const ssize_t count = write(file, rest.data(), rest.size());
    is_written = count > 0 || (count < 0 && errno == EINTR);
    if (count > 0) rest.remove_prefix(static_cast<std::size_t>(count));
  }
  const int error = errno;
  if (file >= 0 && close(file) != 0) is_written = false;
  if (is_written) return path;
  return fail(Errc::unavailable,
              error == ENOSPC || error == EDQUOT ? "disk_full" : "workspace_unavailable",
              "The system prompt could not be put on disk.", std::strerror(error));
}

}  // namespace

OneShots::OneShots(Spawner& spawner, const Clock& clock, Options options)
    : spawner_(spawner),
      clock_(clock),
      options_(std::move(options)),
      boot_id_(read_boot_id()),
      output_bytes_(options_.metrics == nullptr
                        ? nullptr
                        : &options_.metrics->gauge("clawdforge_run_output_bytes",
                                                   "Printed by the agents of runs so far.")) {}

Result<std::unique_ptr<OneShot>> OneShots::start(OneShotRequest question) {
  std::string system_file;
  if (needs_file(question.system)) {
    auto written = write_system_file(question);
    if (!written) return std::unexpected(std::move(written.error()));
    system_file = std::move(*written);
  }
  const bool is_demo = question.agent == "demo";
  ChildPlan plan;
  plan.argv = {is_demo ? options_.demo_program : options_.claude_bin};
  if (is_demo) plan.argv.emplace_back("demo-agent");
  std::ranges::move(claude_arguments(question, options_.owner_settings, system_file),
                    std::back_inserter(plan.argv));
  plan.working_dir = question.working_dir;
  if (is_demo) {
    plan.environment = plain_environment(options_.environment, {});
    plan.environment["TMPDIR"] = question.temp_dir;
  } else {
    plan.environment = claude_environment(options_.environment, options_.more_names,
                                          options_.set_environment, question.temp_dir);
  }
  auto child = spawner_.spawn(plan);
  if (!child) return std::unexpected(std::move(child.error()));
  return std::make_unique<OneShot>(std::move(*child),
                                   OneShot::Setup{.agent = question.agent,
                                                  .prompt = prompt_text(question),
                                                  .clock = &clock_,
                                                  .secrets = secrets_in(plan.environment),
                                                  .boot_id = boot_id_,
                                                  .output_bytes = output_bytes_});
}

}  // namespace clawdforge
