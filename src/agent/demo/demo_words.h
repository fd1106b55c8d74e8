// What the demo agent does with a prompt. Words are looked for as they stand between
// blanks, without punctuation around them and whatever their case; a path holds none.
//
//   think        a thought before the answer
//   plan         a plan of three entries
//   tool         a tool call of kind read that is done
//   permission   asks whether it may run a tool of kind execute, and says what it was told;
//                `permission read` (edit, ...) asks for a tool of that kind
//   slow         ten pieces of text, 200 ms apart; `slow N`: N of them
//   long         a thousand pieces of text at once; `long N`: N of them
//   remember X   as the first word: says that it will; every prompt is remembered anyway
//   what do you remember
//                what was said earlier in this conversation
//   model        which model and which effort are set
//   system       the system prompt that it was given
//   fail         an error in place of an answer
//   crash        ends with exit code 3 in the middle of its answer
//
// Several go together, shown in this order; of the words that make an answer each adds a
// sentence. Without any of those the answer is "You said: " and the prompt. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace clawdforge {

struct DemoWish {
  bool is_fail = false;
  bool is_crash = false;
  bool is_think = false;
  bool is_plan = false;
  bool is_tool = false;
  std::optional<std::string> permission;  // the kind of the tool
  std::int64_t slow_count = 0;
  std::int64_t long_count = 0;
  std::optional<std::string> to_remember;
  bool is_recall = false;
  bool is_model = false;
  bool is_system = false;
};

DemoWish demo_wish(std::string_view prompt);

}  // namespace clawdforge
