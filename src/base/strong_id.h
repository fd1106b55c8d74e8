// An id that the compiler tells from ids of other nouns: a session's id is not an app's name,
// although both are text. It is made from text on purpose only, and gives its text on purpose
// only. Plain values, any thread.
#pragma once

#include <fmt/format.h>

#include <compare>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace clawdforge {

template <class Noun>
class StrongId {
 public:
  StrongId() = default;  // empty: no id yet, or none
  explicit StrongId(std::string text) : text_(std::move(text)) {}

  const std::string& str() const& { return text_; }
  std::string str() && { return std::move(text_); }
  explicit operator std::string_view() const& { return text_; }
  bool empty() const { return text_.empty(); }

  auto operator<=>(const StrongId&) const = default;
  bool operator==(const StrongId&) const = default;
  bool operator==(std::string_view text) const { return text_ == text; }

 private:
  std::string text_;
};

using AppName = StrongId<struct AppNoun>;
using RunId = StrongId<struct RunNoun>;
using SessionId = StrongId<struct SessionNoun>;
using DeliveryId = StrongId<struct DeliveryNoun>;
// Of one life of the gateway's process.
using InstanceId = StrongId<struct InstanceNoun>;

}  // namespace clawdforge

template <class Noun>
struct std::hash<clawdforge::StrongId<Noun>> {
  std::size_t operator()(const clawdforge::StrongId<Noun>& id) const noexcept {
    return std::hash<std::string>()(id.str());
  }
};

template <class Noun>
struct fmt::formatter<clawdforge::StrongId<Noun>> : fmt::formatter<std::string_view> {
  auto format(const clawdforge::StrongId<Noun>& id, fmt::format_context& context) const {
    return fmt::formatter<std::string_view>::format(id.str(), context);
  }
};
