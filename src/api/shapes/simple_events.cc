#include "api/shapes/simple_events.h"

#include <boost/json.hpp>

#include "base/json_text.h"

namespace clawdforge {
namespace {

std::string quoted(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

}  // namespace

void SimpleEvents::add(std::string_view message) {
  const TurnEvent event = reader_.read_message(message);
  if (const auto* text = std::get_if<TextPiece>(&event)) {
    add_text(Shape::text, text->text);
  } else if (const auto* thought = std::get_if<ThoughtPiece>(&event)) {
    add_text(Shape::thinking, thought->text);
  } else if (const auto* report = std::get_if<ToolReport>(&event)) {
    add_tool(*report);
  }
}

void SimpleEvents::clear() {
  events_ = {};
  tools_ = {};
  bytes_ = 0;
}

void SimpleEvents::add_text(Shape shape, std::string_view text) {
  if (text.empty()) return;
  if (events_.empty() || events_.back().shape != shape) {
    events_.push_back({.shape = shape, .content = {}});
  }
  std::string& content = events_.back().content;
  const std::size_t before = content.size();
  append_json_characters(content, text);
  bytes_ += content.size() - before;
}

// An update of a call that was made in an earlier turn, or never told, is of no use unless
// it says what it is about.
void SimpleEvents::add_tool(const ToolReport& report) {
  if (report.call_id) {
    if (const auto known = tools_.find(*report.call_id); known != tools_.end()) {
      fill(events_[known->second], report);
      return;
    }
  }
  if (!report.is_call && !report.name && !report.title) return;
  if (report.call_id) tools_.emplace(*report.call_id, events_.size());
  Simple& tool = events_.emplace_back(Simple{.shape = Shape::tool_call, .content = "\"\""});
  bytes_ += tool.content.size() + tool.args.size() + tool.result.size();
  fill(tool, report);
}

void SimpleEvents::fill(Simple& tool, const ToolReport& report) {
  if (report.name && !report.name->empty()) {
    assign(tool.content, quoted(*report.name));
    tool.is_named = true;
  } else if (report.title && !tool.is_named) {
    assign(tool.content, quoted(*report.title));
  }
  if (report.input != nullptr) assign(tool.args, boost::json::serialize(*report.input));
  if (report.output != nullptr) {
    assign(tool.result, boost::json::serialize(*report.output));
    tool.has_output = true;
  } else if (report.content != nullptr && !tool.has_output) {
    const std::string text = shown_text(*report.content);
    if (!text.empty()) assign(tool.result, quoted(text));
  }
  if (report.printed) {
    const std::size_t before = tool.printed.size();
    append_json_characters(tool.printed, *report.printed);
    bytes_ += tool.printed.size() - before;
  }
}

void SimpleEvents::assign(std::string& part, std::string value) {
  bytes_ = bytes_ - part.size() + value.size();
  part = std::move(value);
}

std::string SimpleEvents::take_json() {
  std::string out;
  constexpr std::size_t kFrameBytes = 64;  // of an event, beside what it says
  out.reserve(bytes_ + kFrameBytes * events_.size() + kFrameBytes);
  out += '[';
  for (const Simple& event : events_) {
    if (out.size() > 1) out += ',';
    if (event.shape == Shape::tool_call) {
      out.append(R"({"type":"tool_call","name":)").append(event.content);
      out.append(R"(,"args":)").append(event.args);
      if (event.result == kNoResult && !event.printed.empty()) {
        out.append(R"(,"result":")").append(event.printed).append("\"");
      } else {
        out.append(R"(,"result":)").append(event.result);
      }
    } else {
      out += event.shape == Shape::text ? R"({"type":"text","content":")"
                                        : R"({"type":"thinking","content":")";
      out.append(event.content).append("\"");
    }
    out += '}';
  }
  out += ']';
  clear();
  return out;
}

std::string simple_events(std::span<const std::string> messages) {
  SimpleEvents events;
  for (const std::string& message : messages) events.add(message);
  return events.take_json();
}

}  // namespace clawdforge
