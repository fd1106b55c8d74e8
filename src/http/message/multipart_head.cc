#include "http/message/multipart_head.h"

#include <algorithm>
#include <vector>

#include "http/message/request.h"

namespace clawdforge {
namespace {

constexpr std::size_t kBoundaryBytesMax = 70;  // RFC 2046
constexpr std::size_t kPartHeadersMax = 16;

struct Parameter {
  std::string_view name;
  std::string value;
};

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(" \t"), text.size());
  text.remove_prefix(begin);
  return text.substr(0, text.find_last_not_of(" \t") + 1);
}

bool is_visible(char c) { return c > ' ' && c != '\x7f'; }

bool is_name_char(char c) {
  return is_visible(c) && std::string_view("\"(),/:;<=>?@[\\]{}").find(c) == std::string_view::npos;
}

bool is_boundary_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("'()+_,-./:=? ").find(c) != std::string_view::npos;
}

// Takes a quoted string from the front of `text`. A backslash stands for itself unless it
// stands before a quote or a backslash: some callers send paths. None: it has no end.
std::optional<std::string> take_quoted(std::string_view& text) {
  std::string value;
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '"') {
      text.remove_prefix(i + 1);
      return value;
    }
    const bool is_escape =
        text[i] == '\\' && i + 1 < text.size() && (text[i + 1] == '"' || text[i + 1] == '\\');
    if (is_escape) ++i;
    value += text[i];
  }
  return std::nullopt;
}

std::string take_word(std::string_view& text) {
  const std::string_view word = text.substr(0, std::min(text.find_first_of("; \t\""), text.size()));
  text.remove_prefix(word.size());
  return std::string(word);
}

// What follows the first word of a header: "; name=value; other="a value"". None: it is not
// of that form, or a name comes twice.
std::optional<std::vector<Parameter>> parse_parameters(std::string_view text) {
  std::vector<Parameter> found;
  for (text = trimmed(text); !text.empty(); text = trimmed(text)) {
    if (text.front() != ';') return std::nullopt;
    text = trimmed(text.substr(1));
    const std::size_t equals = text.find('=');
    if (equals == 0 || equals == text.npos) return std::nullopt;
    Parameter parameter{text.substr(0, equals), {}};
    if (!std::ranges::all_of(parameter.name, is_name_char)) return std::nullopt;
    text.remove_prefix(equals + 1);
    if (text.starts_with('"')) {
      auto value = take_quoted(text);
      if (!value) return std::nullopt;
      parameter.value = std::move(*value);
    } else {
      parameter.value = take_word(text);
      if (parameter.value.empty()) return std::nullopt;
    }
    const bool is_double = std::ranges::any_of(found, [&](const Parameter& other) {
      return equals_ignoring_case(other.name, parameter.name);
    });
    if (is_double) return std::nullopt;
    found.push_back(std::move(parameter));
  }
  return found;
}

// Browsers write a quote and a line's end in a name as %22, %0D and %0A, and nothing else.
std::string without_escapes(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::string_view escape = text.substr(i, 3);
    char c = text[i];
    if (escape == "%22") c = '"';
    if (equals_ignoring_case(escape, "%0D")) c = '\r';
    if (equals_ignoring_case(escape, "%0A")) c = '\n';
    if (c != text[i]) i += 2;
    plain += c;
  }
  return plain;
}

Result<void> read_disposition(std::string_view value, MultipartPart& part) {
  const std::string_view kind =
      value.substr(0, std::min(value.find_first_of("; \t"), value.size()));
  const auto parameters = parse_parameters(value.substr(kind.size()));
  if (!equals_ignoring_case(kind, "form-data") || !parameters) {
    return bad_multipart("A part's Content-Disposition is not valid.");
  }
  bool has_name = false;
  for (const Parameter& parameter : *parameters) {
    if (equals_ignoring_case(parameter.name, "name")) {
      part.name = without_escapes(parameter.value);
      has_name = true;
    } else if (equals_ignoring_case(parameter.name, "filename")) {
      part.filename = without_escapes(parameter.value);
    }
  }
  if (!has_name) return bad_multipart("A part's Content-Disposition has no name.");
  return {};
}

bool is_plain_encoding(std::string_view value) {
  return equals_ignoring_case(value, "binary") || equals_ignoring_case(value, "8bit") ||
         equals_ignoring_case(value, "7bit");
}

}  // namespace

std::unexpected<Failure> bad_multipart(const char* sentence) {
  return fail(Errc::malformed, "bad_multipart", sentence);
}

bool has_bare_line_end(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n' && (i == 0 || text[i - 1] != '\r')) return true;
    if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] != '\n') return true;
  }
  return false;
}

Result<std::string> multipart_boundary(std::string_view content_type) {
  const std::string_view type =
      content_type.substr(0, std::min(content_type.find_first_of("; \t"), content_type.size()));
  if (!equals_ignoring_case(type, "multipart/form-data")) {
    return fail(Errc::unsupported_type, "unsupported_content_type",
                "Send the body as multipart/form-data.");
  }
  const auto parameters = parse_parameters(content_type.substr(type.size()));
  if (!parameters) return bad_multipart("The Content-Type's parameters are not valid.");
  for (const Parameter& parameter : *parameters) {
    if (!equals_ignoring_case(parameter.name, "boundary")) continue;
    const std::string& value = parameter.value;
    if (value.empty() || value.size() > kBoundaryBytesMax || value.ends_with(' ') ||
        !std::ranges::all_of(value, is_boundary_char)) {
      return bad_multipart("The boundary must be 1 to 70 of the characters that RFC 2046 allows.");
    }
    return value;
  }
  return bad_multipart("The Content-Type has no boundary.");
}

Result<MultipartPart> parse_part_headers(std::string_view block) {
  if (has_bare_line_end(block)) {
    return bad_multipart("Lines of a multipart body must end in CRLF.");
  }
  MultipartPart part;
  bool has_disposition = false;
  bool has_type = false;
  std::size_t count = 0;
  while (!block.empty()) {
    const std::string_view line = block.substr(0, block.find("\r\n"));
    block.remove_prefix(std::min(line.size() + 2, block.size()));
    const std::string_view name = line.substr(0, line.find(':'));
    if (name.empty() || name.size() == line.size() || line.find('\0') != line.npos ||
        !std::ranges::all_of(name, is_name_char)) {
      return bad_multipart("A part's headers are not valid.");
    }
    if (++count > kPartHeadersMax) return bad_multipart("A part has too many headers.");
    const std::string_view value = trimmed(line.substr(name.size() + 1));
    if (equals_ignoring_case(name, "Content-Disposition")) {
      if (std::exchange(has_disposition, true)) {
        return bad_multipart("A part has more than one Content-Disposition.");
      }
      if (auto read = read_disposition(value, part); !read) return std::unexpected(read.error());
    } else if (equals_ignoring_case(name, "Content-Type")) {
      if (std::exchange(has_type, true)) {
        return bad_multipart("A part has more than one Content-Type.");
      }
      part.content_type = value;
    } else if (equals_ignoring_case(name, "Content-Transfer-Encoding") &&
               !is_plain_encoding(value)) {
      return bad_multipart("A part may not be encoded; send its bytes as they are.");
    }
  }
  if (!has_disposition) return bad_multipart("A part has no Content-Disposition.");
  return part;
}

}  // namespace clawdforge
