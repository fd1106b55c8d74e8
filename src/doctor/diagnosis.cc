#include "doctor/diagnosis.h"

#include <fmt/format.h>

#include <algorithm>

#include "json/json_members.h"

namespace clawdforge {
namespace {

// Paths and words of other programs must not give orders to a terminal, nor break a line.
std::string one_line(std::string_view text) {
  std::string line(text);
  std::ranges::replace_if(
      line, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, ' ');
  return line;
}

std::string_view colour_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::good:
      return "\x1b[32m";
    case Verdict::warning:
      return "\x1b[33m";
    case Verdict::bad:
      break;
  }
  return "\x1b[31m";
}

}  // namespace

Verdict Diagnosis::worst() const {
  Verdict worst = Verdict::good;
  for (const DiagnosisLine& line : lines_) worst = std::max(worst, line.verdict);
  return worst;
}

std::string_view name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::good:
      return "good";
    case Verdict::warning:
      return "warning";
    case Verdict::bad:
      break;
  }
  return "bad";
}

int exit_code_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::good:
      return 0;
    case Verdict::warning:
      return 1;
    case Verdict::bad:
      break;
  }
  return 2;
}

std::string readable_text(const Diagnosis& diagnosis, bool has_colour) {
  std::string text;
  for (const DiagnosisLine& line : diagnosis.lines()) {
    const std::string verdict = fmt::format("{:<7}", name_of(line.verdict));
    text += has_colour ? fmt::format("{}{}\x1b[0m", colour_of(line.verdict), verdict) : verdict;
    text += fmt::format("  {:<18} {}\n", line.check, one_line(line.says));
    if (!line.remedy.empty()) text += fmt::format("{:28} {}\n", "", one_line(line.remedy));
  }
  return text;
}

std::string table_text(const Diagnosis& diagnosis) {
  std::string text = "VERDICT\tCHECK\tWHAT\tDO\n";
  for (const DiagnosisLine& line : diagnosis.lines()) {
    text += fmt::format("{}\t{}\t{}\t{}\n", name_of(line.verdict), line.check, one_line(line.says),
                        one_line(line.remedy));
  }
  return text;
}

std::string json_text(const Diagnosis& diagnosis) {
  std::string out = "{";
  append_member(out, "verdict", name_of(diagnosis.worst()));
  append_name(out, "lines");
  out += '[';
  for (const DiagnosisLine& line : diagnosis.lines()) {
    out += out.back() == '[' ? "{" : ",{";
    append_member(out, "verdict", name_of(line.verdict));
    append_member(out, "check", line.check);
    append_member(out, "says", line.says);
    append_member(out, "remedy", unless_empty(line.remedy));
    out += '}';
  }
  return out + "]}\n";
}

}  // namespace clawdforge
