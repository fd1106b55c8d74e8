// What happens in a session, as a chat shows it: one value for each event of the gateway's stream.
// The texts are the agent's own and have not passed a TextFilter. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace clawdforge {

struct AgentText {
  std::string text;
};
struct AgentThought {
  std::string text;
};

struct FileDiff {
  std::string path;
  std::string old_text;
  std::string new_text;
};

// A tool call, or what is said of it later; what is empty stays as it was.
struct ToolNews {
  std::string id;
  std::string title;
  std::string kind;
  std::string status;  // pending, in_progress, completed, failed
  std::string input;   // JSON
  std::string output;
  std::vector<FileDiff> diffs;
};

struct PlanEntry {
  std::string content;
  std::string status;  // pending, in_progress, completed
};
struct AgentPlan {
  std::vector<PlanEntry> entries;
};

struct QuestionOption {
  std::string id;
  std::string name;
  std::string kind;  // allow_once, allow_always, reject_once, reject_always
};
// The agent asks whether it may do something.
struct AgentQuestion {
  std::string id;
  std::string title;
  std::string kind;
  std::string input;  // JSON
  std::vector<QuestionOption> options;
  bool is_open = false;  // else it was decided at once
};
struct QuestionDecided {
  std::string id;
  std::string decision;  // allow, deny, cancelled
  std::string option_id;
  std::string by;  // app, rule, expiry, cancel
};

// What a turn was asked.
struct AskedPrompt {
  std::int64_t turn_index = 0;
  std::optional<std::string> prompt;  // none: the gateway keeps none
};

// How a turn ended.
struct ChatTurnEnd {
  bool is_ok = false;
  std::int64_t turn_index = 0;
  std::string stop_reason;
  std::string code;   // of a failure
  std::string error;  // its sentence
  std::optional<std::int64_t> input_tokens;
  std::optional<std::int64_t> output_tokens;
  std::optional<double> cost_usd;
  double seconds = 0;
  bool is_resumed = false;    // the agent was started again, and knows the conversation
  bool is_forgotten = false;  // it was started again, and does not know it
};

// Some of what was told was removed by retention.
struct ToldGap {};
// The gateway ends or cuts this reader off; the reader comes back.
struct ReaderCut {};
// What a chat does not show.
struct Unshown {};

using ChatEvent = std::variant<Unshown, AgentText, AgentThought, ToolNews, AgentPlan, AgentQuestion,
                               QuestionDecided, AskedPrompt, ChatTurnEnd, ToldGap, ReaderCut>;

// Of one event of a stream: its name and its data. What cannot be read is Unshown.
ChatEvent read_chat_event(std::string_view name, std::string_view data);

// The open questions that GET /sessions/{id}/permissions lists.
std::vector<AgentQuestion> read_open_questions(std::string_view body);

}  // namespace clawdforge
