#include "upkeep/upload_recovery.h"

#include "upkeep/uploads_fixture.h"

namespace clawdforge {
namespace {

using namespace std::chrono_literals;

class UploadRecoveryTest : public UploadsFixture {
 protected:
  Result<UploadsRecovered> recover() {
    return run_to_end(io_, recover_uploads({.executor = io_.get_executor(),
                                            .ledger = *ledger_,
                                            .run_dirs = run_dirs_,
                                            .session_dirs = session_dirs_,
                                            .upload_files = files_,
                                            .clock = clock_,
                                            .log = log_,
                                            .metrics = metrics_,
                                            .kill_grace = 0ms}));
  }

  RunDirs run_dirs_{root_, disk_, log_};
  SessionDirs session_dirs_{root_, disk_, log_};
};

TEST_F(UploadRecoveryTest, AtStartFilesAndRowsAreBroughtTogether) {
  upload("whole", 3'600s);
  upload("no-file", 3'600s, false);
  put_file(to_hex(sha256("no-row")));
  put_file(".arriving-7");
  ASSERT_TRUE(recover());
  EXPECT_EQ(files(), named({"whole"}));
  EXPECT_EQ(rows(), named({"whole"}));
  ASSERT_TRUE(recover());
  EXPECT_EQ(files(), named({"whole"}));
}

TEST_F(UploadRecoveryTest, AtTheFirstStartThereIsNothingToRecover) { EXPECT_TRUE(recover()); }

TEST_F(UploadRecoveryTest, ALedgerThatCannotBeReadLosesNoFile) {
  put_file(to_hex(sha256("file")));
  ledger_->stop();
  EXPECT_FALSE(recover());
  EXPECT_EQ(files(), named({"file"}));
}

}  // namespace
}  // namespace clawdforge
