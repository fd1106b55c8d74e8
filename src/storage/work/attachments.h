// Attachments are uploads that an agent finds in its working directory, under names of ours. Each
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
};

// PREFIX-N with its extension.
std::string attachment_name(std::string_view prefix, std::size_t number,
                            const Attachment& attachment);

// What is copied before the disk's thread looks at the work of others again.
inline constexpr std::size_t kAttachmentStepBytesMax = 8 * 1024 * 1024;

// The attachments of one run or turn on their way into its directory. Large ones take many steps.
// Its steps block: they are for the disk's thread. Between two of them it belongs to its maker.
class AttachmentCopies {
 public:
  // Each is called by attachment_name(), N from 1; or PREFIX-N-RANDOM where the agent has put
  // something under that name, which stays: it may be a tree of any size.
  AttachmentCopies(std::vector<Attachment> attachments, std::string prefix);

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
  const std::string prefix_;
  Descriptor directory_;
  std::vector<std::string> names_;
  Descriptor source_;  // of the one that is being copied
  Descriptor target_;
};

}  // namespace clawdforge
