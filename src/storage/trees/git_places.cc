#include "storage/trees/git_places.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string_view>

namespace clawdforge {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kGitPlacesMax = 32;          // of one repository
constexpr std::size_t kGitPointerBytesMax = 4096;  // of a line that names another place

// The lines of a file that names other places; none: it is not a small file.
std::vector<std::string> pointers_in(const fs::path& file) {
  std::error_code error;
  std::vector<std::string> lines;
  if (!fs::is_regular_file(file, error)) return lines;
  std::ifstream text(file);
  for (std::string line; lines.size() < kGitPlacesMax && std::getline(text, line);) {
    if (line.size() > kGitPointerBytesMax) break;
    lines.push_back(std::move(line));
  }
  return lines;
}

class Places {
 public:
  void add_from(const fs::path& path) {
    if (!add(path)) return;
    const fs::path inner = path / ".git";
    for (const std::string& line : pointers_in(inner)) {
      constexpr std::string_view kMark = "gitdir: ";
      if (line.starts_with(kMark)) add_git_dir(path / line.substr(kMark.size()));
    }
    std::error_code error;
    add_git_dir(fs::is_directory(inner, error) ? inner : path);
  }

  std::vector<std::string> take() { return std::move(found_); }

 private:
  // False: it is not there, or is in the list already.
  bool add(const fs::path& path) {
    std::error_code error;
    const std::string place = fs::canonical(path, error).string();
    if (error || found_.size() == kGitPlacesMax) return false;
    if (std::ranges::find(found_, place) != found_.end()) return false;
    found_.push_back(place);
    return true;
  }

  void add_git_dir(const fs::path& dir) {
    add(dir);
    for (const std::string& line : pointers_in(dir / "commondir")) {
      add(dir / line);
      add_objects(dir / line / "objects");
    }
    add_objects(dir / "objects");
  }

  void add_objects(const fs::path& objects) {
    if (!add(objects)) return;
    for (const std::string& line : pointers_in(objects / "info" / "alternates")) {
      if (!line.empty() && !line.starts_with('#')) add_objects(objects / line);
    }
  }

  std::vector<std::string> found_;
};

}  // namespace

std::vector<std::string> git_places(const std::string& path) {
  Places places;
  places.add_from(path);
  return places.take();
}

}  // namespace clawdforge
