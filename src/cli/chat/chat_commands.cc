// The commands within a chat: lines that begin with a slash.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <boost/json.hpp>
#include <charconv>

#include "cli/chat/chat.h"
#include "cli/terminal/terminal.h"
#include "json/json_fields.h"

namespace clawdforge {
namespace json = boost::json;
namespace {

constexpr mode_t kPrivateFile = 0600;

struct Line {
  std::string_view name;
  std::string_view help;
};

constexpr std::array<Line, 12> kCommands = {{
    {"/help", "this list"},
    {"/new", "begins another session with the same agent"},
    {"/model", "the model; /model NAME begins another session with it"},
    {"/agent", "the agents there are; /agent NAME begins a session with one"},
    {"/cancel", "cancels the turn that runs, also one of another terminal"},
    {"/files", "what lies in the session's directory"},
    {"/state", "the session as the gateway knows it"},
    {"/usage", "tokens and cost of the session so far"},
    {"/expand", "the last tool call's input, output or diff; /expand 2 the one before"},
    {"/export", "/export FILE writes what was said into a file"},
    {"/close", "ends the session and its agent, and leaves"},
    {"/quit", "leaves; the session stays"},
}};

std::string shown_text(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains({key.data(), key.size()});
  if (value == nullptr || value->is_null()) return "-";
  return filter_line(value->is_string() ? std::string(value->get_string())
                                        : json::serialize(*value));
}

StyledText labelled(std::string_view label, std::string_view text) {
  StyledText line;
  append_span(line, fmt::format("  {:<14}", label), {.is_dim = true});
  append_span(line, text);
  return line;
}

}  // namespace

std::vector<std::string> chat_command_names() {
  std::vector<std::string> names;
  for (const Line& command : kCommands) names.emplace_back(command.name);
  return names;
}

bool Chat::take_command(const std::string& line) {
  const std::size_t blank = line.find(' ');
  const std::string name = line.substr(0, blank);
  std::string rest = blank == std::string::npos ? "" : line.substr(blank + 1);
  rest.erase(0, std::min(rest.find_first_not_of(' '), rest.size()));
  while (rest.ends_with(' ')) rest.pop_back();
  if (name == "/help")
    show_help();
  else if (name == "/new")
    begin_again();
  else if (name == "/model")
    show_model(rest);
  else if (name == "/agent")
    show_agents(rest);
  else if (name == "/files")
    show_files();
  else if (name == "/state")
    show_state();
  else if (name == "/usage")
    show_usage();
  else if (name == "/expand")
    expand(rest);
  else if (name == "/export")
    export_to(rest);
  else if (name == "/close")
    close_session();
  else if (name == "/quit")
    is_leaving_ = true;
  else if (name == "/cancel") {
    const auto done = session_.cancel();
    if (!done) fail_with(done.error());
  } else if (name.find('/', 1) == std::string::npos) {
    view_.note(fmt::format("There is no command {}; /help lists them.", name));
  } else {
    return false;  // a path: it is a prompt
  }
  return true;
}

void Chat::show_help() {
  StyledLines lines;
  for (const Line& command : kCommands) lines.push_back(labelled(command.name, command.help));
  lines.push_back(labelled("@path", "attaches a file; Tab completes the path"));
  lines.push_back(labelled("\\ at the end", "the prompt goes on in the next line"));
  lines.push_back(labelled("Ctrl-C", "cancels the turn; Ctrl-D leaves"));
  view_.show(std::move(lines));
}

void Chat::show_files() {
  const auto found = session_.files();
  if (!found) return fail_with(found.error());
  StyledLines lines;
  if (const json::array* files = array_in(*found, "files")) {
    for (const json::value& file : *files) {
      if (!file.is_object()) continue;
      lines.push_back({{fmt::format("  {:>10}  {}", count_in(file.get_object(), "size"),
                                    shown_text(file.get_object(), "path")),
                        {}}});
    }
  }
  if (lines.empty()) return view_.note("There are no files in the session's directory.");
  view_.show(std::move(lines));
}

void Chat::show_state() {
  const auto state = session_.state();
  if (!state) return fail_with(state.error());
  StyledLines lines;
  for (const auto& member : *state) {
    lines.push_back(
        cut_to_width(labelled(member.key(), shown_text(*state, member.key())), view_.columns()));
  }
  view_.show(std::move(lines));
}

void Chat::show_usage() {
  const auto state = session_.state();
  if (!state) return fail_with(state.error());
  StyledLines lines;
  if (const json::object* usage = object_in(*state, "usage")) {
    for (const auto& member : *usage) {
      lines.push_back(labelled(member.key(), shown_text(*usage, member.key())));
    }
  }
  lines.push_back(labelled("cost_usd", shown_text(*state, "cost_usd")));
  lines.push_back(labelled("turns", shown_text(*state, "turn_count")));
  view_.show(std::move(lines));
}

void Chat::begin_again() {
  settings_.session_id.clear();
  const std::string left = session_.id();
  if (const auto begun = begin(); !begun) return fail_with(begun.error());
  prompts_.clear();
  view_.note(fmt::format("The session before is {}.", left));
}

void Chat::show_model(const std::string& wanted) {
  if (wanted.empty()) {
    return view_.note(session_.model().empty() ? "The agent's default model."
                                               : "The model is " + session_.model() + ".");
  }
  settings_.wish.model = wanted;
  settings_.wish.agent = session_.agent();
  begin_again();
}

void Chat::show_agents(const std::string& wanted) {
  if (!wanted.empty()) {
    settings_.wish.agent = wanted;
    settings_.wish.model.clear();
    return begin_again();
  }
  const auto found = session_.agents();
  if (!found) return fail_with(found.error());
  StyledLines lines;
  if (const json::array* agents = array_in(*found, "agents")) {
    for (const json::value& entry : *agents) {
      if (!entry.is_object()) continue;
      const json::object& agent = entry.get_object();
      const std::string name = shown_text(agent, "name");
      lines.push_back(labelled(
          name,
          fmt::format("{}{}",
                      is_true_in(agent, "present") ? shown_text(agent, "version") : "not installed",
                      name == session_.agent() ? "  (this chat)" : "")));
    }
  }
  view_.show(std::move(lines));
}

void Chat::expand(const std::string& which) {
  std::size_t back = 1;
  std::from_chars(which.data(), which.data() + which.size(), back);
  const ToolCall* const tool = back == 0 ? nullptr : view_.tool(back - 1);
  if (tool == nullptr) return view_.note("There is no such tool call.");
  StyledLines lines = {tool->line(view_.columns(), std::chrono::steady_clock::now())};
  for (StyledText& line : tool->details(view_.columns())) lines.push_back(std::move(line));
  view_.show(std::move(lines));
}

// What was asked and what the agent said, from the gateway. Where that keeps no prompts, those that
// were typed here.
void Chat::export_to(const std::string& path) {
  if (path.empty()) return view_.note("Name a file: /export FILE");
  std::string text = fmt::format("# Session {}\n", session_.id());
  std::string turn;
  for (std::uint64_t after = 0; text.size() + turn.size() < kExportBytesMax;) {
    const auto page = session_.events(after);
    if (!page) return fail_with(page.error());
    if (page->empty()) break;
    for (const TailEvent& told : *page) {
      after = told.id;
      if (const auto* asked = std::get_if<AskedPrompt>(&told.event)) {
        if (asked->prompt)
          prompts_.insert_or_assign(asked->turn_index, filter_text(*asked->prompt));
      }
      if (const auto* said = std::get_if<AgentText>(&told.event)) turn += said->text;
      const auto* const tool = std::get_if<ToolNews>(&told.event);
      if (tool != nullptr && !tool->title.empty()) {
        turn += fmt::format("\n\n*{}*\n\n", filter_line(tool->title));
      }
      const auto* const end = std::get_if<ChatTurnEnd>(&told.event);
      if (end == nullptr) continue;
      const auto asked = prompts_.find(end->turn_index);
      text +=
          fmt::format("\n## {}\n\n{}\n\n", end->turn_index,
                      asked == prompts_.end() ? "(asked elsewhere; the gateway keeps no prompts)"
                                              : "> " + asked->second);
      text += filter_text(turn) + "\n";
      turn.clear();
    }
  }
  const Descriptor file(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kPrivateFile));
  if (!file.is_open()) {
    return view_.note(fmt::format("{} cannot be made, or is there already.", path));
  }
  if (!write_all(file.number(), text)) return view_.note(path + " cannot be written.");
  view_.note("Written to " + path + ".");
}

void Chat::close_session() {
  const auto done = session_.close();
  if (!done) return fail_with(done.error());
  is_closed_ = true;
  is_leaving_ = true;
  view_.note("The session is closed.");
}

}  // namespace clawdforge
