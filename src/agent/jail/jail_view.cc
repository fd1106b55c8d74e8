#include "agent/jail/jail_view.h"

#include <sys/stat.h>

#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

namespace clawdforge {
namespace {

namespace fs = std::filesystem;
using Kind = JailPlace::Kind;

constexpr int kLinksMax = 40;  // as the kernel has it

struct Resolved {
  std::string path;                                        // without links
  std::vector<std::pair<std::string, std::string>> links;  // those on the way, with their targets
};

// None: it is not there.
std::optional<Resolved> resolve(const std::string& path) {
  Resolved found;
  fs::path rest = fs::path(path).relative_path();
  fs::path current = "/";
  while (!rest.empty()) {
    const fs::path part = *rest.begin();
    fs::path after;
    for (auto it = std::next(rest.begin()); it != rest.end(); ++it) after /= *it;
    rest = std::move(after);
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      current = current.parent_path();
      continue;
    }
    const fs::path next = current / part;
    struct stat status{};
    if (::lstat(next.c_str(), &status) != 0) return std::nullopt;
    if (!S_ISLNK(status.st_mode)) {
      current = next;
      continue;
    }
    std::error_code error;
    const fs::path target = fs::read_symlink(next, error);
    if (error || found.links.size() == kLinksMax) return std::nullopt;
    found.links.emplace_back(next.string(), target.string());
    if (target.is_absolute()) current = "/";
    rest = target.relative_path() / rest;
  }
  found.path = current.string();
  return found;
}

int rank_of(Kind kind) {
  switch (kind) {
    case Kind::link:
      return 0;
    case Kind::cover:
      return 1;
    case Kind::temporary:
      return 2;
    case Kind::read_if_there:
      return 3;
    case Kind::write:
      return 4;
    case Kind::read:
      return 5;
  }
  return 0;
}

bool shows_what_is_below(Kind kind) {
  return kind == Kind::read || kind == Kind::read_if_there || kind == Kind::write;
}

}  // namespace

void JailView::read(const std::string& path) { add(path, Kind::read_if_there); }
void JailView::write(const std::string& path) { add(path, Kind::write); }
void JailView::hold(const std::string& path) { add(path, Kind::read); }
void JailView::temporary(const std::string& path) { add(path, Kind::temporary); }
void JailView::cover(const std::string& path) { add(path, Kind::cover); }

void JailView::add(const std::string& path, Kind kind) {
  const auto resolved = resolve(path);
  if (!resolved || resolved->path == "/") return;
  for (const auto& [link, target] : resolved->links) {
    places_.try_emplace(link, JailPlace{Kind::link, link, target});
  }
  JailPlace& place =
      places_.try_emplace(resolved->path, JailPlace{kind, resolved->path}).first->second;
  if (rank_of(kind) > rank_of(place.kind)) place = {kind, resolved->path};
}

// The nearest place that `path` lies below; null: none.
const JailPlace* JailView::above(const std::string& path) const {
  for (std::size_t slash = path.rfind('/'); slash != 0 && slash != path.npos;
       slash = path.rfind('/', slash - 1)) {
    const auto found = places_.find(path.substr(0, slash));
    if (found != places_.end()) return &found->second;
  }
  return nullptr;
}

bool JailView::is_needed(const JailPlace& place) const {
  const JailPlace* const parent = above(place.path);
  const bool is_shown = parent != nullptr && shows_what_is_below(parent->kind);
  if (place.kind == Kind::cover) return is_shown;
  if (place.kind == Kind::link) return !is_shown;
  if (place.kind == Kind::temporary) return true;
  // What a parent shows in the same way.
  return !is_shown || (place.kind == Kind::write) != (parent->kind == Kind::write);
}

JailPlan JailView::plan() const {
  JailPlan plan;
  for (const auto& [path, place] : places_) {
    if (is_needed(place)) plan.places.push_back(place);
  }
  return plan;
}

}  // namespace clawdforge
