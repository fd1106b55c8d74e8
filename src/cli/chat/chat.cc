#include "cli/chat/chat.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <thread>

#include "cli/chat/attachments.h"
#include "cli/terminal/terminal.h"
#include "json/json_fields.h"

namespace clawdforge {
namespace json = boost::json;
namespace {

using std::chrono::milliseconds;
using Steady = std::chrono::steady_clock;

constexpr milliseconds kFrameTime{16};
constexpr milliseconds kToolTick{100};
constexpr milliseconds kTick{500};
constexpr char kCtrlD = 0x04;

Descriptor open_signals() {
  sigset_t wanted;
  sigemptyset(&wanted);
  for (const int number : {SIGINT, SIGWINCH, SIGTERM, SIGHUP}) sigaddset(&wanted, number);
  ::pthread_sigmask(SIG_BLOCK, &wanted, nullptr);
  return Descriptor(::signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
}

}  // namespace

Chat::Chat(Destination gateway, TurnReader::FindGateway find, ChatSettings settings)
    : gateway_(std::move(gateway)),
      find_(std::move(find)),
      settings_(std::move(settings)),
      session_(gateway_),
      view_(settings_.is_live),
      signals_(open_signals()) {
  if (!settings_.is_terminal) return;
  use_utf8_locale();
  editor_ = std::make_unique<LineEditor>(
      LineEditorOptions{.history_file = settings_.history_file,
                        .commands = chat_command_names(),
                        .signals = signals_.number(),
                        .on_signal = [this] { return take_signals(); }});
}

Chat::~Chat() = default;

void Chat::say(std::string_view text) {
  view_.note(text);
  view_.draw("");
}

void Chat::fail_with(const Complaint& complaint) {
  exit_code_ = std::max(exit_code_, complaint.exit_code);
  view_.note("✗ " + complaint.sentence);
}

void Chat::say_who() {
  const std::string model = session_.model().empty() ? "" : " · " + session_.model();
  say(fmt::format("{}{} · session {} · /help, Ctrl-D leaves", session_.agent(), model,
                  session_.id()));
}

Asked<void> Chat::begin() {
  if (!settings_.session_id.empty()) return take_up(settings_.session_id);
  const auto made = session_.create(settings_.wish);
  if (!made) return made;
  last_event_ = 0;
  turn_count_ = 0;
  if (settings_.is_terminal) say_who();
  return {};
}

// Shows the tail of what was said, and goes on with the turn that runs.
Asked<void> Chat::take_up(const std::string& id) {
  const auto state = session_.attach(id);
  if (!state) return std::unexpected(state.error());
  if (state->if_contains("closed_at") != nullptr && !state->at("closed_at").is_null()) {
    return complain(kExitRefused, "this session is closed; clawdforge chat begins another one.");
  }
  turn_count_ = count_in(*state, "turn_count");
  last_event_ = static_cast<std::uint64_t>(count_in(*state, "last_event_id"));
  if (settings_.is_terminal) {
    say_who();
    const auto tail = session_.events(last_event_ - std::min(last_event_, kTailEventsMax));
    if (!tail) return std::unexpected(tail.error());
    for (const TailEvent& told : *tail) {
      if (told.id > last_event_) break;
      if (const auto* asked = std::get_if<AskedPrompt>(&told.event)) {
        if (asked->prompt) view_.show_prompt(*asked->prompt);
      } else if (!std::holds_alternative<AgentQuestion>(told.event)) {
        view_.apply(told.event);
      }
    }
  }
  if (!is_true_in(*state, "busy")) {
    view_.draw("");
    return {};
  }
  const auto questions = session_.questions();
  if (questions) {
    for (const AgentQuestion& question : *questions) view_.apply(question);
  }
  TurnReader reader({.session_id = session_.id(), .after = last_event_}, find_);
  watch(reader);
  return {};
}

ReadLine Chat::next_prompt() {
  if (editor_) {
    if (settings_.is_live) write_all(STDOUT_FILENO, "\n");
    return editor_->read(std::exchange(typed_ahead_, {}));
  }
  for (;;) {
    if (auto line = lines_.buffered()) return {ReadLine::Kind::line, std::move(*line)};
    if (lines_.has_ended()) return {ReadLine::Kind::end, {}};
    std::array<pollfd, 2> ready = {{{STDIN_FILENO, POLLIN, 0}, {signals_.number(), POLLIN, 0}}};
    ::poll(ready.data(), ready.size(), -1);
    if (ready[1].revents != 0) {
      take_signals();
      exit_code_ = kExitInterrupted;
      return {ReadLine::Kind::end, {}};
    }
    if (ready[0].revents != 0) lines_.fill();
  }
}

Done Chat::run() {
  if (const auto begun = begin(); !begun) return std::unexpected(begun.error());
  while (!is_leaving_ && view_.is_good()) {
    const ReadLine line = next_prompt();
    if (line.kind == ReadLine::Kind::end || is_leaving_) break;
    if (line.kind == ReadLine::Kind::interrupted) {
      write_all(STDOUT_FILENO, "\n");
      continue;
    }
    take_line(line.text);
  }
  if (settings_.is_terminal && !is_closed_) {
    say(fmt::format("To come back: clawdforge chat --session {}", session_.id()));
  }
  return exit_code_;
}

void Chat::take_line(const std::string& line) {
  if (line.find_first_not_of(" \t\n") == std::string::npos) return;
  view_.remember_prompt(line);
  if (line.starts_with('/') && take_command(line)) return view_.draw("");
  run_turn(line);
}

std::optional<std::string> Chat::turn_body(const std::string& prompt) {
  json::object body;
  body["prompt"] = prompt;
  body["stream"] = true;
  json::array files;
  for (const std::string& path : attached_paths(prompt)) {
    const auto token = session_.upload(path);
    if (!token) {
      fail_with(token.error());
      view_.draw("");
      return std::nullopt;
    }
    files.emplace_back(json::string(*token));
    view_.note(fmt::format("attached {}", path));
  }
  if (!files.empty()) body["files"] = std::move(files);
  return json::serialize(body);
}

void Chat::run_turn(const std::string& prompt) {
  auto body = turn_body(prompt);
  if (!body) return;
  prompts_[turn_count_ + 1] = prompt;
  TurnReader reader({.session_id = session_.id(),
                     .body = std::move(*body),
                     .after = last_event_,
                     .turns_before = turn_count_,
                     .keeps_raw = settings_.as_json},
                    find_);
  watch(reader);
}

void Chat::take_news(std::vector<TurnNews> all) {
  std::string raw;
  for (TurnNews& news : all) {
    if (!news.note.empty()) view_.note(news.note);
    if (news.refusal) {
      fail_with(*news.refusal);
      continue;
    }
    if (const auto* end = std::get_if<ChatTurnEnd>(&news.event)) {
      turn_count_ = std::max(turn_count_, end->turn_index);
      if (!end->is_ok) exit_code_ = kExitFailed;
    }
    const bool is_question = std::holds_alternative<AgentQuestion>(news.event) ||
                             std::holds_alternative<QuestionDecided>(news.event);
    if (settings_.as_json) raw.append(news.raw).append(news.raw.empty() ? "" : "\n");
    if (!settings_.as_json || is_question) view_.apply(news.event);
  }
  write_all(STDOUT_FILENO, raw);
}

std::string Chat::status(TurnReader& reader) const {
  const double seconds = std::chrono::duration<double>(Steady::now() - began_).count();
  if (reader.is_away()) return fmt::format("… no connection to {}, trying again", gateway_.url);
  if (is_cancelled_) return fmt::format("… {:.0f} s · cancelling", seconds);
  return fmt::format("… {:.0f} s · Ctrl-C cancels", seconds);
}

// Draws at once what comes after a silence, and otherwise as often as an eye can see.
void Chat::watch(TurnReader& reader) {
  std::optional<KeyMode> keys;
  if (settings_.is_terminal) keys.emplace(STDIN_FILENO);
  is_in_turn_ = true;
  is_cancelled_ = false;
  answered_.clear();
  began_ = Steady::now();
  auto drawn = Steady::time_point{};
  bool is_dirty = true;
  while (!is_leaving_ && view_.is_good()) {
    auto news = reader.take();
    is_dirty = is_dirty || !news.empty();
    take_news(std::move(news));
    const bool has_ended = reader.has_ended();
    const auto tick = view_.has_running_tools() ? kToolTick : kTick;
    const auto since = std::chrono::duration_cast<milliseconds>(Steady::now() - drawn);
    if (has_ended || !settings_.is_live || since >= (is_dirty ? kFrameTime : tick)) {
      status_ = has_ended ? "" : status(reader);
      view_.draw(status_);
      drawn = Steady::now();
      is_dirty = false;
    }
    if (has_ended) break;
    const AgentQuestion* const question = view_.open_question();
    const bool wants_line =
        !settings_.is_terminal && question != nullptr && !answered_.contains(question->id);
    if (wants_line) take_question_line();
    std::array<pollfd, 3> ready = {{{reader.descriptor(), POLLIN, 0},
                                    {signals_.number(), POLLIN, 0},
                                    {STDIN_FILENO, POLLIN, 0}}};
    const nfds_t count = settings_.is_terminal || wants_line ? 3 : 2;
    const auto wait = is_dirty ? kFrameTime : tick;
    ::poll(ready.data(), count, settings_.is_live ? static_cast<int>(wait.count()) : -1);
    if (ready[1].revents != 0) take_signals();
    if (ready[2].revents != 0) {
      if (settings_.is_terminal)
        take_keys();
      else
        lines_.fill();
    }
  }
  last_event_ = std::max(last_event_, reader.last_id());
  is_in_turn_ = false;
}

bool Chat::take_signals() {
  bool is_interrupt = false;
  signalfd_siginfo info{};
  while (::read(signals_.number(), &info, sizeof info) == sizeof info) {
    if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGHUP) {
      is_leaving_ = true;
      exit_code_ = kExitInterrupted;
      is_interrupt = true;
    }
    if (info.ssi_signo == SIGINT) {
      is_interrupt = true;
      if (is_in_turn_) cancel_turn();
    }
    if (info.ssi_signo == SIGWINCH && settings_.is_live) {
      view_.redraw(is_in_turn_ ? status_ : "");
      if (!is_in_turn_ && editor_) {
        write_all(STDOUT_FILENO, "\n");
        editor_->redraw();
      }
    }
  }
  return is_interrupt;
}

void Chat::cancel_turn() {
  if (is_cancelled_) {  // it does not end; leave it alone
    is_leaving_ = true;
    return;
  }
  is_cancelled_ = true;
  const auto done = session_.cancel();
  if (!done) fail_with(done.error());
  if (!settings_.is_terminal) {
    exit_code_ = kExitInterrupted;
    is_leaving_ = !done;
  }
}

void Chat::take_keys() {
  std::array<char, 256> keys;
  const ssize_t count = ::read(STDIN_FILENO, keys.data(), keys.size());
  if (count <= 0) {
    is_leaving_ = true;
    return;
  }
  for (const char key : std::string_view(keys.data(), static_cast<std::size_t>(count))) {
    if (view_.open_question() != nullptr)
      answer_question(key);
    else if (key == kCtrlD && typed_ahead_.empty())
      is_leaving_ = true;
    else if (typed_ahead_.size() < kTypedAheadMax)
      typed_ahead_ += key;
  }
}

void Chat::take_question_line() {
  auto line = lines_.buffered();
  if (!line && lines_.has_ended()) line = "n";  // no caller is there to say yes
  if (line && !line->empty()) answer_question(line->front());
}

void Chat::answer_question(char key) {
  const AgentQuestion* const question = view_.open_question();
  if (answered_.contains(question->id)) return;
  if (key == '?') {
    StyledLines lines = {{{"  " + filter_line(question->title), {}}}};
    const StyledText input = {{filter_text(question->input), {.is_dim = true}}};
    for (StyledText& line : wrap(input, view_.columns(), {{"    ", {}}}, {{"    ", {}}})) {
      lines.push_back(std::move(line));
    }
    return view_.show(std::move(lines));
  }
  const std::string_view kind = key == 'y'   ? "allow_once"
                                : key == 'a' ? "allow_always"
                                : key == 'n' ? "reject_once"
                                             : "";
  if (kind.empty()) return;
  const bool has_option =
      std::ranges::find(question->options, kind, &QuestionOption::kind) != question->options.end();
  if (key == 'a' && !has_option) {
    return view_.note("This question has no answer for always; y allows it once.");
  }
  answered_.insert(question->id);
  const auto done = session_.answer(*question, kind);
  if (!done) view_.note(done.error().sentence);
}

}  // namespace clawdforge
