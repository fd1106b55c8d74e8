#include "storage/work/answer_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <system_error>

#include "base/descriptor.h"
#include "storage/disk/disk.h"
#include "storage/disk/file_error.h"

namespace clawdforge {
namespace {

constexpr mode_t kAnswerMode = 0600;

Result<Descriptor> open_answers(const std::string& root) {
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  if (::mkdir(root.c_str(), 0700) != 0 && errno != EEXIST) {
    return file_failure(errno, "making the directory of answers");
  }
  Descriptor opened(::open(root.c_str(), kFlags));
  if (!opened.is_open()) return file_failure(errno, "opening the directory of answers");
  return opened;
}

Result<void> write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return file_failure(errno, "writing an answer");
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

// One of an attempt whose end was not written down is written over.
Result<void> keep_answer(const std::string& root, const std::string& name,
                         const std::string& text) {
  const auto directory = open_answers(root);
  if (!directory) return std::unexpected(directory.error());
  const Descriptor file(::openat(directory->number(), name.c_str(),
                                 O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
                                 kAnswerMode));
  if (!file.is_open()) return file_failure(errno, "making an answer's file");
  if (auto written = write_all(file.number(), text); !written) return written;
  if (::fsync(file.number()) != 0 || ::fsync(directory->number()) != 0) {
    return file_failure(errno, "syncing an answer's file");
  }
  return {};
}

Result<std::string> read_answer(const std::string& root, const std::string& name,
                                std::int64_t offset, std::size_t bytes_max) {
  const auto directory = open_answers(root);
  if (!directory) return std::unexpected(directory.error());
  const Descriptor file(
      ::openat(directory->number(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!file.is_open()) return file_failure(errno, "opening an answer's file");
  std::string text(bytes_max, '\0');
  ssize_t count = 0;
  do {
    count = ::pread(file.number(), text.data(), text.size(), offset);
  } while (count < 0 && errno == EINTR);
  if (count < 0) return file_failure(errno, "reading an answer's file");
  text.resize(static_cast<std::size_t>(count));
  return text;
}

Result<void> remove_answers(const std::string& root, const std::vector<std::string>& names) {
  const auto directory = open_answers(root);
  if (!directory) return std::unexpected(directory.error());
  for (const std::string& name : names) {
    if (::unlinkat(directory->number(), name.c_str(), 0) != 0 && errno != ENOENT) {
      return file_failure(errno, "removing an answer's file");
    }
  }
  return {};
}

Result<std::vector<std::string>> list_answers(const std::string& root) {
  if (auto opened = open_answers(root); !opened) return std::unexpected(opened.error());
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(root, error), end; !error && entry != end;
       entry.increment(error)) {
    names.push_back(entry->path().filename());
  }
  if (error) return file_failure(error.value(), "reading the directory of answers");
  return names;
}

}  // namespace

Async<void> AnswerFiles::keep(std::string name, std::shared_ptr<const std::string> text,
                              Lane lane) {
  return disk_.call(std::move(lane),
                    [root = root_, name = std::move(name), text = std::move(text)] {
                      return keep_answer(root, name, *text);
                    });
}

Async<std::string> AnswerFiles::read(std::string name, std::int64_t offset, std::size_t bytes_max,
                                     Lane lane) const {
  return disk_.call(std::move(lane), [root = root_, name = std::move(name), offset, bytes_max] {
    return read_answer(root, name, offset, bytes_max);
  });
}

Async<void> AnswerFiles::remove(std::vector<std::string> names) {
  return disk_.call(
      Lane(), [root = root_, names = std::move(names)] { return remove_answers(root, names); });
}

Async<std::vector<std::string>> AnswerFiles::names() const {
  return disk_.call(Lane(), [root = root_] { return list_answers(root); });
}

}  // namespace clawdforge
