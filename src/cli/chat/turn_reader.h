// Asks a turn and reads what is told of it, on a thread of its own, until the turn has ended. A
// lost connection, and a gateway that starts again, is healed here: the reader comes back with the
// id of the last event that it has, so nothing is missed or told twice.
//
// Owned by the chat; its end stops the thread. The queue holds the reader back when the chat does
// not take what it has.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "base/descriptor.h"
#include "cli/core/ask.h"
#include "cli/dialogue/chat_event.h"
#include "client/event_parser.h"

namespace clawdforge {

inline constexpr std::size_t kQueuedNewsMax = 16'384;

struct TurnOrder {
  std::string session_id{};
  std::string body{};             // of the turn's request; empty: follow the turn that runs
  std::uint64_t after = 0;        // the last event that is known
  std::int64_t turns_before = 0;  // turns that the session had when the order was made
  bool keeps_raw = false;         // with the events as they came
};

struct TurnNews {
  ChatEvent event{};
  std::string raw{};                   // the event as one line of JSON
  std::string note{};                  // a sentence about the connection
  std::optional<Complaint> refusal{};  // the turn was refused, or the reader has given up
};

class TurnReader {
 public:
  using FindGateway = std::function<Asked<Destination>()>;

  TurnReader(TurnOrder order, FindGateway find);
  ~TurnReader();
  TurnReader(const TurnReader&) = delete;
  TurnReader& operator=(const TurnReader&) = delete;

  // Readable when there is news.
  int descriptor() const { return wake_.number(); }
  // What has come since the last call.
  std::vector<TurnNews> take();
  // Nothing more will come after what was taken.
  bool has_ended();
  bool is_away();
  std::uint64_t last_id();

 private:
  enum class Step { ended, follow, again };

  void run();
  Step ask_turn(const Destination& to);
  Step follow(const Destination& to);
  Step look_for_turn(const Destination& to);
  Result<ClientAnswer> stream(const Destination& to, ClientRequest request);
  void take_event(const ServerEvent& event);
  void push(TurnNews news);
  void refuse(Complaint complaint);
  bool wait_a_moment();
  void come_back();
  void set_away(bool is_away);

  TurnOrder order_;
  FindGateway find_;
  Descriptor wake_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<TurnNews> queue_;
  std::unique_ptr<StreamCall> call_;
  bool is_stopped_ = false;
  bool has_ended_ = false;
  bool is_away_ = false;
  bool saw_end_ = false;  // the reader thread's own
  std::uint64_t last_id_ = 0;
  std::size_t tries_ = 0;
  std::thread thread_;
};

}  // namespace clawdforge
