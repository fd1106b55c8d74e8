#include "cli/dialogue/transcript.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace clawdforge {
namespace {

constexpr TextStyle kDimText{.is_dim = true};
constexpr TextStyle kBad{.colour = Colour::red};
constexpr TextStyle kPromptMark{.colour = Colour::cyan, .is_bold = true};

void move_lines(StyledLines from, StyledLines& to) {
  std::ranges::move(from, std::back_inserter(to));
}

StyledLines plan_lines(const AgentPlan& plan, std::size_t columns) {
  StyledLines lines;
  for (const PlanEntry& entry : plan.entries) {
    const bool is_done = entry.status == "completed";
    const bool is_now = entry.status == "in_progress";
    const TextStyle mark{.colour = is_done  ? Colour::green
                                   : is_now ? Colour::yellow
                                            : Colour::normal};
    StyledText text;
    append_span(text, filter_line(entry.content), {.is_bold = is_now, .is_dim = is_done});
    move_lines(wrap(text, columns,
                    {{is_done  ? "☑ "
                      : is_now ? "▸ "
                               : "☐ ",
                      mark}},
                    {{"  ", {}}}),
               lines);
  }
  return lines;
}

StyledLines question_lines(const AgentQuestion& question, const std::string& decision,
                           std::size_t columns) {
  StyledText text;
  append_span(text, filter_line(question.title), {.is_bold = decision.empty()});
  if (!question.kind.empty()) append_span(text, fmt::format(" ({})", filter_line(question.kind)));
  if (!decision.empty()) {
    append_span(text, "  " + decision, kDimText);
    return wrap(text, columns, {{"? ", kDimText}}, {{"  ", {}}});
  }
  StyledLines lines =
      wrap(text, columns, {{"? ", {.colour = Colour::yellow, .is_bold = true}}}, {{"  ", {}}});
  move_lines(wrap({{"y once · a always in this session · n no · ? what exactly", kDimText}},
                  columns, {{"  ", {}}}, {{"  ", {}}}),
             lines);
  return lines;
}

std::string decision_text(const AgentQuestion& question, const QuestionDecided& decided) {
  if (decided.by == "expiry") return "denied: not answered in time";
  if (decided.decision == "cancelled") return "cancelled";
  const auto option = std::ranges::find(question.options, decided.option_id, &QuestionOption::id);
  const bool is_always = option != question.options.end() && option->kind.ends_with("_always");
  const std::string word = decided.decision == "allow" ? "allowed" : "denied";
  if (decided.by == "rule") return word + " by the permission mode";
  return is_always ? word + " always" : word;
}

}  // namespace

std::string usage_text(const ChatTurnEnd& end) {
  std::string out;
  const auto add = [&](const std::string& part) {
    if (!out.empty()) out += " · ";
    out += part;
  };
  if (end.input_tokens) add(fmt::format("{} in", *end.input_tokens));
  if (end.output_tokens) add(fmt::format("{} out", *end.output_tokens));
  if (end.cost_usd && *end.cost_usd > 0) add(fmt::format("${:.4f}", *end.cost_usd));
  add(duration_text(end.seconds));
  return out;
}

Transcript::Item& Transcript::add(Kind kind) {
  settle_streams();
  return items_.emplace_back(Item{.kind = kind});
}

// Text that is followed by something else does not go on. A plan is drawn over only while it is
// the last thing that was said.
void Transcript::settle_streams() {
  if (items_.empty()) return;
  Item& last = items_.back();
  if (last.kind == Kind::text || last.kind == Kind::thought || last.kind == Kind::plan) {
    last.is_settled = true;
  }
}

void Transcript::add_prompt(std::string_view prompt) {
  Item& item = add(Kind::prompt);
  item.text = filter_text(cut_to(prompt, kKeptTextBytesMax));
  item.is_settled = true;
}

void Transcript::add_note(std::string_view text, TextStyle style) {
  Item& item = add(Kind::note);
  item.text = filter_text(text);
  item.style = style;
  item.is_settled = true;
}

void Transcript::add_lines(StyledLines lines) {
  Item& item = add(Kind::lines);
  item.lines = std::move(lines);
  item.is_settled = true;
}

void Transcript::append_text(Kind kind, std::string_view text) {
  const bool goes_on = !items_.empty() && items_.back().kind == kind && !items_.back().is_settled &&
                       items_.back().text.size() < kKeptTextBytesMax;
  Item& item = goes_on ? items_.back() : add(kind);
  const std::string plain = item.filter.feed(text);
  item.stream.feed(plain);
  item.text += plain;
  kept_bytes_ += plain.size();
}

void Transcript::apply_tool(const ToolNews& news, ChatTime now) {
  const auto found =
      std::ranges::find(tools_, news.id, [](const auto& tool) { return tool->id(); });
  if (found != tools_.end() && !(*found)->has_ended()) {
    (*found)->apply(news, now);
    // Its line may have been settled while it ran, because too much followed it.
    const auto shown =
        std::ranges::find(items_, *found, [](const Item& item) { return item.tool; });
    const bool is_gone = shown == items_.end() || shown->is_settled;
    if (is_gone && (*found)->has_ended()) {
      Item& item = add(Kind::tool);
      item.tool = *found;
      item.is_settled = true;
    } else if (!is_gone && (*found)->has_ended()) {
      shown->is_settled = true;
    }
    return;
  }
  if (found != tools_.end()) return (*found)->apply(news, now);
  Item& item = add(Kind::tool);
  item.tool = std::make_shared<ToolCall>(news, now);
  item.is_settled = item.tool->has_ended();
  tools_.push_back(item.tool);
  if (tools_.size() > kKeptToolsMax) tools_.pop_front();
}

void Transcript::decide(const QuestionDecided& decided) {
  for (Item& item : items_) {
    if (item.kind != Kind::question || item.question.id != decided.id || item.is_settled) continue;
    item.decision = decision_text(item.question, decided);
    item.is_settled = true;
  }
}

void Transcript::apply_end(const ChatTurnEnd& end, ChatTime now) {
  for (const auto& tool : tools_) tool->end(now);
  for (Item& item : items_) {
    if (item.kind == Kind::question && !item.is_settled) item.decision = "not answered";
    item.is_settled = true;
  }
  if (end.is_forgotten) {
    add_note("The agent was started again and does not know what was said before.");
  }
  Item& item = add(Kind::end);
  item.is_settled = true;
  item.style = kDimText;
  item.text = usage_text(end);
  if (!end.is_ok) {
    item.style = kBad;
    item.text = fmt::format("✗ {} ({})", filter_line(end.error), filter_line(end.code));
  } else if (end.stop_reason == "cancelled") {
    item.text = "cancelled · " + item.text;
  } else if (end.stop_reason != "end_turn" && !end.stop_reason.empty()) {
    item.text = fmt::format("stopped: {} · {}", filter_line(end.stop_reason), item.text);
  }
}

void Transcript::apply(const ChatEvent& event, ChatTime now) {
  if (const auto* text = std::get_if<AgentText>(&event)) return append_text(Kind::text, text->text);
  if (const auto* thought = std::get_if<AgentThought>(&event)) {
    return append_text(Kind::thought, thought->text);
  }
  if (const auto* news = std::get_if<ToolNews>(&event)) return apply_tool(*news, now);
  if (const auto* plan = std::get_if<AgentPlan>(&event)) {
    if (items_.empty() || items_.back().kind != Kind::plan || items_.back().is_settled) {
      add(Kind::plan);
    }
    items_.back().plan = *plan;
    return;
  }
  if (const auto* question = std::get_if<AgentQuestion>(&event)) {
    const bool is_known = std::ranges::any_of(items_, [&](const Item& item) {
      return item.kind == Kind::question && item.question.id == question->id;
    });
    if (!question->is_open || is_known) return;
    add(Kind::question).question = *question;
    return;
  }
  if (const auto* decided = std::get_if<QuestionDecided>(&event)) return decide(*decided);
  if (const auto* end = std::get_if<ChatTurnEnd>(&event)) return apply_end(*end, now);
  if (std::holds_alternative<ToldGap>(event)) {
    add_note("Some of what was said here was removed by the gateway's retention.");
  }
}

StyledLines Transcript::lines_of(const Item& item, std::size_t columns, ChatTime now) {
  switch (item.kind) {
    case Kind::prompt:
      return wrap({{item.text, {}}}, columns, {{"› ", kPromptMark}}, {{"  ", {}}});
    case Kind::text:
      return item.stream.open_lines(columns);
    case Kind::thought:
      return wrap({{item.text, {.is_dim = true, .is_italic = true}}}, columns);
    case Kind::tool:
      return {item.tool->line(columns, now)};
    case Kind::plan:
      return plan_lines(item.plan, columns);
    case Kind::question:
      return question_lines(item.question, item.decision, columns);
    case Kind::note:
    case Kind::end:
      return wrap({{item.text, item.style}}, columns);
    case Kind::lines:
      return item.lines;
  }
  return {};
}

// A blank line stands between things of different kinds.
void Transcript::begin_item(Kind kind, StyledLines& out) {
  const auto is_small = [](Kind k) { return k == Kind::tool || k == Kind::question; };
  const bool is_same = last_kind_ == kind && kind != Kind::text && kind != Kind::prompt;
  const bool are_small = last_kind_ && is_small(*last_kind_) && is_small(kind);
  const bool follows_prompt = last_kind_ == Kind::end && kind == Kind::prompt;
  if (last_kind_ && !is_same && !are_small)
    out.emplace_back();
  else if (follows_prompt)
    out.emplace_back();
  last_kind_ = kind;
}

// Gives the lines that will not change any more; true: that is all of the item.
bool Transcript::settle(Item& item, std::size_t columns, ChatTime now, StyledLines& out) {
  StyledLines lines;
  if (item.kind == Kind::text) {
    lines = item.stream.take_settled(columns);
    if (item.is_settled) move_lines(item.stream.finish(columns), lines);
  } else if (item.is_settled) {
    lines = lines_of(item, columns, now);
  }
  if (!lines.empty() && !is_first_begun_) begin_item(item.kind, out);
  is_first_begun_ = is_first_begun_ || !lines.empty();
  move_lines(std::move(lines), out);
  return item.is_settled;
}

Transcript::Frame Transcript::next_frame(std::size_t columns, ChatTime now) {
  Frame frame;
  // A tool call or a question that lasts must not hold back all that follows it.
  if (items_.size() - first_live_ > kLiveItemsMax ||
      (first_live_ < items_.size() && items_.back().kind == Kind::text &&
       items_.back().text.size() > kOpenBlockBytesMax && first_live_ + 1 < items_.size())) {
    if (items_[first_live_].kind == Kind::tool) items_[first_live_].is_settled = true;
  }
  while (first_live_ < items_.size() && settle(items_[first_live_], columns, now, frame.settled)) {
    ++first_live_;
    is_first_begun_ = false;
  }
  const auto kind_before = last_kind_;
  for (std::size_t i = first_live_; i < items_.size(); ++i) {
    const StyledLines lines = lines_of(items_[i], columns, now);
    if (lines.empty()) continue;
    if (i != first_live_ || !is_first_begun_) begin_item(items_[i].kind, frame.live);
    move_lines(lines, frame.live);
  }
  last_kind_ = kind_before;
  forget_old();
  return frame;
}

StyledLines Transcript::last_lines(std::size_t columns, std::size_t rows, ChatTime now) const {
  Transcript again;
  // Of the first live item the blocks that are settled.
  const std::size_t count = first_live_ + (is_first_begun_ ? 1 : 0);
  for (std::size_t i = 0; i < count; ++i) {
    Item item{.kind = items_[i].kind};
    item.text = items_[i].text;
    if (i == first_live_) {
      item.text.resize(item.text.size() -
                       std::min(item.text.size(), items_[i].stream.open_bytes()));
    }
    item.tool = items_[i].tool;
    item.plan = items_[i].plan;
    item.question = items_[i].question;
    item.decision = items_[i].decision;
    item.style = items_[i].style;
    item.lines = items_[i].lines;
    item.is_settled = true;
    if (item.kind == Kind::text) item.stream.feed(item.text);
    again.items_.push_back(std::move(item));
  }
  StyledLines lines = again.next_frame(columns, now).settled;
  if (lines.size() > rows)
    lines.erase(lines.begin(), lines.end() - static_cast<std::ptrdiff_t>(rows));
  return lines;
}

void Transcript::forget_old() {
  while (first_live_ > 0 && (items_.size() > kKeptItemsMax || kept_bytes_ > kKeptTextBytesMax)) {
    kept_bytes_ -= std::min(kept_bytes_, items_.front().text.size());
    items_.pop_front();
    --first_live_;
  }
}

const AgentQuestion* Transcript::open_question() const {
  for (const Item& item : items_) {
    if (item.kind == Kind::question && !item.is_settled) return &item.question;
  }
  return nullptr;
}

const ToolCall* Transcript::tool(std::size_t back) const {
  return back < tools_.size() ? tools_[tools_.size() - 1 - back].get() : nullptr;
}

std::size_t Transcript::running_tools() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(tools_, [](const auto& tool) { return !tool->has_ended(); }));
}

}  // namespace clawdforge
