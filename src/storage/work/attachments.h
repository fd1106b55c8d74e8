// Attachments are uploads that an agent finds in its working directory, under names of ours.
// Blocks: for the disk's thread.
#pragma once

#include <string>

#include "base/result.h"

namespace clawdforge {

struct Attachment {
  std::string path;       // the uploaded file
  std::string extension;  // safe: "" or a dot and letters; anything else is left away
};

// The extension, or nothing where it could lead elsewhere: the ledger's row may have been
// written by another program.
std::string safe_extension(const Attachment& attachment);

// Hard-links the upload into the open directory, or copies it where that is not possible. It
// may be read, not written: a link shares the upload's bytes with every other place that has
// it, and a copy behaves alike. That keeps an agent from changing it by mistake; one that
// runs as root, or sets out to, can still change what its own app has uploaded.
// False: there is something of this name already, and it stays. Errc::not_found "file_not_found"
// when the upload's file has gone, Errc::unavailable "disk_full" or "workspace_unavailable"
// otherwise; then there is nothing of this name from us.
Result<bool> attach_file(const Attachment& attachment, int directory, const std::string& name);

}  // namespace clawdforge
