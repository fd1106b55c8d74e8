#include "cli/terminal/highlight.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/text.h"

namespace clawdforge {
namespace {

constexpr TextStyle kComment{.colour = Colour::normal, .is_dim = true};
constexpr TextStyle kString{.colour = Colour::green};
constexpr TextStyle kNumber{.colour = Colour::cyan};
constexpr TextStyle kKeyword{.colour = Colour::blue, .is_bold = true};
constexpr TextStyle kAdded{.colour = Colour::green};
constexpr TextStyle kRemoved{.colour = Colour::red};
constexpr TextStyle kPlace{.colour = Colour::cyan};

struct Family {
  std::string_view languages;  // between blanks
  std::string_view line_comment;
  std::string_view block_begin;
  std::string_view block_end;
  std::string_view quotes;
  std::string_view keywords;  // between blanks
};

constexpr std::string_view kCurlyWords =
    " abstract as async await auto bool break case catch char class concept const constexpr "
    "continue co_await co_return co_yield crate default defer delete do double dyn else enum "
    "explicit export extends extern false final finally float fn for friend func function go goto "
    "if impl implements import in inline instanceof int interface let long loop map match mod move "
    "mut namespace new nil noexcept null nullptr operator override package private protected pub "
    "public range ref requires return select self short signed sizeof static struct super switch "
    "template this throw throws trait true try type typedef typename union unsafe unsigned use "
    "using var virtual void volatile where while yield ";

constexpr std::array<Family, 5> kFamilies = {{
    {" c h cc cpp c++ cxx hpp java js jsx javascript ts tsx typescript go golang rust rs cs csharp "
     "kotlin swift php scala dart json jsonc css proto ",
     "//", "/*", "*/", "\"'`", kCurlyWords},
    {" py python sh bash zsh shell console rb ruby perl r make makefile cmake dockerfile elixir ",
     "#",
     {},
     {},
     "\"'",
     " and as assert async await break case class continue def del do done elif else elsif end "
     "esac except exit export false False fi finally for from function global if import in is "
     "lambda local module nil None nonlocal not or pass raise require return self set then true "
     "True try unless until while with yield "},
    {" yaml yml toml ini conf env ", "#", {}, {}, "\"'", " true false null yes no on off "},
    {" sql sqlite postgres mysql ", "--", "/*", "*/", "'\"",
     " add all alter and as asc begin between by case commit create cross default delete desc "
     "distinct drop else end exists from full group having in index inner insert into is join key "
     "left like limit not null offset on or order outer primary references returning right "
     "rollback select set table then union unique update values view when where with "},
    {" lua haskell hs ada ",
     "--",
     {},
     {},
     "\"'",
     " and break case class data deriving do else elseif end false for function if import in "
     "instance let local module nil not of or repeat return then true type until where while "},
}};

bool has_word(std::string_view words, std::string_view word) {
  for (std::size_t at = words.find(word); at != std::string_view::npos;
       at = words.find(word, at + 1)) {
    if (at > 0 && words[at - 1] == ' ' && words[at + word.size()] == ' ') return true;
  }
  return false;
}

bool is_word_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit_char(char c) { return c >= '0' && c <= '9'; }
bool is_word_char(char c) { return is_word_start(c) || is_digit_char(c); }

class CodeLexer {
 public:
  explicit CodeLexer(const Family& family)
      : family_(family), is_sql_(family.line_comment == "--" && !family.block_begin.empty()) {}

  StyledText line(std::string_view rest) {
    StyledText out;
    while (!rest.empty()) {
      const auto [length, style] = token(rest);
      append_span(out, rest.substr(0, length), style);
      rest.remove_prefix(length);
    }
    return out;
  }

 private:
  struct Token {
    std::size_t length;
    TextStyle style;
  };

  Token token(std::string_view rest) {
    if (is_in_comment_) return comment_rest(rest, 0);
    if (!family_.line_comment.empty() && rest.starts_with(family_.line_comment)) {
      return {rest.size(), kComment};
    }
    if (!family_.block_begin.empty() && rest.starts_with(family_.block_begin)) {
      is_in_comment_ = true;
      return comment_rest(rest, family_.block_begin.size());
    }
    if (family_.quotes.contains(rest.front())) return quoted(rest);
    if (is_digit_char(rest.front())) return {word_length(rest, true), kNumber};
    if (is_word_start(rest.front())) return word(rest);
    return {1, {}};
  }

  Token comment_rest(std::string_view rest, std::size_t from) {
    const std::size_t end = rest.find(family_.block_end, from);
    if (end == std::string_view::npos) return {rest.size(), kComment};
    is_in_comment_ = false;
    return {end + family_.block_end.size(), kComment};
  }

  static Token quoted(std::string_view rest) {
    std::size_t i = 1;
    while (i < rest.size() && rest[i] != rest.front()) i += rest[i] == '\\' ? 2 : 1;
    return {std::min(i + 1, rest.size()), kString};
  }

  static std::size_t word_length(std::string_view rest, bool with_dots) {
    const auto end = std::ranges::find_if_not(
        rest, [&](char c) { return is_word_char(c) || (with_dots && c == '.'); });
    return static_cast<std::size_t>(end - rest.begin());
  }

  Token word(std::string_view rest) const {
    const std::size_t length = word_length(rest, false);
    std::string name(rest.substr(0, length));
    if (is_sql_) std::ranges::transform(name, name.begin(), lower_case);
    return {length, has_word(family_.keywords, name) ? kKeyword : TextStyle{}};
  }

  const Family& family_;
  bool is_sql_;
  bool is_in_comment_ = false;
};

StyledText diff_line(std::string_view line) {
  TextStyle style;
  if (line.starts_with('+')) style = kAdded;
  if (line.starts_with('-')) style = kRemoved;
  if (line.starts_with("@@")) style = kPlace;
  StyledText out;
  append_span(out, line, style);
  return out;
}

const Family* family_of(std::string_view language) {
  std::string name(language);
  std::ranges::transform(name, name.begin(), lower_case);
  if (name.empty()) return nullptr;
  const auto found = std::ranges::find_if(
      kFamilies, [&](const Family& family) { return has_word(family.languages, name); });
  return found == kFamilies.end() ? nullptr : &*found;
}

}  // namespace

StyledLines highlight(std::string_view code, std::string_view language) {
  const Family* const family = family_of(language);
  const bool is_diff = language == "diff" || language == "patch";
  CodeLexer lexer(family != nullptr ? *family : kFamilies.front());
  StyledLines lines;
  if (code.ends_with('\n')) code.remove_suffix(1);
  for (bool is_last = false; !is_last;) {
    const std::size_t end = code.find('\n');
    is_last = end == std::string_view::npos;
    const std::string_view line = code.substr(0, end);
    if (is_diff) {
      lines.push_back(diff_line(line));
    } else if (family != nullptr) {
      lines.push_back(lexer.line(line));
    } else {
      lines.emplace_back();
      append_span(lines.back(), line);
    }
    if (!is_last) code.remove_prefix(end + 1);
  }
  return lines;
}

}  // namespace clawdforge
