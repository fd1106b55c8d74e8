#include "cli/chat/prompt_history.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>

#include "cli/chat/line_editor.h"
#include "cli/terminal/terminal.h"

namespace clawdforge {
namespace {

constexpr mode_t kOwnerOnly = 0600;
constexpr mode_t kOwnerOnlyFolder = 0700;

// One line: a line end is \n, a backslash is doubled.
std::string history_line(const std::string& prompt) {
  std::string out;
  for (const char c : prompt) {
    if (c == '\\')
      out += "\\\\";
    else if (c == '\n')
      out += "\\n";
    else if (c != '\r')
      out += c;
  }
  return out + '\n';
}

std::string history_entry(const std::string& line) {
  std::string out;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const bool is_escaped = line[i] == '\\' && i + 1 < line.size();
    if (!is_escaped)
      out += line[i];
    else
      out += line[++i] == 'n' ? '\n' : line[i];
  }
  return out;
}

int open_history(const std::string& file, int flags) {
  const int descriptor = ::open(file.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, kOwnerOnly);
  // Prompts may be private; a file that others may read is mended.
  if (descriptor >= 0) ::fchmod(descriptor, kOwnerOnly);
  return descriptor;
}

std::string read_tail(const std::string& file) {
  const int descriptor = open_history(file, O_RDONLY);
  if (descriptor < 0) return {};
  const off_t size = ::lseek(descriptor, 0, SEEK_END);
  const off_t from = size > off_t{kHistoryBytesMax} ? size - off_t{kHistoryBytesMax} : 0;
  ::lseek(descriptor, from, SEEK_SET);
  std::string text;
  std::array<char, 64 * 1024> piece;
  ssize_t count = 0;
  while (text.size() < kHistoryBytesMax &&
         (count = ::read(descriptor, piece.data(), piece.size())) > 0) {
    text.append(piece.data(), static_cast<std::size_t>(count));
  }
  ::close(descriptor);
  if (from > 0) text.erase(0, text.find('\n') + 1);
  return text;
}

}  // namespace

std::string chat_history_file() {
  const char* const state = std::getenv("XDG_STATE_HOME");
  const char* const home = std::getenv("HOME");
  if (state != nullptr && *state == '/') return std::string(state) + "/clawdforge/chat-history";
  if (home == nullptr || *home != '/') return {};
  return std::string(home) + "/.local/state/clawdforge/chat-history";
}

std::vector<std::string> load_history(const std::string& file) {
  std::vector<std::string> entries;
  if (file.empty()) return entries;
  std::string text = read_tail(file);
  for (std::size_t at = 0, end = 0; (end = text.find('\n', at)) != std::string::npos;
       at = end + 1) {
    entries.push_back(history_entry(text.substr(at, end - at)));
  }
  if (entries.size() <= kHistoryEntriesMax) return entries;
  const bool is_much_longer = entries.size() > 2 * kHistoryEntriesMax;
  entries.erase(entries.begin(), entries.end() - static_cast<std::ptrdiff_t>(kHistoryEntriesMax));
  if (is_much_longer) {
    const std::string next = file + ".next";
    ::unlink(next.c_str());
    const int descriptor = open_history(next, O_WRONLY | O_CREAT | O_EXCL);
    std::string lines;
    for (const std::string& entry : entries) lines += history_line(entry);
    const bool is_written = descriptor >= 0 && write_all(descriptor, lines);
    if (descriptor >= 0) ::close(descriptor);
    if (is_written) ::rename(next.c_str(), file.c_str());
  }
  return entries;
}

void append_to_history(const std::string& file, const std::string& prompt) {
  std::error_code ignored;
  const std::filesystem::path folder = std::filesystem::path(file).parent_path();
  std::filesystem::create_directories(folder.parent_path(), ignored);
  ::mkdir(folder.c_str(), kOwnerOnlyFolder);
  const int descriptor = open_history(file, O_WRONLY | O_CREAT | O_APPEND);
  if (descriptor < 0) return;
  write_all(descriptor, history_line(prompt));
  ::close(descriptor);
}

}  // namespace clawdforge
