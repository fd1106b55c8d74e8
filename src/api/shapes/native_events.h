// The events of a turn as the native answer holds them: the agent's own messages (`acp`), or the
// few shapes that older clients read (`simple`).
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "model/app.h"
#include "transcript/event_collector.h"

namespace clawdforge {

class NativeEvents : public EventCollector {
 public:
  // JSON text of an array. Once, when the turn is over.
  virtual std::string take_json() = 0;
};

// The messages as they came, in their order.
class AcpEvents final : public NativeEvents {
 public:
  void add(std::string_view message) override;
  void clear() override { json_ = {}; }
  std::size_t bytes() const override { return json_.size(); }
  std::string take_json() override;

 private:
  std::string json_;  // without the closing bracket
};

std::shared_ptr<NativeEvents> native_events(EventFormat format);

}  // namespace clawdforge
