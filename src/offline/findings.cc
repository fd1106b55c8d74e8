#include "offline/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace clawdforge {
namespace {

constexpr std::size_t kExampleBytesMax = 200;

// An id may be anything that another program has written.
void append_example(std::string& out, std::string_view text) {
  for (const char c : text.substr(0, kExampleBytesMax)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f) {
      out += c;
    } else {
      fmt::format_to(std::back_inserter(out), "\\x{:02x}", byte);
    }
  }
  if (text.size() > kExampleBytesMax) out += "...";
}

}  // namespace

void Findings::begin(const Check&) { ++checks_; }

void Findings::note(const Check& check, std::string example, std::int64_t count) {
  auto found =
      std::ranges::find_if(all_, [&](const Finding& f) { return f.check.name == check.name; });
  if (found == all_.end()) found = all_.insert(all_.end(), Finding{check, 0, {}});
  found->count += count;
  if (found->examples.size() < kFindingExamplesMax) found->examples.push_back(std::move(example));
}

std::string line_of(const Finding& finding) {
  std::string line = fmt::format("finding {}: {}", finding.check.name, finding.check.sentence);
  std::string_view between = " (";
  for (const std::string& example : finding.examples) {
    line += between;
    append_example(line, example);
    between = ", ";
  }
  const std::int64_t more = finding.count - static_cast<std::int64_t>(finding.examples.size());
  if (more > 0) fmt::format_to(std::back_inserter(line), " and {} more", more);
  line += ')';
  return line;
}

}  // namespace clawdforge
