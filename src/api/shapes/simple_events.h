// A turn's events as the few shapes that older clients read: the native format `simple`.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/shapes/native_events.h"
#include "base/async/compute_worker.h"
#include "transcript/turn_event_reader.h"

namespace clawdforge {

// Adjacent pieces of the agent's message become {"type":"text","content"}, of its thoughts
// {"type":"thinking","content"}, a tool call with all that was said about it later
// {"type":"tool_call","name","args","result"} at the place of the call. The rest is dropped.
class SimpleEvents final : public NativeEvents {
 public:
  void add(std::string_view message) override;
  void clear() override;
  std::size_t bytes() const override { return bytes_; }
  std::size_t message_bytes_max() const override { return kComputeBytesMin; }

  std::string take_json() override;

 private:
  static constexpr std::string_view kNoResult = "null";

  enum class Shape { text, thinking, tool_call };
  // Texts are JSON already: escaping a large answer at its end would keep all others waiting.
  struct Simple {
    Shape shape = Shape::text;
    std::string content;    // of the first two: without quotes; of a tool call its name, with them
    bool is_named = false;  // not only titled
    std::string args = "{}";
    std::string result = std::string(kNoResult);
    std::string printed = {};  // of a command that tells nothing else: without quotes
    bool has_output = false;   // the result is the tool's own, not only what is shown of it
  };

  void add_text(Shape shape, std::string_view text);
  void add_tool(const ToolReport& report);
  void fill(Simple& tool, const ToolReport& report);
  void assign(std::string& part, std::string value);

  TurnEventReader reader_;
  std::vector<Simple> events_;
  std::map<std::string, std::size_t, std::less<>> tools_;  // places in events_, by id
  std::size_t bytes_ = 0;
};

// The same for messages that are there already.
std::string simple_events(std::span<const std::string> messages);

}  // namespace clawdforge
