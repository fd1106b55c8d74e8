#include "agent/demo/demo_words.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

namespace clawdforge {
namespace {

constexpr std::int64_t kDemoSlowPiecesMax = 10'000;
constexpr std::int64_t kDemoLongPiecesMax = 1'000'000;
constexpr std::int64_t kSlowPieces = 10;
constexpr std::int64_t kLongPieces = 1'000;

constexpr std::string_view kBlanks = " \t\r\n\v\f";
constexpr std::string_view kPunctuation = ".,:;!?\"'`()[]<>";
constexpr std::array<std::string_view, 10> kToolKinds = {
    "read",    "edit",  "delete", "move",        "search",
    "execute", "think", "fetch",  "switch_mode", "other"};

struct Word {
  std::string text;     // lower case, without the punctuation around it
  std::size_t end = 0;  // where it ends in the prompt
};

std::string bare(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kPunctuation);
  if (begin == std::string_view::npos) return {};
  std::string word(text.substr(begin, text.find_last_not_of(kPunctuation) - begin + 1));
  for (char& c : word) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return word;
}

std::vector<Word> words_of(std::string_view prompt) {
  std::vector<Word> words;
  std::size_t begin = prompt.find_first_not_of(kBlanks);
  while (begin != std::string_view::npos) {
    const std::size_t end = std::min(prompt.find_first_of(kBlanks, begin), prompt.size());
    words.push_back({bare(prompt.substr(begin, end - begin)), end});
    begin = prompt.find_first_not_of(kBlanks, end);
  }
  return words;
}

// The number that `word` is, if it is one from 1 to `most`; else `fallback`.
std::int64_t count_of(std::string_view word, std::int64_t fallback, std::int64_t most) {
  std::int64_t number = 0;
  const auto [rest, fault] = std::from_chars(word.data(), word.data() + word.size(), number);
  const bool is_number = fault == std::errc() && rest == word.data() + word.size();
  return is_number && number >= 1 ? std::min(number, most) : fallback;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

bool is_question(const std::vector<Word>& words, std::size_t at) {
  constexpr std::array<std::string_view, 4> kQuestion = {"what", "do", "you", "remember"};
  if (at + kQuestion.size() > words.size()) return false;
  return std::equal(kQuestion.begin(), kQuestion.end(),
                    words.begin() + static_cast<std::ptrdiff_t>(at),
                    [](std::string_view wanted, const Word& word) { return word.text == wanted; });
}

}  // namespace

DemoWish demo_wish(std::string_view prompt) {
  DemoWish wish;
  const std::vector<Word> words = words_of(prompt);
  if (!words.empty() && words[0].text == "remember") {
    wish.to_remember = trimmed(prompt.substr(words[0].end));
    return wish;
  }
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i].text;
    const std::string_view next = i + 1 < words.size() ? words[i + 1].text : std::string_view();
    if (word == "permission") {
      const bool is_kind = std::ranges::find(kToolKinds, next) != kToolKinds.end();
      wish.permission = is_kind ? next : "execute";
      if (is_kind) ++i;
    } else if (word == "slow") {
      wish.slow_count = count_of(next, kSlowPieces, kDemoSlowPiecesMax);
    } else if (word == "long") {
      wish.long_count = count_of(next, kLongPieces, kDemoLongPiecesMax);
    }
    wish.is_recall = wish.is_recall || is_question(words, i);
    wish.is_fail = wish.is_fail || word == "fail";
    wish.is_crash = wish.is_crash || word == "crash";
    wish.is_think = wish.is_think || word == "think";
    wish.is_plan = wish.is_plan || word == "plan";
    wish.is_tool = wish.is_tool || word == "tool";
    wish.is_model = wish.is_model || word == "model";
    wish.is_system = wish.is_system || word == "system";
  }
  return wish;
}

}  // namespace clawdforge
