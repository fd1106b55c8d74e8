#include "workspaces/work_streams.h"

#include <utility>

#include "storage/disk/disk.h"
#include "storage/trees/put_file.h"
#include "storage/trees/tree_archive.h"

namespace clawdforge {
namespace {

constexpr std::size_t kArchivePieceBytes = 256 * 1024;

}  // namespace

Async<std::unique_ptr<WorkArchive>> WorkArchive::open(std::string root, std::string left_out,
                                                      Lane lane, Disk* disk) {
  const auto archive = std::make_shared<TreeArchive>(std::move(root), std::move(left_out));
  auto begun = co_await disk->call(lane, [archive] { return archive->begin(); });
  if (!begun) co_return std::unexpected(std::move(begun.error()));
  co_return std::make_unique<WorkArchive>(archive, std::move(lane), *disk);
}

WorkArchive::WorkArchive(std::shared_ptr<TreeArchive> archive, Lane lane, Disk& disk)
    : archive_(std::move(archive)), lane_(std::move(lane)), disk_(disk) {}

WorkArchive::~WorkArchive() {
  disk_.post(lane_, [archive = std::move(archive_)] {});
}

Async<std::string> WorkArchive::next() {
  return disk_.call(lane_, [archive = archive_] { return archive->next(kArchivePieceBytes); });
}

Async<std::unique_ptr<WorkPut>> WorkPut::begin(std::string root, std::string path, Lane lane,
                                               Disk* disk) {
  if (auto good = check_put_path(path); !good) co_return std::unexpected(std::move(good.error()));
  const auto file = std::make_shared<PutFile>(std::move(root), std::move(path));
  auto begun = co_await disk->call(lane, [file] { return file->begin(); });
  if (!begun) co_return std::unexpected(std::move(begun.error()));
  co_return std::make_unique<WorkPut>(file, std::move(lane), *disk);
}

WorkPut::WorkPut(std::shared_ptr<PutFile> file, Lane lane, Disk& disk)
    : file_(std::move(file)), lane_(std::move(lane)), disk_(disk) {}

WorkPut::~WorkPut() {
  disk_.post(lane_, [file = std::move(file_)] {});
}

Async<void> WorkPut::append(std::string bytes) {
  return disk_.call(lane_,
                    [file = file_, bytes = std::move(bytes)] { return file->append(bytes); });
}

Async<bool> WorkPut::keep() {
  return disk_.call(lane_, [file = file_] { return file->keep(); });
}

}  // namespace clawdforge
