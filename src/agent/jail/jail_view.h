// JailView collects what a jailed agent sees and makes a plan of it. Every path is the same inside
// as outside: where a part of a path is a symbolic link, the plan has that link and the place that
// it leads to. Looks at the disk, a few microseconds for each path.
#pragma once

#include <map>
#include <string>

#include "process/launch/child_plan.h"

namespace clawdforge {

class JailView {
 public:
  // What is not there is left out. Of two that say the same path the writable one counts.
  void read(const std::string& path);
  void write(const std::string& path);
  // Never writable, whatever else is said of the same path.
  void hold(const std::string& path);
  // An empty directory in memory; what is said of the same path counts more.
  void temporary(const std::string& path);
  // An empty directory where another place would show it, and nothing elsewhere. What is said of
  // the same path, or below it, still shows.
  void cover(const std::string& path);

  // Parents before what is below them, without what a parent shows already.
  JailPlan plan() const;

 private:
  using Kind = JailPlace::Kind;

  void add(const std::string& path, Kind kind);
  const JailPlace* above(const std::string& path) const;
  bool is_needed(const JailPlace& place) const;

  std::map<std::string, JailPlace> places_;
};

}  // namespace clawdforge
