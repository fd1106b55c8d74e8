// What a webhook is told, as JSON text: {"type":…,"timestamp":…,"data":…}. Pure.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace clawdforge {

// Of what an agent answered, in the data of an event.
inline constexpr std::size_t kEventAnswerBytesMax = 256 * 1024;

// `data` is the JSON text of an object. Who makes it leaves out an answer of more than
// kEventAnswerBytesMax.
std::shared_ptr<const std::string> event_body(std::string_view type, TimePoint at,
                                              std::string_view data);

}  // namespace clawdforge
