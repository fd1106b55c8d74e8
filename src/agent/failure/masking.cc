#include "agent/failure/masking.h"

#include <algorithm>
#include <array>

#include "base/json_text.h"

namespace clawdforge {
namespace {

constexpr std::string_view kMask = "***";
constexpr std::string_view kSpaces = " \t";

bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_alnum(char c) { return is_upper(c) || is_lower(c) || is_digit(c); }
char to_lower(char c) { return is_upper(c) ? static_cast<char>(c - 'A' + 'a') : c; }

// What a token is made of, but for dots, slashes and padding.
bool is_run(char c) { return is_alnum(c) || c == '_' || c == '-' || c == '+'; }

bool is_hex(char c) { return is_digit(c) || (to_lower(c) >= 'a' && to_lower(c) <= 'f'); }

bool equals_ignoring_case(std::string_view text, std::string_view lower) {
  return std::ranges::equal(text, lower, {}, to_lower);
}

// How the tokens of well-known services begin, and how many characters follow at least.
struct Prefix {
  std::string_view text;
  std::size_t more;
};
constexpr std::array kPrefixes = {
    Prefix{"sk-", 8},    Prefix{"cf_", 16},         Prefix{"ff_", 16},   Prefix{"ghp_", 16},
    Prefix{"gho_", 16},  Prefix{"ghu_", 16},        Prefix{"ghs_", 16},  Prefix{"ghr_", 16},
    Prefix{"glpat-", 8}, Prefix{"github_pat_", 16}, Prefix{"xoxa-", 8},  Prefix{"xoxb-", 8},
    Prefix{"xoxe-", 8},  Prefix{"xoxo-", 8},        Prefix{"xoxp-", 8},  Prefix{"xoxr-", 8},
    Prefix{"xoxs-", 8},  Prefix{"AIza", 30},        Prefix{"AKIA", 12},  Prefix{"ASIA", 12},
    Prefix{"npm_", 16},  Prefix{"hf_", 16},         Prefix{"pypi-", 16},
};

// Names whose value is a secret, in whatever spelling they end so.
constexpr std::array<std::string_view, 10> kSecretNames = {
    "token",      "api_key",    "api-key",     "apikey",     "access_key",
    "access-key", "secret_key", "private_key", "credential", "credentials"};
constexpr std::array<std::string_view, 4> kPasswordNames = {"password", "passwd", "passphrase",
                                                            "secret"};

template <std::size_t N>
bool ends_in(std::string_view name, const std::array<std::string_view, N>& endings) {
  return std::ranges::any_of(endings, [&](std::string_view ending) {
    return name.size() >= ending.size() &&
           equals_ignoring_case(name.substr(name.size() - ending.size()), ending);
  });
}

// Goes through a text once. Every step either copies or masks what it has looked at, and
// looks ahead no farther than it then goes, but for a bounded distance.
class Masker {
 public:
  explicit Masker(std::string_view text) : text_(text) {}

  std::string mask() {
    out_.reserve(text_.size());
    while (at_ < text_.size()) {
      if (is_run(text_[at_])) {
        take_run();
      } else if (text_.substr(at_).starts_with("://")) {
        take_address();
      } else {
        out_ += text_[at_++];
      }
    }
    return std::move(out_);
  }

 private:
  std::size_t end_of(std::size_t from, bool (*belongs)(char)) const {
    while (from < text_.size() && belongs(text_[from])) ++from;
    return from;
  }

  void copy_to(std::size_t end) {
    out_.append(text_, at_, end - at_);
    at_ = end;
  }
  void mask_to(std::size_t end) {
    out_ += kMask;
    at_ = end;
  }

  void take_run() {
    const std::size_t end = end_of(at_, is_run);
    const std::string_view run = text_.substr(at_, end - at_);
    if (run == "-----BEGIN") return take_pem(end);
    if (looks_random(run)) return mask_to(end_of(end, [](char c) { return c == '='; }));
    for (std::size_t word = at_; word < end; ++word) {
      if (word > at_ && is_alnum(text_[word - 1])) continue;
      if (starts_token(word, end)) {
        copy_to(word);
        return mask_to(end_of(end, [](char c) { return is_run(c) || c == '.' || c == '='; }));
      }
    }
    copy_to(end);
    if (equals_ignoring_case(run, "bearer") || equals_ignoring_case(run, "basic")) {
      take_scheme_value();
    } else if (ends_in(run, kPasswordNames)) {
      take_named_value(true);
    } else if (ends_in(run, kSecretNames)) {
      take_named_value(false);
    }
  }

  bool starts_token(std::size_t word, std::size_t end) const {
    const std::string_view rest = text_.substr(word, end - word);
    for (const Prefix& prefix : kPrefixes) {
      if (rest.starts_with(prefix.text) && rest.size() >= prefix.text.size() + prefix.more) {
        return true;
      }
    }
    // A JSON web token: its parts are base64 of JSON, with dots between them.
    return rest.starts_with("eyJ") && rest.size() >= 10 && end + 1 < text_.size() &&
           text_[end] == '.' && is_run(text_[end + 1]);
  }

  static bool looks_random(std::string_view run) {
    run.remove_prefix(std::min(run.find_first_not_of("-+_"), run.size()));
    if (run.size() < 40) return false;
    if (std::ranges::all_of(run, is_hex)) return run.size() > 40;
    return std::ranges::any_of(run, is_upper) && std::ranges::any_of(run, is_lower) &&
           std::ranges::any_of(run, is_digit);
  }

  // A private key, from its first line to its last, or to the end of the text.
  void take_pem(std::size_t end) {
    std::string_view line = text_.substr(at_, 80);
    line = line.substr(0, line.find('\n'));
    if (!line.contains("PRIVATE KEY")) return copy_to(end);
    const std::size_t last = text_.find("-----END", at_);
    if (last == std::string_view::npos) return mask_to(text_.size());
    mask_to(std::min(text_.find('\n', last), text_.size()));
  }

  // The spaces at `from`, a few at most.
  std::size_t behind_spaces(std::size_t from) const {
    const std::size_t most = std::min(text_.size(), from + 4);
    while (from < most && kSpaces.contains(text_[from])) ++from;
    return from;
  }

  // "Bearer VALUE": prose follows the word, too.
  void take_scheme_value() {
    const std::size_t begin = behind_spaces(at_);
    if (begin == at_) return;
    const std::size_t end = end_of(
        begin, [](char c) { return is_run(c) || c == '.' || c == '/' || c == '~' || c == '='; });
    const std::string_view value = text_.substr(begin, end - begin);
    if (value.size() < 8 || (value.size() < 20 && std::ranges::none_of(value, is_digit))) return;
    copy_to(begin);
    mask_to(end);
  }

  // NAME=VALUE, NAME: VALUE, "NAME": "VALUE". What follows a colon and a space may be
  // prose ("bad token: unexpected end"), unless the name is one of a password.
  void take_named_value(bool is_password) {
    std::size_t sign = at_;
    if (sign < text_.size() && (text_[sign] == '"' || text_[sign] == '\'')) ++sign;
    sign = behind_spaces(sign);
    if (sign >= text_.size() || (text_[sign] != '=' && text_[sign] != ':')) return;
    std::size_t begin = behind_spaces(sign + 1);
    const bool may_be_prose = text_[sign] == ':' && begin > sign + 1;
    char quote = 0;
    if (begin < text_.size() && (text_[begin] == '"' || text_[begin] == '\'')) {
      quote = text_[begin++];
    }
    std::size_t end = begin;
    while (end < text_.size() && is_value(text_[end], quote)) ++end;
    const std::string_view value = text_.substr(begin, end - begin);
    if (value.size() < 6) return;
    if (may_be_prose && quote == 0 && !is_password &&
        (value.size() < 8 || std::ranges::none_of(value, is_digit))) {
      return;
    }
    copy_to(begin);
    mask_to(end);
  }

  static bool is_value(char c, char quote) {
    if (c == '\n') return false;
    if (quote != 0) return c != quote;
    return !std::string_view(" \t,;&\"'()[]{}<>").contains(c);
  }

  // SCHEME://USER:PASSWORD@HOST
  void take_address() {
    const std::size_t begin = at_ + 3;
    std::size_t end = begin;
    bool has_colon = false;
    while (end < text_.size() && !std::string_view(" \t\n/@\"'<>").contains(text_[end])) {
      has_colon = has_colon || text_[end] == ':';
      ++end;
    }
    copy_to(begin);
    if (has_colon && end < text_.size() && text_[end] == '@') mask_to(end);
  }

  const std::string_view text_;
  std::size_t at_ = 0;
  std::string out_;
};

void replace_all(std::string& text, std::string_view what) {
  std::string out;
  std::size_t at = 0;
  for (std::size_t found = text.find(what); found != std::string::npos;
       found = text.find(what, at)) {
    out.append(text, at, found - at).append(kMask);
    at = found + what.size();
  }
  if (at == 0) return;
  out.append(text, at);
  text = std::move(out);
}

// The first kMaskedLineBytesMax without a word or a secret that the cut goes through: half of it
// would not be recognised.
std::string_view beginning_of(std::string_view text, const std::vector<std::string>& secrets) {
  text = text.substr(0, kMaskedLineBytesMax);
  for (const std::string& secret : secrets) {
    for (std::size_t part = std::min(secret.size(), text.size()); part > 0; --part) {
      if (!text.ends_with(std::string_view(secret).substr(0, part))) continue;
      text.remove_suffix(part);
      break;
    }
  }
  // A word of more than this is not shown to its end, and is recognised by its beginning.
  constexpr std::size_t kWordBytesMax = 1024;
  const std::size_t word = text.find_last_of(" \t\n") + 1;  // 0: there is no blank
  return text.size() - word > kWordBytesMax ? text : text.substr(0, word);
}

}  // namespace

std::string valid_utf8(std::string_view bytes) {
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  std::string out;
  out.reserve(bytes.size());
  while (!bytes.empty()) {
    const auto plain =
        static_cast<std::size_t>(std::ranges::find_if(bytes, is_control) - bytes.begin());
    append_printable(out, bytes.substr(0, plain));
    if (plain < bytes.size()) out += bytes[plain];
    bytes.remove_prefix(std::min(plain + 1, bytes.size()));
  }
  return out;
}

std::string clean_text(std::string_view bytes) {
  std::string text(bytes);
  std::erase_if(text, [](char c) {
    return (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') || c == 0x7f;
  });
  return valid_utf8(text);
}

std::string masked(std::string_view bytes, const std::vector<std::string>& secrets) {
  std::string text = clean_text(bytes);
  for (const std::string& secret : secrets) {
    if (!secret.empty()) replace_all(text, secret);
  }
  return Masker(text).mask();
}

std::string masked_line(std::string_view bytes, std::size_t characters_max,
                        const std::vector<std::string>& secrets) {
  const bool is_cut = bytes.size() > kMaskedLineBytesMax;
  if (is_cut) bytes = beginning_of(bytes, secrets);
  std::string line;
  std::size_t characters = 0;
  std::size_t last_begins_at = 0;
  bool gap = false;
  const auto is_begin = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; };
  for (const char c : masked(bytes, secrets)) {
    if (c == ' ' || c == '\n' || c == '\t') {
      gap = !line.empty();
      continue;
    }
    for (const char add : {gap ? ' ' : '\0', c}) {
      if (add == '\0') continue;
      if (is_begin(add) && characters == characters_max) {
        line.resize(last_begins_at);
        return line + "…";
      }
      if (is_begin(add)) {
        last_begins_at = line.size();
        ++characters;
      }
      line += add;
    }
    gap = false;
  }
  if (!is_cut) return line;
  if (characters == characters_max) line.resize(last_begins_at);
  return line + "…";
}

}  // namespace clawdforge
