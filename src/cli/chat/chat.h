// A chat with an agent: reads prompts, asks turns, shows what comes, answers questions, until the
// user leaves. One object for a process: it takes the signals and the terminal. Blocks.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "cli/chat/chat_session.h"
#include "cli/chat/chat_view.h"
#include "cli/chat/line_editor.h"
#include "cli/chat/pipe_lines.h"
#include "cli/chat/turn_reader.h"
#include "cli/core/invocation.h"

namespace clawdforge {

inline constexpr std::size_t kTypedAheadMax = 4096;   // keys that wait for the end of a turn
inline constexpr std::uint64_t kTailEventsMax = 300;  // of a session that is taken up again
inline constexpr std::size_t kExportBytesMax = 64 * 1024 * 1024;

struct ChatSettings {
  SessionWish wish;
  std::string session_id;    // empty: another session is made
  bool is_terminal = false;  // standard input and output are
  bool is_live = false;      // live lines and colours
  bool as_json = false;
  std::string history_file;
};

class Chat {
 public:
  Chat(Destination gateway, TurnReader::FindGateway find, ChatSettings settings);
  ~Chat();

  Done run();

 private:
  Asked<void> begin();
  Asked<void> take_up(const std::string& id);
  void say_who();
  ReadLine next_prompt();
  void take_line(const std::string& line);

  // A turn, and what happens while it runs.
  void run_turn(const std::string& prompt);
  std::optional<std::string> turn_body(const std::string& prompt);
  void watch(TurnReader& reader);
  void take_news(std::vector<TurnNews> news);
  std::string status(TurnReader& reader) const;
  void take_keys();
  void take_question_line();
  void answer_question(char key);
  void cancel_turn();
  // True: the line that is being edited is given up.
  bool take_signals();
  void fail_with(const Complaint& complaint);

  // The commands; each gets what follows its name.
  bool take_command(const std::string& line);
  void show_help();
  void show_files();
  void show_state();
  void show_usage();
  void show_agents(const std::string& wanted);
  void show_model(const std::string& wanted);
  void expand(const std::string& which);
  void export_to(const std::string& path);
  void begin_again();
  void close_session();
  void say(std::string_view text);

  Destination gateway_;
  TurnReader::FindGateway find_;
  ChatSettings settings_;
  ChatSession session_;
  ChatView view_;
  std::unique_ptr<LineEditor> editor_;
  PipeLines lines_;
  Descriptor signals_;
  std::string typed_ahead_;
  std::set<std::string> answered_;               // questions of the running turn
  std::map<std::int64_t, std::string> prompts_;  // of this chat, by turn; for /export
  std::string status_;
  std::uint64_t last_event_ = 0;
  std::int64_t turn_count_ = 0;
  std::chrono::steady_clock::time_point began_{};
  int exit_code_ = 0;
  bool is_in_turn_ = false;
  bool is_cancelled_ = false;
  bool is_leaving_ = false;
  bool is_closed_ = false;
};

// The names of the commands, for completion.
std::vector<std::string> chat_command_names();

}  // namespace clawdforge
