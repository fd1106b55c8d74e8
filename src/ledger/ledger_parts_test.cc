// What Ledger promises about blocks that are too large for one row, on every database there is a
// driver for.
#include "ledger/ledger_contract_fixture.h"

namespace clawdforge {
namespace {

const SessionId kLarge("s1");

class LedgerParts : public LedgerContract {
 protected:
  void SetUp() override {
    open();
    Session session;
    session.id = kLarge;
    session.app = AppName("a");
    session.agent = "demo";
    session.created_at = at_second(100);
    ASSERT_TRUE(await(ledger().sessions.add(session, {.open_max = 1, .open_max_per_app = {}})));
  }
  // One event in each block.
  Result<void> write(std::int64_t first, const std::vector<std::string>& blocks) {
    SessionWrite write{.session_id = kLarge,
                       .app = AppName("a"),
                       .starts = {},
                       .blocks = {},
                       .ends = {},
                       .audit = {}};
    for (const std::string& lines : blocks) {
      write.blocks.push_back({first, first, 0, at_second(100), lines});
      ++first;
    }
    return await(ledger().journal.write(std::move(write)));
  }
  std::vector<JournalBlock> page() {
    return await(ledger().journal.page(kLarge, 0, 100'000'000)).value();
  }
};

INSTANTIATE_TEST_SUITE_P(Databases, LedgerParts, databases(), name_of_database);

// Of several parts, whose cuts fall into characters of three bytes.
std::string large_lines(std::size_t characters) {
  std::string lines = "{\"text\":\"";
  for (std::size_t i = 0; i < characters; ++i) lines += "\xe2\x82\xac";
  return lines + "\"}\n";
}

TEST_P(LedgerParts, ALargeBlockIsReadBackWholeAndInItsPlace) {
  const std::string lines = large_lines(400'000);
  for (int time = 0; time < 2; ++time) {  // a write that is repeated counts once
    ASSERT_TRUE(write(1, {"{}\n", lines, "[]\n"}));
    const auto blocks = page();
    ASSERT_EQ(blocks.size(), 3U);
    EXPECT_EQ(blocks[0].lines, "{}\n");
    EXPECT_TRUE(blocks[1].lines == lines);
    EXPECT_EQ(blocks[2].lines, "[]\n");
    EXPECT_EQ(await(ledger().sessions.load(kLarge)).value().last_event_id, 3);
  }
}

TEST_P(LedgerParts, OneThatIsTrimmedLeavesTheOthersWhole) {
  const std::string second = large_lines(300'000);
  ASSERT_TRUE(write(1, {large_lines(600'000)}));
  ASSERT_TRUE(write(2, {second}));
  ASSERT_EQ(await(ledger().journal.trim_large(1'000'000, 10)).value(), 1);
  const std::string third = large_lines(500'000);
  ASSERT_TRUE(write(3, {third}));
  const auto blocks = page();
  ASSERT_EQ(blocks.size(), 2U);
  EXPECT_TRUE(blocks[0].lines == second);
  EXPECT_TRUE(blocks[1].lines == third);
}

TEST_P(LedgerParts, AShorterOneTakesThePlaceOfOneThatWasLost) {
  ASSERT_TRUE(write(1, {large_lines(900'000)}));
  ASSERT_EQ(await(ledger().journal.trim_large(0, 10)).value(), 1);
  const std::string shorter = large_lines(200'000);
  ASSERT_TRUE(write(1, {shorter}));
  const auto blocks = page();
  ASSERT_EQ(blocks.size(), 1U);
  EXPECT_TRUE(blocks[0].lines == shorter);
}

}  // namespace
}  // namespace clawdforge
