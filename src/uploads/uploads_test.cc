#include "uploads/uploads.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "ledger/ledger_fixture.h"
#include "storage/disk/workspace_fixture.h"
#include "storage/work/attachments.h"
#include "storage/work/upload_files.h"

namespace clawdforge {
namespace {

class UploadsTest : public WorkspaceTest {
 protected:
  UploadsTest() : clock_(TimePoint(std::chrono::hours(500'000))) {
    ledger_ = std::move(*open_ledger(io_.get_executor(), "sqlite:" + path("ledger.db"),
                                     InstanceId("i1"), log_, metrics_));
    uploads_ = std::make_unique<Uploads>(ledger_->uploads, files_, clock_, ids_,
                                         InstanceId("instance-1"), kBytesMaxPerApp);
  }

  std::unique_ptr<IncomingUpload> begin(std::int64_t bytes_max = 1000) {
    return std::move(*await(uploads_->begin(AppName("one"), bytes_max)));
  }
  Result<KeptUpload> upload(const std::string& app, const std::string& text,
                            const std::string& filename = "a.txt",
                            std::optional<std::int64_t> ttl_secs = std::nullopt) {
    auto incoming = begin();
    EXPECT_TRUE(await(incoming->append(text)));
    return await(uploads_->keep(std::move(incoming), {AppName(app), filename, ttl_secs}));
  }
  std::string find(const std::string& app, std::vector<std::string> tokens) {
    const auto found = await(uploads_->find(AppName(app), std::move(tokens)));
    if (!found) return std::string(found.error().code);
    std::string said;
    for (const Attachment& attachment : *found) {
      said += attachment.extension + ":" + read_file(attachment.path) + ";";
    }
    return said;
  }
  // What is on the disk when all that was asked of it is done.
  std::set<std::string> kept_files() {
    EXPECT_TRUE(await(disk_.call(Lane(), [] { return Result<void>{}; })));
    return exists(path("uploads")) ? names_in(path("uploads")) : std::set<std::string>{};
  }
  std::string rows(const std::string& columns) {
    return OtherProgram(path("ledger.db")).ask("SELECT " + columns + " FROM uploads");
  }

  static constexpr std::int64_t kBytesMaxPerApp = 100'000;

  Metrics metrics_;
  ManualClock clock_;
  CountingIds ids_;
  UploadFiles files_{root_, disk_};
  std::unique_ptr<Ledger> ledger_;
  std::unique_ptr<Uploads> uploads_;
};

TEST_F(UploadsTest, KeepsAFileUnderTheDigestOfItsToken) {
  const auto kept = upload("one", "hello", "Notes.MD");
  ASSERT_TRUE(kept);
  const std::string token(kept->token.reveal());
  EXPECT_TRUE(token.starts_with("ff_"));
  EXPECT_EQ(kept->size, 5);
  EXPECT_EQ(kept->ttl_secs, 3600);
  EXPECT_EQ(kept_files(), std::set<std::string>{to_hex(sha256(token))});
  EXPECT_EQ(find("one", {token}), ".md:hello;");
  EXPECT_EQ(rows("file_token_sha256, app_name, size, extension, expires_at - created_at, "
                 "instance_id"),
            to_hex(sha256(token)) + "|one|5|.md|3600|instance-1");
}

TEST_F(UploadsTest, FindsFilesInTheOrderOfTheTokens) {
  const std::string a(upload("one", "a", "a")->token.reveal());
  const std::string b(upload("one", "b", "b.x")->token.reveal());
  EXPECT_EQ(find("one", {b, a, b}), ".x:b;:a;.x:b;");
  EXPECT_EQ(find("one", {}), "");
}

TEST_F(UploadsTest, FindsNothingUnknownExpiredForeignOrMalformed) {
  const std::string token(upload("one", "a", "a", 60)->token.reveal());
  for (const std::string& wrong :
       {std::string(), std::string("ff_"), token + "x", token.substr(1), "cf_" + token.substr(3)}) {
    EXPECT_EQ(find("one", {token, wrong}), "file_not_found") << wrong;
  }
  EXPECT_EQ(find("two", {token}), "file_not_found");
  clock_.advance(std::chrono::seconds(59));
  EXPECT_EQ(find("one", {token}), ":a;");
  clock_.advance(std::chrono::seconds(1));
  EXPECT_EQ(find("one", {token}), "file_not_found");
}

TEST_F(UploadsTest, ClampsTheTimeToLive) {
  for (const auto& [asked, given] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {INT64_MIN, 60}, {59, 60}, {60, 60}, {86'400, 86'400}, {INT64_MAX, 86'400}}) {
    EXPECT_EQ(upload("one", "", "a", asked)->ttl_secs, given);
  }
}

TEST_F(UploadsTest, TakesAFileUpToItsLimitAndNothingOfALargerOne) {
  auto exact = begin(6);
  EXPECT_TRUE(await(exact->append("abc")));
  EXPECT_TRUE(await(exact->append("def")));
  const auto kept = await(uploads_->keep(std::move(exact), {AppName("one"), "a", std::nullopt}));
  EXPECT_EQ(kept->size, 6);
  auto larger = begin(6);
  EXPECT_TRUE(await(larger->append("abc")));
  const auto refused = await(larger->append("defg"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Errc::too_large);
  EXPECT_EQ(refused.error().code, "file_too_large");
  larger.reset();
  EXPECT_EQ(kept_files().size(), 1u);
}

TEST_F(UploadsTest, AnAppsUploadsTogetherHaveALimit) {
  // Each counts for 4,096 bytes more than it has.
  auto large = begin(kBytesMaxPerApp);
  ASSERT_TRUE(await(large->append(std::string(90'000, 'x'))));
  auto kept = await(uploads_->keep(std::move(large), {AppName("one"), "a", std::nullopt}));
  ASSERT_TRUE(kept);
  const std::string token(kept->token.reveal());
  {
    auto second = begin(5'000);
    const auto refused = await(second->append(std::string(1'900, 'x')));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, Errc::over_quota);
    EXPECT_EQ(refused.error().code, "uploads_full");
    EXPECT_EQ(await(uploads_->begin(AppName("one"), 1'000)).error().code, "uploads_full");
    EXPECT_TRUE(await(uploads_->begin(AppName("two"), 1'000))) << "each app has its own";
  }
  EXPECT_TRUE(upload("one", "small")) << "what was not kept has given its space back";
  ASSERT_TRUE(await(uploads_->count_stored()));
  EXPECT_EQ(uploads_->bytes(), 90'000 + 5 + 2 * 4'096) << "as the ledger says";
  ASSERT_TRUE(await(uploads_->expire(std::move(kept->token))));
  ASSERT_TRUE(await(uploads_->count_stored()));
  EXPECT_EQ(uploads_->bytes(), 5 + 4'096);
  EXPECT_EQ(find("one", {token}), "file_not_found");
}

TEST_F(UploadsTest, LeavesNoFileWhenItsRowCannotBeWritten) {
  OtherProgram(path("ledger.db")).run("DROP TABLE uploads");
  const auto refused = upload("one", "hello");
  ASSERT_FALSE(refused);
  EXPECT_EQ(kept_files(), std::set<std::string>{});
}

TEST_F(UploadsTest, LeavesNoRowWhenItsFileCannotBeKept) {
  auto incoming = begin();
  std::filesystem::remove_all(path("uploads"));
  write_file(path("uploads"), "in the way");
  EXPECT_FALSE(await(uploads_->keep(std::move(incoming), {AppName("one"), "a", std::nullopt})));
  EXPECT_EQ(rows("*"), "");
}

TEST_F(UploadsTest, DoesNotTrustTheExtensionOfARow) {
  const std::string token(upload("one", "a")->token.reveal());
  OtherProgram(path("ledger.db")).run("UPDATE uploads SET extension = '/../../b'");
  EXPECT_EQ(find("one", {token}), ":a;");
}

TEST(SafeExtension, SurvivesOnlyWhenItIsShortAndPlain) {
  EXPECT_EQ(safe_extension("a.txt"), ".txt");
  EXPECT_EQ(safe_extension("archive.tar.GZ"), ".gz");
  EXPECT_EQ(safe_extension("a.0123456789abcdef"), ".0123456789abcdef");
  for (const std::string_view none : {"", "txt", "a.", ".", "a.t t", "a.txt ", "a.../../x", "a.\"",
                                      "a.0123456789abcdefg", "a.b/c", "a.\xc3\xa9", "a.b\n"}) {
    EXPECT_EQ(safe_extension(none), "") << none;
  }
  EXPECT_EQ(safe_extension(std::string_view("a.t\0t", 5)), "");
}

RC_GTEST_PROP(SafeExtensionProperty, IsNothingOrADotAndPlainCharacters,
              (const std::string& filename)) {
  const std::string extension = safe_extension(filename);
  RC_ASSERT(safe_extension(extension) == extension);
  if (!extension.empty()) {
    RC_ASSERT(extension.size() >= 2u && extension.size() <= 17u && extension[0] == '.');
    RC_ASSERT(extension.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789", 1) ==
              std::string::npos);
  }
}

}  // namespace
}  // namespace clawdforge
