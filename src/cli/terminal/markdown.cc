#include "cli/terminal/markdown.h"

#include <fmt/format.h>
#include <md4c.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <exception>
#include <vector>

#include "cli/terminal/highlight.h"
#include "cli/terminal/markdown_table.h"
#include "cli/terminal/text_filter.h"
#include "cli/terminal/utf8.h"

namespace clawdforge {
namespace {

constexpr TextStyle kDim{.is_dim = true};
constexpr TextStyle kLinkText{.is_underlined = true};
constexpr TextStyle kInlineCode{.colour = Colour::cyan};
constexpr std::size_t kContainersMax = 16;  // deeper quotes and lists are drawn at this depth

// An entity may be the number of a control character, so the filter looks at it, too.
std::string entity_text(std::string_view entity) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kNames = {
      {{"&amp;", "&"},
       {"&lt;", "<"},
       {"&gt;", ">"},
       {"&quot;", "\""},
       {"&apos;", "'"},
       {"&nbsp;", " "}}};
  for (const auto& [name, text] : kNames) {
    if (entity == name) return std::string(text);
  }
  if (!entity.starts_with("&#")) return std::string(entity);
  const bool is_hex = entity.size() > 2 && (entity[2] == 'x' || entity[2] == 'X');
  const std::string_view digits = entity.substr(is_hex ? 3 : 2);
  std::uint32_t code = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), code, is_hex ? 16 : 10);
  std::string text;
  append_utf8(text, code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF) ? kReplacementCharacter
                                                                          : char32_t{code});
  return filter_line(text);
}

std::string attribute_text(const MD_ATTRIBUTE& attribute) {
  std::string out;
  if (attribute.text == nullptr) return out;
  for (std::size_t i = 0; attribute.substr_offsets[i] < attribute.size; ++i) {
    const MD_OFFSET from = attribute.substr_offsets[i];
    const std::string_view part(attribute.text + from, attribute.substr_offsets[i + 1] - from);
    out += attribute.substr_types[i] == MD_TEXT_ENTITY ? entity_text(part) : std::string(part);
  }
  return out;
}

// What stands in front of the lines of a list item or a quote.
struct Container {
  StyledText first;
  StyledText next;
  bool is_begun = false;
};

struct ListState {
  bool is_ordered = false;
  bool is_tight = true;
  std::uint64_t number = 1;
};

class Renderer {
 public:
  explicit Renderer(std::size_t columns) : columns_(columns) {}

  StyledLines take() {
    flush();
    return std::move(lines_);
  }

  void enter(MD_BLOCKTYPE type, const void* detail);
  void leave(MD_BLOCKTYPE type);
  void enter_span(MD_SPANTYPE type, const void* detail);
  void leave_span(MD_SPANTYPE type);
  void text(MD_TEXTTYPE type, std::string_view text);

 private:
  void enter_item(const MD_BLOCK_LI_DETAIL& item);
  void push_container(StyledText first, StyledText next);
  StyledText prefix(bool is_first);
  void begin_block();
  void add_lines(StyledLines lines);
  void flush();
  void flush_code();
  void flush_table();
  bool is_in_tight_list() const { return !lists_.empty() && lists_.back().is_tight; }

  std::size_t columns_;
  StyledLines lines_;
  std::vector<Container> containers_;
  std::size_t hidden_containers_ = 0;
  std::vector<ListState> lists_;
  std::vector<TextStyle> styles_{TextStyle{}};
  std::vector<std::string> addresses_;
  std::vector<std::string> link_texts_;
  StyledText inline_;
  std::string code_;
  std::string language_;
  bool is_code_ = false;
  bool wants_gap_ = false;
  MarkdownTable table_;
};

void Renderer::push_container(StyledText first, StyledText next) {
  if (containers_.size() >= kContainersMax) {
    ++hidden_containers_;
    return;
  }
  containers_.push_back({std::move(first), std::move(next), false});
}

StyledText Renderer::prefix(bool is_first) {
  StyledText out;
  for (Container& container : containers_) {
    const bool shows_first = is_first && !container.is_begun;
    append_spans(out, shows_first ? container.first : container.next);
    if (is_first) container.is_begun = true;
  }
  return out;
}

void Renderer::begin_block() {
  if (!wants_gap_ || lines_.empty()) return;
  wants_gap_ = false;
  StyledText gap;
  for (const Container& container : containers_) {
    if (container.is_begun) append_spans(gap, container.next);
  }
  while (!gap.empty() && gap.back().text.find_first_not_of(' ') == std::string::npos)
    gap.pop_back();
  lines_.push_back(std::move(gap));
}

void Renderer::add_lines(StyledLines lines) {
  std::ranges::move(lines, std::back_inserter(lines_));
}

void Renderer::flush() {
  if (inline_.empty()) return;
  begin_block();
  const StyledText first = prefix(true);
  add_lines(wrap(inline_, columns_, first, prefix(false)));
  inline_.clear();
}

void Renderer::flush_code() {
  begin_block();
  const StyledText indent = {{"  ", {}}};
  if (!language_.empty()) {
    StyledText label = prefix(true);
    append_span(label, "┄ " + language_, kDim);
    lines_.push_back(cut_to_width(label, columns_));
  }
  for (const StyledText& line : highlight(code_, language_)) {
    StyledText first = prefix(true);
    append_spans(first, indent);
    StyledText next = prefix(false);
    append_span(next, "  ");
    add_lines(wrap_hard(line, columns_, first, next));
  }
  code_.clear();
  is_code_ = false;
}

void Renderer::flush_table() {
  begin_block();
  const std::size_t taken = width_of(prefix(false));
  for (const StyledText& row : table_.lines(columns_ > taken ? columns_ - taken : 1)) {
    StyledText line = prefix(true);
    append_spans(line, row);
    lines_.push_back(std::move(line));
  }
  table_ = MarkdownTable();
}

void Renderer::enter_item(const MD_BLOCK_LI_DETAIL& item) {
  ListState& list = lists_.back();
  std::string mark = "• ";
  if (list.is_ordered) mark = fmt::format("{}. ", list.number++);
  if (item.is_task != 0) mark = item.task_mark == ' ' ? "☐ " : "☑ ";
  const std::size_t width = width_of({{mark, {}}});
  push_container({{mark, {.colour = Colour::cyan}}}, {{std::string(width, ' '), {}}});
}

void Renderer::enter(MD_BLOCKTYPE type, const void* detail) {
  switch (type) {
    case MD_BLOCK_QUOTE:
      flush();
      return push_container({{"│ ", kDim}}, {{"│ ", kDim}});
    case MD_BLOCK_UL: {
      flush();
      wants_gap_ = wants_gap_ && !is_in_tight_list();
      const auto& list = *static_cast<const MD_BLOCK_UL_DETAIL*>(detail);
      return lists_.push_back({false, list.is_tight != 0, 1});
    }
    case MD_BLOCK_OL: {
      flush();
      wants_gap_ = wants_gap_ && !is_in_tight_list();
      const auto& list = *static_cast<const MD_BLOCK_OL_DETAIL*>(detail);
      return lists_.push_back({true, list.is_tight != 0, list.start});
    }
    case MD_BLOCK_LI:
      return enter_item(*static_cast<const MD_BLOCK_LI_DETAIL*>(detail));
    case MD_BLOCK_H: {
      flush();
      const unsigned level = static_cast<const MD_BLOCK_H_DETAIL*>(detail)->level;
      styles_.push_back({.colour = level <= 2 ? Colour::magenta : Colour::normal,
                         .is_bold = true,
                         .is_underlined = level == 1});
      return;
    }
    case MD_BLOCK_CODE:
      flush();
      is_code_ = true;
      language_ = attribute_text(static_cast<const MD_BLOCK_CODE_DETAIL*>(detail)->lang);
      return;
    case MD_BLOCK_TH:
    case MD_BLOCK_TD:
      styles_.push_back({.is_bold = type == MD_BLOCK_TH});
      return table_.begin_cell(
          type == MD_BLOCK_TH,
          static_cast<const MD_BLOCK_TD_DETAIL*>(detail)->align == MD_ALIGN_RIGHT);
    case MD_BLOCK_TR:
      return table_.begin_row();
    case MD_BLOCK_DOC:
    case MD_BLOCK_HR:
    case MD_BLOCK_HTML:
    case MD_BLOCK_P:
    case MD_BLOCK_TABLE:
    case MD_BLOCK_THEAD:
    case MD_BLOCK_TBODY:
      return flush();
  }
}

void Renderer::leave(MD_BLOCKTYPE type) {
  switch (type) {
    case MD_BLOCK_QUOTE:
    case MD_BLOCK_LI:
      flush();
      if (hidden_containers_ > 0) {
        --hidden_containers_;
      } else {
        if (!containers_.back().is_begun) {  // an item without text still has its mark
          begin_block();
          lines_.push_back(prefix(true));
        }
        containers_.pop_back();
      }
      wants_gap_ = type == MD_BLOCK_QUOTE || !is_in_tight_list();
      return;
    case MD_BLOCK_UL:
    case MD_BLOCK_OL:
      lists_.pop_back();
      wants_gap_ = !is_in_tight_list();
      return;
    case MD_BLOCK_H:
      flush();
      styles_.pop_back();
      wants_gap_ = true;
      return;
    case MD_BLOCK_P:
      flush();
      wants_gap_ = true;
      return;
    case MD_BLOCK_CODE:
      flush_code();
      wants_gap_ = !is_in_tight_list();
      return;
    case MD_BLOCK_HR:
      begin_block();
      inline_ = {{"────────", kDim}};
      flush();
      wants_gap_ = true;
      return;
    case MD_BLOCK_TH:
    case MD_BLOCK_TD:
      styles_.pop_back();
      table_.set_cell(std::move(inline_));
      inline_.clear();
      return;
    case MD_BLOCK_TABLE:
      flush_table();
      wants_gap_ = true;
      return;
    case MD_BLOCK_DOC:
    case MD_BLOCK_HTML:
    case MD_BLOCK_THEAD:
    case MD_BLOCK_TBODY:
    case MD_BLOCK_TR:
      return;
  }
}

void Renderer::enter_span(MD_SPANTYPE type, const void* detail) {
  TextStyle style = styles_.back();
  if (type == MD_SPAN_EM) style.is_italic = true;
  if (type == MD_SPAN_STRONG) style.is_bold = true;
  if (type == MD_SPAN_DEL) style.is_dim = true;
  if (type == MD_SPAN_CODE) style.colour = kInlineCode.colour;
  if (type == MD_SPAN_A || type == MD_SPAN_IMG) {
    style.is_underlined = kLinkText.is_underlined;
    addresses_.push_back(attribute_text(type == MD_SPAN_A
                                            ? static_cast<const MD_SPAN_A_DETAIL*>(detail)->href
                                            : static_cast<const MD_SPAN_IMG_DETAIL*>(detail)->src));
    link_texts_.emplace_back();
    if (type == MD_SPAN_IMG) append_span(inline_, "image: ", kDim);
  }
  styles_.push_back(style);
}

void Renderer::leave_span(MD_SPANTYPE type) {
  styles_.pop_back();
  if (type != MD_SPAN_A && type != MD_SPAN_IMG) return;
  const std::string address = std::move(addresses_.back());
  const std::string shown = std::move(link_texts_.back());
  addresses_.pop_back();
  link_texts_.pop_back();
  // A plain address in the text is a link whose text is the address.
  if (shown == address || "http://" + shown == address || "mailto:" + shown == address) return;
  append_span(inline_, fmt::format(" ({})", address), kDim);
}

void Renderer::text(MD_TEXTTYPE type, std::string_view text) {
  if (is_code_) {
    code_ += text;
    return;
  }
  std::string shown(text);
  if (type == MD_TEXT_BR) shown = "\n";
  if (type == MD_TEXT_SOFTBR) shown = " ";
  if (type == MD_TEXT_NULLCHAR) shown = "\xEF\xBF\xBD";
  if (type == MD_TEXT_ENTITY) shown = entity_text(text);
  for (std::string& link : link_texts_) link += shown;
  append_span(inline_, shown, styles_.back());
}

// No exception may pass through the C library; what was drawn until then is shown.
template <class Call>
int guarded(void* renderer, Call call) {
  try {
    call(*static_cast<Renderer*>(renderer));
    return 0;
  } catch (const std::exception&) {
    return -1;
  }
}

}  // namespace

StyledLines render_markdown(std::string_view source, std::size_t columns) {
  Renderer renderer(columns);
  MD_PARSER parser{};
  parser.flags = MD_DIALECT_GITHUB | MD_FLAG_NOHTML;
  parser.enter_block = [](MD_BLOCKTYPE type, void* detail, void* data) {
    return guarded(data, [&](Renderer& r) { r.enter(type, detail); });
  };
  parser.leave_block = [](MD_BLOCKTYPE type, void*, void* data) {
    return guarded(data, [&](Renderer& r) { r.leave(type); });
  };
  parser.enter_span = [](MD_SPANTYPE type, void* detail, void* data) {
    return guarded(data, [&](Renderer& r) { r.enter_span(type, detail); });
  };
  parser.leave_span = [](MD_SPANTYPE type, void*, void* data) {
    return guarded(data, [&](Renderer& r) { r.leave_span(type); });
  };
  parser.text = [](MD_TEXTTYPE type, const MD_CHAR* text, MD_SIZE size, void* data) {
    return guarded(data, [&](Renderer& r) { r.text(type, {text, size}); });
  };
  md_parse(source.data(), static_cast<MD_SIZE>(source.size()), &parser, &renderer);
  return renderer.take();
}

}  // namespace clawdforge
