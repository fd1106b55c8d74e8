// Removing what an agent has left, whatever it looks like: very deep, very wide, or with
// directories that may not be entered. Blocks: for the disk's thread.
//
// No path is built below the directory that is removed and no link is followed. A
// directory found inside is emptied, and the directories in it are moved up beside it
// first: so no tree is too deep, two descriptors are enough, and a process that is still
// moving things about cannot lead us out of the tree.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"

namespace clawdforge {

// How many entries one step removes, so that other work gets its turn in between.
inline constexpr std::size_t kTreeStepEntriesMax = 2'000;

enum class TreeStep { more, done };

// Removes the file, link or directory `name` in the open directory `parent`; a name that
// is not there is done. One step of at most `entries_max` entries: TreeStep::more asks for
// another. An error says what could not be removed; the rest has been removed as far as
// possible.
Result<TreeStep> remove_tree_step(int parent, const std::string& name, std::size_t entries_max);

}  // namespace clawdforge
