#include "http/router.h"

#include <algorithm>
#include <cassert>

#include "http/request.h"

namespace clawdforge {
namespace {

std::vector<std::string_view> split(std::string_view path) {
  std::vector<std::string_view> segments;
  while (!path.empty()) {
    path.remove_prefix(1);  // the slash
    const std::size_t end = std::min(path.find('/'), path.size());
    segments.push_back(path.substr(0, end));
    path.remove_prefix(end);
  }
  return segments;
}

bool is_placeholder(std::string_view segment) { return segment.starts_with('{'); }

// Whether `path` fits `pattern`; fills `params` if so.
bool fits(const std::vector<std::string_view>& pattern, const std::vector<std::string_view>& path,
          std::vector<std::string>& params) {
  if (pattern.size() != path.size()) return false;
  params.clear();
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (!is_placeholder(pattern[i])) {
      if (pattern[i] != path[i]) return false;
      continue;
    }
    auto param = percent_decoded(path[i]);
    if (!param || param->empty()) return false;
    params.push_back(std::move(*param));
  }
  return true;
}

}  // namespace

void Router::add(std::string_view method, std::string_view pattern, std::size_t index) {
  const std::size_t route = routes_.size();
  routes_.push_back({method, pattern, index});
  Pattern* place = nullptr;
  if (pattern.find('{') == pattern.npos) {
    place = &literal_[pattern];
  } else {
    const auto segments = split(pattern);
    auto known = std::ranges::find(placeholders_, segments, &Pattern::segments);
    if (known == placeholders_.end()) {
      known = placeholders_.insert(known, Pattern{segments, {}});
    }
    place = &*known;
  }
  assert(pick(*place, method) == nullptr);
  place->routes.push_back(route);
}

const Route* Router::pick(const Pattern& pattern, std::string_view method) const {
  for (const std::size_t route : pattern.routes) {
    if (routes_[route].method == method) return &routes_[route];
  }
  return method == "HEAD" ? pick(pattern, "GET") : nullptr;
}

std::string Router::allow_of(const Pattern& pattern) const {
  std::string allow;
  for (const std::size_t route : pattern.routes) {
    if (!allow.empty()) allow += ", ";
    allow += routes_[route].method;
    if (routes_[route].method == "GET") allow += ", HEAD";
  }
  return allow;
}

Router::Match Router::find(std::string_view method, std::string_view path) const {
  Match match;
  const Pattern* pattern = nullptr;
  if (const auto literal = literal_.find(path); literal != literal_.end()) {
    pattern = &literal->second;
  } else {
    const auto segments = split(path);
    for (const Pattern& candidate : placeholders_) {
      if (!fits(candidate.segments, segments, match.params)) continue;
      pattern = &candidate;
      break;
    }
  }
  if (pattern == nullptr) {
    match.params.clear();
    return match;
  }
  match.route = pick(*pattern, method);
  if (match.route == nullptr) match.allow = allow_of(*pattern);
  return match;
}

}  // namespace clawdforge
