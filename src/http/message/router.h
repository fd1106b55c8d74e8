// Router finds the route of a path. Patterns are literal segments and {placeholders}; the
// last segment may be a tail, {name...}, which stands for all segments that are left, at
// least one. A path matches at most one pattern. Built once, then only read.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace clawdforge {

struct Route {
  std::string_view method;   // literals
  std::string_view pattern;  // "/admin/tokens/{name}"
  std::size_t index = 0;     // its place in the table that the caller keeps beside the router
};

// The pattern as documents and metrics name it: a tail is written like any placeholder.
std::string shown_pattern(std::string_view pattern);

class Router {
 public:
  // Adding the same method and pattern twice is a defect, and so is a tail that is not last.
  void add(std::string_view method, std::string_view pattern, std::size_t index);

  struct Match {
    const Route* route = nullptr;     // none: see `allow`
    std::vector<std::string> params;  // percent-decoded; a tail's segments joined by '/'
    std::string allow;                // the path is known under these methods; empty: unknown path
  };
  // HEAD is answered by GET's route.
  Match find(std::string_view method, std::string_view path) const;

  const std::vector<Route>& routes() const { return routes_; }

 private:
  struct Pattern {
    std::vector<std::string_view> segments;  // a placeholder is "{name}" or "{name...}"
    std::vector<std::size_t> routes;         // one per method
  };
  const Route* pick(const Pattern& pattern, std::string_view method) const;
  std::string allow_of(const Pattern& pattern) const;

  std::vector<Route> routes_;
  std::map<std::string_view, Pattern, std::less<>> literal_;  // patterns without placeholders
  std::vector<Pattern> placeholders_;
};

}  // namespace clawdforge
