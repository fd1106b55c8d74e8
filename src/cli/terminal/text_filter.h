// Makes the text of an agent harmless for a terminal: it keeps what can be read, line feeds and
// tabs, and drops everything that a terminal would obey or that would show text in another order
// than it is written. Text may come in pieces that end anywhere, also within a character or an
// escape code. Pure; one filter for one stream of text.
//
// Dropped: C0 and C1 control characters, DEL; escape codes with all that belongs to them; bidi
// embeddings, overrides and isolates; invisible tags, byte order marks, interlinear annotations.
// Bytes that are not UTF-8 become U+FFFD; CR LF, a lone CR and the Unicode line ends become LF.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace clawdforge {

// What of an escape code's own text is dropped at most. A code that does not end must not hide all
// that follows; what is shown then is harmless, because its beginning is gone.
inline constexpr std::size_t kEscapeCharactersMax = 256;

class TextFilter {
 public:
  std::string feed(std::string_view piece);
  // The stream has ended: what is left of a cut character.
  std::string finish();

 private:
  enum class State { text, escape, charset, csi, string, string_escape };

  void take(char32_t code, std::string& out);
  void take_text(char32_t code, std::string& out);
  void take_escape(char32_t code, std::string& out);
  void begin(State state);

  State state_ = State::text;
  std::string cut_;  // the beginning of a character whose end has not come; at most 3 bytes
  std::size_t swallowed_ = 0;
  bool is_after_cr_ = false;
};

// For a text that is whole.
std::string filter_text(std::string_view text);
// The same in one line: line ends and tabs become blanks.
std::string filter_line(std::string_view text);

}  // namespace clawdforge
