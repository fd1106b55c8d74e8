#include "http/message/router.h"

#include <algorithm>
#include <cassert>

#include "http/message/request.h"

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

constexpr std::string_view kTailEnd = "...}";

bool is_placeholder(std::string_view segment) { return segment.starts_with('{'); }

bool is_tail(std::string_view segment) {
  return is_placeholder(segment) && segment.ends_with(kTailEnd);
}

bool has_tail(const std::vector<std::string_view>& pattern) {
  return !pattern.empty() && is_tail(pattern.back());
}

// An empty segment, as before a trailing slash, fits no placeholder.
bool append_decoded(std::string& out, std::string_view segment) {
  const auto decoded = percent_decoded(segment);
  if (!decoded || decoded->empty()) return false;
  out += *decoded;
  return true;
}

// Whether `path` fits `pattern`; fills `params` if so.
bool fits(const std::vector<std::string_view>& pattern, const std::vector<std::string_view>& path,
          std::vector<std::string>& params) {
  if (path.size() < pattern.size()) return false;
  if (path.size() > pattern.size() && !has_tail(pattern)) return false;
  params.clear();
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (!is_placeholder(pattern[i])) {
      if (pattern[i] != path[i]) return false;
      continue;
    }
    if (!append_decoded(params.emplace_back(), path[i])) return false;
  }
  for (std::size_t i = pattern.size(); i < path.size(); ++i) {
    params.back() += '/';
    if (!append_decoded(params.back(), path[i])) return false;
  }
  return true;
}

}  // namespace

std::string shown_pattern(std::string_view pattern) {
  if (!pattern.ends_with(kTailEnd)) return std::string(pattern);
  return std::string(pattern.substr(0, pattern.size() - kTailEnd.size())) + '}';
}

void Router::add(std::string_view method, std::string_view pattern, std::size_t index) {
  const std::size_t route = routes_.size();
  routes_.push_back({method, pattern, index});
  Pattern* place = nullptr;
  if (pattern.find('{') == pattern.npos) {
    place = &literal_[pattern];
  } else {
    const auto segments = split(pattern);
    assert(std::none_of(segments.begin(), segments.end() - 1, is_tail));
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
