#include "cli/terminal/text_filter.h"

#include <algorithm>

#include "cli/terminal/utf8.h"

namespace clawdforge {
namespace {

constexpr char32_t kEscape = 0x1B;

bool is_unwanted(char32_t c) {
  return (c >= 0x202A && c <= 0x202E) ||  // bidi embeddings and overrides
         (c >= 0x2066 && c <= 0x2069) ||  // bidi isolates
         (c >= 0x206A && c <= 0x206F) ||  // deprecated format characters
         c == 0x200E || c == 0x200F || c == 0x061C || c == 0xFEFF || c == 0x00AD ||
         (c >= 0xFFF9 && c <= 0xFFFB) ||  // interlinear annotations
         (c >= 0xE0000 && c <= 0xE0FFF);  // tags and further variation selectors
}

bool is_plain_ascii(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x20 && byte < 0x7F;
}

// How many of the last bytes are the beginning of a character that is not whole.
std::size_t cut_length(std::string_view text) {
  const std::size_t looked = std::min<std::size_t>(text.size(), 3);
  for (std::size_t back = 1; back <= looked; ++back) {
    const char c = text[text.size() - back];
    if ((static_cast<unsigned char>(c) & 0xC0U) == 0x80U) continue;
    return utf8_length(c) > back ? back : 0;
  }
  return 0;
}

}  // namespace

std::string TextFilter::feed(std::string_view piece) {
  std::string joined;
  if (!cut_.empty()) {
    joined = std::move(cut_);
    cut_.clear();
    joined += piece;
    piece = joined;
  }
  const std::size_t cut = cut_length(piece);
  cut_ = piece.substr(piece.size() - cut);
  piece.remove_suffix(cut);
  std::string out;
  out.reserve(piece.size());
  while (!piece.empty()) {
    if (state_ == State::text) {  // nearly all text is this
      const auto end = std::ranges::find_if_not(piece, is_plain_ascii);
      const auto count = static_cast<std::size_t>(end - piece.begin());
      if (count > 0) {
        out.append(piece.substr(0, count));
        piece.remove_prefix(count);
        is_after_cr_ = false;
        continue;
      }
    }
    take(take_code_point(piece), out);
  }
  return out;
}

std::string TextFilter::finish() {
  const bool is_cut = !cut_.empty();
  *this = TextFilter();
  std::string out;
  if (is_cut) append_utf8(out, kReplacementCharacter);
  return out;
}

void TextFilter::begin(State state) {
  state_ = state;
  swallowed_ = 0;
}

void TextFilter::take(char32_t code, std::string& out) {
  if (state_ == State::text) return take_text(code, out);
  // Text never waits for the end of a code for longer than a line.
  if (code == '\n' || code == '\r' || ++swallowed_ > kEscapeCharactersMax) {
    state_ = State::text;
    return take_text(code, out);
  }
  take_escape(code, out);
}

void TextFilter::take_text(char32_t code, std::string& out) {
  const bool is_line_feed_of_cr = code == '\n' && is_after_cr_;
  is_after_cr_ = code == '\r';
  if (is_line_feed_of_cr) return;
  if (code == '\r' || code == '\n' || code == 0x85 || code == 0x2028 || code == 0x2029) {
    out += '\n';
  } else if (code == '\t') {
    out += '\t';
  } else if (code == kEscape) {
    begin(State::escape);
  } else if (code == 0x9B) {
    begin(State::csi);
  } else if (code == 0x90 || code == 0x98 || (code >= 0x9D && code <= 0x9F)) {
    begin(State::string);  // DCS, SOS, OSC, PM, APC
  } else if (code >= 0x20 && !(code >= 0x7F && code < 0xA0) && !is_unwanted(code)) {
    append_utf8(out, code);
  }
}

void TextFilter::take_escape(char32_t code, std::string& out) {
  if (code == kEscape && state_ != State::string) return begin(State::escape);
  switch (state_) {
    case State::escape:
      if (code == '[') return begin(State::csi);
      if (code == ']' || code == 'P' || code == 'X' || code == '^' || code == '_') {
        return begin(State::string);
      }
      if (code >= 0x20 && code <= 0x2F) return begin(State::charset);
      state_ = State::text;
      if (code > 0x7E) take_text(code, out);  // it belongs to no escape code
      return;
    case State::charset:
      if (code >= 0x20 && code <= 0x2F) return;
      state_ = State::text;
      if (code > 0x7E) take_text(code, out);
      return;
    case State::csi:
      if (code >= 0x20 && code <= 0x3F) return;
      state_ = State::text;
      if (code > 0x7E) take_text(code, out);
      return;
    case State::string:
      if (code == 0x07 || code == 0x9C) state_ = State::text;
      if (code == kEscape) state_ = State::string_escape;
      return;
    case State::string_escape:  // ESC \ ends it; any other escape code takes its place
      state_ = State::escape;
      if (code == '\\')
        state_ = State::text;
      else
        take_escape(code, out);
      return;
    case State::text:
      return;
  }
}

std::string filter_text(std::string_view text) {
  TextFilter filter;
  std::string out = filter.feed(text);
  return out + filter.finish();
}

std::string filter_line(std::string_view text) {
  std::string out = filter_text(text);
  std::ranges::replace_if(out, [](char c) { return c == '\n' || c == '\t'; }, ' ');
  return out;
}

}  // namespace clawdforge
