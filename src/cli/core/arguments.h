// The arguments of one command, read by its row: `--name value`, `--name=value`, flags, and words;
// after `--` all are words. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/core/command.h"

namespace clawdforge {

class Arguments {
 public:
  bool has(std::string_view option) const { return given_.contains(option); }
  // The last value given; empty: none.
  std::string text(std::string_view option) const;
  std::vector<std::string> all(std::string_view option) const;
  std::optional<std::int64_t> number(std::string_view option) const;

  const std::vector<std::string>& words() const { return words_; }
  std::string word(std::size_t index) const {
    return index < words_.size() ? words_[index] : std::string();
  }

 private:
  friend Asked<Arguments> parse_arguments(const Command& command,
                                          std::span<const std::string> given);

  std::map<std::string, std::vector<std::string>, std::less<>> given_;
  std::vector<std::string> words_;
};

// kExitUsage: what is wrong, with the nearest option for one that is not known.
Asked<Arguments> parse_arguments(const Command& command, std::span<const std::string> given);

// How many words a command takes, by the text of its arguments.
struct WordCount {
  std::size_t min = 0;
  std::size_t max = 0;
};
WordCount words_of(std::string_view arguments);

// Splits at spaces.
std::vector<std::string_view> split_words(std::string_view text);

// The candidate that `typed` was probably meant to be; empty: none is near.
std::string_view nearest(std::string_view typed, std::span<const std::string_view> candidates);

}  // namespace clawdforge
