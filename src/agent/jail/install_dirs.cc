#include "agent/jail/install_dirs.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <optional>

#include "agent/jail/program_path.h"
#include "base/descriptor.h"

namespace clawdforge {
namespace {

namespace fs = std::filesystem;

constexpr int kInterpretersMax = 4;  // of interpreters that are scripts themselves
constexpr std::size_t kFirstLineBytesMax = 256;

std::vector<std::string> words_of(std::string_view text) {
  constexpr std::string_view kBlanks = " \t'\"";
  std::vector<std::string> words;
  while (true) {
    const std::size_t begin = text.find_first_not_of(kBlanks);
    if (begin == text.npos) return words;
    text.remove_prefix(begin);
    const std::size_t end = std::min(text.find_first_of(kBlanks), text.size());
    words.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

// What follows "#!" in a script; empty: it is not one.
std::string interpreter_line(const fs::path& file) {
  const Descriptor script(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  std::array<char, kFirstLineBytesMax> bytes{};
  const ssize_t size = ::read(script.number(), bytes.data(), bytes.size());
  if (size < 3) return {};
  std::string_view text(bytes.data(), static_cast<std::size_t>(size));
  if (!text.starts_with("#!")) return {};
  text.remove_prefix(2);
  return std::string(text.substr(0, text.find('\n')));
}

// The program that runs a script; empty: it is not one.
std::string interpreter_of(const fs::path& file) {
  const std::vector<std::string> words = words_of(interpreter_line(file));
  if (words.empty()) return {};
  if (fs::path(words.front()).filename() != "env") return words.front();
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (!words[i].starts_with('-') && !words[i].contains('=')) return words[i];
  }
  return {};
}

class Finder {
 public:
  Finder(std::string_view search_path, const std::string& home)
      : search_path_(search_path), home_(home) {}

  void add_program(const std::string& name, int depth = 0) {
    const auto path = find_program(name, search_path_);
    if (!path || depth == kInterpretersMax) return;
    const auto file = add_file(*path);
    if (!file) return;
    if (const std::string interpreter = interpreter_of(*file); !interpreter.empty()) {
      add_program(interpreter, depth + 1);
    }
  }

  // A word of an argument.
  void add_word(const std::string& word) {
    std::error_code error;
    if (!word.starts_with('/') || word == "/") return;
    if (fs::is_regular_file(word, error)) add_program_or_file(word);
    if (fs::is_directory(word, error)) add(word);
  }

  std::vector<std::string> take() { return std::move(found_); }

 private:
  void add(const fs::path& path) { found_.push_back(path.string()); }

  void add_program_or_file(const std::string& path) {
    const auto file = add_file(path);
    if (!file) return;
    if (const std::string interpreter = interpreter_of(*file); !interpreter.empty()) {
      add_program(interpreter, 1);
    }
  }

  // By its own name, which may be a link, and with what lies around it. None: it is not there.
  std::optional<fs::path> add_file(const fs::path& path) {
    std::error_code error;
    const fs::path file = fs::canonical(path, error);
    if (error) return std::nullopt;
    add(path);
    // A virtual environment of Python finds its library by the name that it was called by.
    const fs::path environment = path.parent_path().parent_path();
    if (fs::exists(environment / "pyvenv.cfg", error)) add(environment);
    add(around(file));
    return file;
  }

  fs::path around(const fs::path& file) const {
    fs::path dir;
    for (const fs::path& part : file) {
      dir /= part;
      if (part == "node_modules") return dir;
    }
    const fs::path parent = file.parent_path();
    std::error_code error;
    const bool holds_much = parent == "/" || parent == "/tmp" || parent == "/home" ||
                            parent == "/root" || parent == "/etc" || parent == "/var" ||
                            (!home_.empty() && fs::equivalent(parent, home_, error));
    return holds_much ? file : parent;
  }

  const std::string_view search_path_;
  const std::string& home_;
  std::vector<std::string> found_;
};

}  // namespace

std::vector<std::string> install_dirs(const std::vector<std::string>& command,
                                      std::string_view search_path, const std::string& home) {
  Finder finder(search_path, home);
  if (command.empty()) return {};
  finder.add_program(command.front());
  // One argument may be a whole command line, such as that of acpx.
  for (std::size_t i = 1; i < command.size(); ++i) {
    for (const std::string& word : words_of(command[i])) finder.add_word(word);
  }
  return finder.take();
}

}  // namespace clawdforge
