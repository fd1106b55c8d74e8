#include "cli/chat/attachments.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "base/text.h"

namespace clawdforge {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kBlanks = " \t\n";

std::string with_home(const std::string& path) {
  const char* const home = std::getenv("HOME");
  if (home == nullptr || !path.starts_with("~/")) return path;
  return home + path.substr(1);
}

}  // namespace

std::vector<std::string> attached_paths(std::string_view prompt) {
  std::vector<std::string> paths;
  std::size_t at = 0;
  while (at < prompt.size() && paths.size() < kAttachmentsMax) {
    at = prompt.find_first_not_of(kBlanks, at);
    if (at == std::string_view::npos) break;
    std::size_t end = std::min(prompt.find_first_of(kBlanks, at), prompt.size());
    if (prompt[at] == '@') {
      std::string_view word = prompt.substr(at + 1, end - at - 1);
      if (word.starts_with('"')) {
        end = std::min(prompt.find('"', at + 2), prompt.size());
        word = prompt.substr(at + 2, end - at - 2);
        end = std::min(end + 1, prompt.size());
      }
      const std::string path = with_home(std::string(word));
      std::error_code error;
      if (!path.empty() && fs::is_regular_file(path, error) &&
          std::ranges::find(paths, path) == paths.end()) {
        paths.push_back(path);
      }
    }
    at = end;
  }
  return paths;
}

std::vector<std::string> path_completions(const std::string& begun) {
  const std::size_t slash = begun.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : begun.substr(0, slash + 1);
  const std::string start = slash == std::string::npos ? begun : begun.substr(slash + 1);
  std::vector<std::string> found;
  std::error_code error;
  const fs::path place = folder.empty() ? "." : with_home(folder);
  for (fs::directory_iterator it(place, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (!name.starts_with(start) || (start.empty() && name.starts_with('.'))) continue;
    std::error_code ignored;
    found.push_back(folder + name + (it->is_directory(ignored) ? "/" : ""));
    if (found.size() == kCompletionEntriesMax) break;
  }
  std::ranges::sort(found);
  return found;
}

std::string common_beginning(const std::vector<std::string>& texts) {
  if (texts.empty()) return {};
  std::string common = texts.front();
  for (const std::string& text : texts) {
    const auto [end, other] = std::ranges::mismatch(common, text);
    common.erase(end, common.end());
  }
  return std::string(cut_to(texts.front(), common.size()));  // not within a character
}

}  // namespace clawdforge
