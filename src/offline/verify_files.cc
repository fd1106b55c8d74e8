#include "offline/verify_files.h"

#include "offline/file_rows.h"
#include "storage/disk/data_subdir.h"

namespace clawdforge {
namespace {

constexpr Check kUploadWithoutFile{"upload-file", "an upload's file is not there"};
constexpr Check kUploadSize{"upload-size", "an upload's file has another size than its row says"};
constexpr Check kFileWithoutUpload{"file-row",
                                   "a file among the uploads has no row; the next start removes "
                                   "it"};
constexpr Check kSessionDirectory{"session-directory",
                                  "a session's directory has no session; the next start removes "
                                  "it"};
constexpr Check kRunDirectory{"run-directory",
                              "a run's directory has no run that is under way; the next start "
                              "removes it"};

constexpr Check kAnswerWithoutFile{"answer-file",
                                   "the file of a job's answer is not there, or has another size"};
constexpr Check kFileWithoutAnswer{"answer-row",
                                   "a file among the answers of jobs has no job; the next start "
                                   "removes it"};

// A gateway at work makes files before their rows, and removes them with graces in between:
// what is younger than this may belong to something that is on its way.
constexpr std::chrono::seconds kSettlingMax{60};

class FileCheck {
 public:
  FileCheck(SqlDriver& driver, const std::string& data_dir, bool is_running, const Clock& clock,
            Findings& findings)
      : driver_(driver),
        data_dir_(data_dir),
        is_running_(is_running),
        clock_(clock),
        findings_(findings) {}

  Result<void> run() {
    for (const Check& check :
         {kUploadWithoutFile, kUploadSize, kFileWithoutUpload, kSessionDirectory, kRunDirectory,
          kAnswerWithoutFile, kFileWithoutAnswer}) {
      findings_.begin(check);
    }
    auto done = for_each_upload(driver_, unix_seconds(clock_.now()),
                                [this](const UploadRow& row) { return see_upload(row); });
    if (!done) return done;
    done = visit_subdir(data_dir_, DataSubdir::uploads,
                        [this](const DataSubdirEntry& entry) { return see_file(entry); });
    if (!done) return done;
    done = visit_subdir(data_dir_, DataSubdir::sessions,
                        [this](const DataSubdirEntry& entry) { return see_session(entry); });
    if (!done) return done;
    done = visit_subdir(data_dir_, DataSubdir::runs,
                        [this](const DataSubdirEntry& entry) { return see_run(entry); });
    if (!done) return done;
    done = for_each_answer(driver_, [this](const AnswerRow& row) { return see_answer(row); });
    if (!done) return done;
    return visit_subdir(data_dir_, DataSubdir::jobs,
                        [this](const DataSubdirEntry& entry) { return see_answer_file(entry); });
  }

 private:
  bool may_be_on_its_way(TimePoint changed_at) const {
    return is_running_ && clock_.now() - changed_at < kSettlingMax;
  }

  Result<void> see_upload(const UploadRow& row) {
    const auto look = look_at(data_dir_, DataSubdir::uploads, row.name);
    if (!look) return std::unexpected(look.error());
    const auto& file = *look;
    if (file && file->size == row.size && !file->is_directory) return {};
    // It may have expired, or its app been revoked, since the row was read.
    const auto reading = upload_row(driver_, row.name);
    if (!reading) return std::unexpected(reading.error());
    const auto& again = *reading;
    if (!again || again->expires_at <= unix_seconds(clock_.now())) return {};
    findings_.note(file ? kUploadSize : kUploadWithoutFile, row.name);
    return {};
  }

  Result<void> see_file(const DataSubdirEntry& entry) {
    if (may_be_on_its_way(entry.changed_at)) return {};
    const auto row = upload_row(driver_, entry.name);
    if (!row) return std::unexpected(row.error());
    if (!*row) findings_.note(kFileWithoutUpload, entry.name);
    return {};
  }

  Result<void> see_session(const DataSubdirEntry& entry) {
    if (may_be_on_its_way(entry.changed_at)) return {};
    const auto is_known = has_session(driver_, entry.name);
    if (!is_known) return std::unexpected(is_known.error());
    if (!*is_known) findings_.note(kSessionDirectory, entry.name);
    return {};
  }

  Result<void> see_run(const DataSubdirEntry& entry) {
    if (may_be_on_its_way(entry.changed_at)) return {};
    const auto reading = run_row(driver_, entry.name);
    if (!reading) return std::unexpected(reading.error());
    const auto& row = *reading;
    if (row && is_running_) {
      const auto ended_at = row->ended_at;
      if (!ended_at || may_be_on_its_way(TimePoint(std::chrono::seconds(*ended_at)))) return {};
    }
    findings_.note(kRunDirectory, entry.name);
    return {};
  }

  Result<void> see_answer(const AnswerRow& row) {
    const auto look = look_at(data_dir_, DataSubdir::jobs, row.name);
    if (!look) return std::unexpected(look.error());
    const auto& file = *look;
    if (file && file->size == row.bytes && !file->is_directory) return {};
    // It may have been swept since the row was read.
    const auto again = answer_row(driver_, row.name);
    if (!again) return std::unexpected(again.error());
    if (*again) findings_.note(kAnswerWithoutFile, row.name);
    return {};
  }

  Result<void> see_answer_file(const DataSubdirEntry& entry) {
    if (may_be_on_its_way(entry.changed_at)) return {};
    const auto row = answer_row(driver_, entry.name);
    if (!row) return std::unexpected(row.error());
    if (!*row) findings_.note(kFileWithoutAnswer, entry.name);
    return {};
  }

  SqlDriver& driver_;
  const std::string& data_dir_;
  const bool is_running_;
  const Clock& clock_;
  Findings& findings_;
};

}  // namespace

Result<void> verify_files(SqlDriver& driver, const std::string& data_dir, bool is_running,
                          const Clock& clock, Findings& findings) {
  return FileCheck(driver, data_dir, is_running, clock, findings).run();
}

}  // namespace clawdforge
