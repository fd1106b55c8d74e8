// Diagnosis is what `clawdforge doctor` has found: lines that are good, a warning or bad, each with
// what to do as a command to copy. A value of the command; one thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace clawdforge {

enum class Verdict { good, warning, bad };

struct DiagnosisLine {
  Verdict verdict = Verdict::good;
  std::string check;   // its name is stable: scripts may match on it
  std::string says;    // one line
  std::string remedy;  // a command to copy, or what to change; empty: nothing to do
};

class Diagnosis {
 public:
  void good(std::string check, std::string says, std::string remedy = {}) {
    lines_.push_back({Verdict::good, std::move(check), std::move(says), std::move(remedy)});
  }
  void warn(std::string check, std::string says, std::string remedy) {
    lines_.push_back({Verdict::warning, std::move(check), std::move(says), std::move(remedy)});
  }
  void bad(std::string check, std::string says, std::string remedy) {
    lines_.push_back({Verdict::bad, std::move(check), std::move(says), std::move(remedy)});
  }

  const std::vector<DiagnosisLine>& lines() const { return lines_; }
  Verdict worst() const;

 private:
  std::vector<DiagnosisLine> lines_;
};

std::string_view name_of(Verdict verdict);
// Of the command: 0 all is good, 1 warnings, 2 something is bad.
int exit_code_of(Verdict verdict);

// For a person, one or two lines each.
std::string readable_text(const Diagnosis& diagnosis, bool has_colour);
// For a pipe: a heading, then columns separated by tabs.
std::string table_text(const Diagnosis& diagnosis);
std::string json_text(const Diagnosis& diagnosis);

}  // namespace clawdforge
