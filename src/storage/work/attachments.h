// Attachments are uploads that an agent finds in its working directory, under a safe name. Each
// is a copy: an agent may change its own, also one that runs as root or sets out to, and the upload
// stays as it was brought (docs/adr/0031-attachments-are-copies.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.h"
#include "base/result.h"
#include "base/telemetry/log.h"

namespace clawdforge {

struct Attachment {
  std::string path;       // the uploaded file
  std::string extension;  // safe: "" or a dot and letters; anything else is left away
  std::string name{};     // as its app calls it, by safe_file_name(); empty: not known
};

// Of the name of a file; longer ones are cut.
inline constexpr std::size_t kFileNameBytesMax = 100;

// What a foreign name or path calls a file, as a name that leads nowhere else, is not hidden, is
// not an option, and changes nothing of the line that it is shown in. Empty: nothing is left of it.
std::string safe_file_name(std::string_view foreign);

// What attachments are called in the agent's directory.
enum class AttachmentNames {
  numbered,  // PREFIX-N with the extension
  own,       // as the app calls them, else as above
};

// In their order, if nothing lies there yet.
std::vector<std::string> attachment_names(const std::vector<Attachment>& attachments,
                                          std::string_view prefix, AttachmentNames naming);

// What is copied before the disk's thread looks at the work of others again.
inline constexpr std::size_t kAttachmentStepBytesMax = 8 * 1024 * 1024;

// The attachments of one run or turn on their way into its directory. Large ones take many steps.
// Its steps block: they are for the disk's thread. Between two of them it belongs to its maker.
class AttachmentCopies {
 public:
  // They are called by attachment_names(). Where something lies under that name it stays, since it
  // may be a tree of any size, and the attachment gets a number, or at last a random one.
  AttachmentCopies(std::vector<Attachment> attachments, std::string prefix,
                   AttachmentNames naming = AttachmentNames::numbered);

  bool is_empty() const { return attachments_.empty(); }

  // Where they go. Before the first step; not needed where there are none.
  void begin(Descriptor directory) { directory_ = std::move(directory); }

  // True: all are there. Errc::not_found "file_not_found" when an upload's file has gone,
  // Errc::unavailable "disk_full" or "workspace_unavailable" otherwise.
  Result<bool> step();

  // Removes what there is of them. What cannot be removed is logged.
  void undo(Log& log);

  // Of those that were begun, in their order.
  const std::vector<std::string>& names() const { return names_; }

 private:
  Result<void> begin_next();

  const std::vector<Attachment> attachments_;
  const std::vector<std::string> wanted_names_;
  Descriptor directory_;
  std::vector<std::string> names_;
  Descriptor source_;  // of the one that is being copied
  Descriptor target_;
};

}  // namespace clawdforge
