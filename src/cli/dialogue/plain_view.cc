#include "cli/dialogue/plain_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/dialogue/transcript.h"

namespace clawdforge {
namespace {

constexpr std::size_t kMessageColumns = 200;
constexpr std::size_t kOpenQuestionsMax = 256;  // the gateway has no more of one agent

}  // namespace

void PlainView::end_line() {
  if (is_within_line_) out_.answer += '\n';
  is_within_line_ = false;
}

void PlainView::add_note(std::string_view text) {
  out_.messages.append(filter_text(text)).append("\n");
}

void PlainView::apply_text(const AgentText& text) {
  const std::string plain = filter_.feed(text.text);
  if (plain.empty()) return;
  if (wants_gap_) end_line();
  wants_gap_ = false;
  out_.answer += plain;
  is_within_line_ = plain.back() != '\n';
}

void PlainView::apply_tool(const ToolNews& news, ChatTime now) {
  wants_gap_ = true;
  auto tool = std::ranges::find(tools_, news.id, &ToolCall::id);
  if (tool == tools_.end()) {
    if (tools_.size() == kKeptToolsMax) tools_.pop_front();
    tools_.emplace_back(news, now);
    tool = tools_.end() - 1;
  } else if (tool->has_ended()) {
    return;
  } else {
    tool->apply(news, now);
  }
  if (tool->has_ended()) add_note(plain_of(tool->line(kMessageColumns, now)));
}

void PlainView::apply_question(const AgentQuestion& question) {
  if (!question.is_open || questions_.size() == kOpenQuestionsMax) return;
  questions_.push_back(question);
  add_note(fmt::format("? {} ({}): answer with a line y, a, n or ?", filter_line(question.title),
                       filter_line(question.kind)));
}

void PlainView::apply_end(const ChatTurnEnd& end, ChatTime now) {
  out_.answer += filter_.finish();
  end_line();
  wants_gap_ = false;
  questions_.clear();
  for (ToolCall& tool : tools_) tool.end(now);
  if (!end.is_ok) {
    add_note(fmt::format("✗ {} ({})", end.error, end.code));
  } else {
    add_note((end.stop_reason == "cancelled" ? "cancelled · " : "") + usage_text(end));
  }
}

void PlainView::apply(const ChatEvent& event, ChatTime now) {
  if (const auto* text = std::get_if<AgentText>(&event)) return apply_text(*text);
  if (const auto* news = std::get_if<ToolNews>(&event)) return apply_tool(*news, now);
  if (const auto* question = std::get_if<AgentQuestion>(&event)) return apply_question(*question);
  if (const auto* decided = std::get_if<QuestionDecided>(&event)) {
    std::erase_if(questions_, [&](const AgentQuestion& q) { return q.id == decided->id; });
    return;
  }
  if (const auto* plan = std::get_if<AgentPlan>(&event)) {
    wants_gap_ = true;
    for (const PlanEntry& entry : plan->entries) {
      add_note(fmt::format("{} {}", entry.status == "completed" ? "☑" : "☐", entry.content));
    }
    return;
  }
  if (const auto* end = std::get_if<ChatTurnEnd>(&event)) return apply_end(*end, now);
}

PlainView::Output PlainView::take() { return std::exchange(out_, {}); }

}  // namespace clawdforge
