// A session's directory as a tar file that is read, and a file that is being put into it. Each call
// is done on the disk's thread, one at a time. Dropping one ends it. Io thread only.
#pragma once

#include <memory>
#include <string>

#include "base/async/async.h"
#include "base/async/lane.h"

namespace clawdforge {

class Disk;
class PutFile;
class TreeArchive;

class WorkArchive {
 public:
  // Errc::unavailable when the directory is not there. `left_out`: as TreeArchive.
  static Async<std::unique_ptr<WorkArchive>> open(std::string root, std::string left_out, Lane lane,
                                                  Disk* disk);
  WorkArchive(std::shared_ptr<TreeArchive> archive, Lane lane, Disk& disk);
  ~WorkArchive();
  WorkArchive(const WorkArchive&) = delete;
  WorkArchive& operator=(const WorkArchive&) = delete;

  // As TreeArchive::next().
  Async<std::string> next();

 private:
  std::shared_ptr<TreeArchive> archive_;
  const Lane lane_;
  Disk& disk_;
};

class WorkPut {
 public:
  // Errors as check_put_path() and PutFile::begin().
  static Async<std::unique_ptr<WorkPut>> begin(std::string root, std::string path, Lane lane,
                                               Disk* disk);
  WorkPut(std::shared_ptr<PutFile> file, Lane lane, Disk& disk);
  ~WorkPut();
  WorkPut(const WorkPut&) = delete;
  WorkPut& operator=(const WorkPut&) = delete;

  Async<void> append(std::string bytes);
  Async<bool> keep();

 private:
  std::shared_ptr<PutFile> file_;
  const Lane lane_;
  Disk& disk_;
};

}  // namespace clawdforge
