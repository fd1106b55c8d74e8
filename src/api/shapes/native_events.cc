#include "api/shapes/native_events.h"

#include <utility>

#include "api/shapes/simple_events.h"

namespace clawdforge {

void AcpEvents::add(std::string_view message) {
  json_ += json_.empty() ? '[' : ',';
  json_ += message;
}

std::string AcpEvents::take_json() {
  std::string json = std::exchange(json_, {});
  json += json.empty() ? "[]" : "]";
  return json;
}

std::shared_ptr<NativeEvents> native_events(EventFormat format) {
  if (format == EventFormat::simple) return std::make_shared<SimpleEvents>();
  return std::make_shared<AcpEvents>();
}

}  // namespace clawdforge
