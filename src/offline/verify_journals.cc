// Each session's journal from its first block to its last, and its turns beside it. One
// block is in memory at a time, and one byte for each turn of one session.
#include <fmt/format.h>

#include <limits>
#include <utility>

#include "json/json_check.h"
#include "json/json_parse.h"
#include "ledger/core/row_values.h"
#include "ledger/sessions/journal_parts.h"
#include "model/session.h"
#include "offline/verify.h"

namespace clawdforge {
namespace {

constexpr Check kHole{"journal-hole", "events are missing in the middle of a journal"};
constexpr Check kBlock{"journal-block", "a block of a journal does not hold what its row says"};
constexpr Check kEvent{"journal-event", "an event of a journal is not the JSON it should be"};
constexpr Check kNoClosing{"turn-unclosed", "a turn has ended without its closing event"};
constexpr Check kManyClosings{"turn-closed-twice", "a turn has more than one closing event"};
constexpr Check kEarlyClosing{"turn-closed-early",
                              "a turn has its closing event and has not ended"};
constexpr Check kOtherClosing{"turn-closing", "a turn's closing event is not that of its state"};
constexpr Check kNoOpening{"turn-unopened", "a turn does not begin with its one `turn` event"};

constexpr std::int64_t kVerifyBlocksMax = 500;  // of which the row is read together
constexpr std::int64_t kVerifyTurnsMax = 500;
constexpr std::int64_t kVerifySessionsMax = 500;

constexpr std::string_view kSessions =
    "SELECT session_id, (SELECT COUNT(*) FROM turns WHERE turns.session_id = sessions.session_id) "
    "FROM sessions WHERE session_id > $1 ORDER BY session_id LIMIT $2";
constexpr std::string_view kBlocks =
    "SELECT first_event_id, last_event_id, turn_index, bytes FROM journal "
    "WHERE session_id = $1 AND first_event_id > $2 ORDER BY first_event_id LIMIT $3";
constexpr std::string_view kEvents =
    "SELECT events FROM journal WHERE session_id = $1 AND first_event_id = $2";
constexpr std::string_view kTurns =
    "SELECT turn_index, state, ended_at, first_event_id FROM turns "
    "WHERE session_id = $1 AND turn_index > $2 ORDER BY turn_index LIMIT $3";

constexpr std::int64_t kBeforeAll = std::numeric_limits<std::int64_t>::min();

struct BlockRow {
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::int64_t turn_index = 0;
  std::int64_t bytes = 0;
};

// What a turn's closing events say, in one byte.
enum class Closing : char { none, done, failed, many };

class JournalWalk {
 public:
  JournalWalk(SqlDriver& driver, Findings& findings, std::string session_id, std::int64_t turns)
      : driver_(driver),
        findings_(findings),
        session_id_(std::move(session_id)),
        closings_(static_cast<std::size_t>(turns) + 1, Closing::none),
        openings_(static_cast<std::size_t>(turns) + 1) {}

  Result<void> run() {
    if (auto read = read_blocks(); !read) return read;
    return read_turns();
  }

 private:
  std::string name(std::int64_t number) const { return fmt::format("{}/{}", session_id_, number); }

  Result<void> read_blocks() {
    for (std::int64_t last_read = kBeforeAll;;) {
      const auto page = driver_.execute(kBlocks, {session_id_, last_read, kVerifyBlocksMax});
      if (!page) return std::unexpected(page.error());
      for (const SqlRow& row : page->rows) {
        const auto first = whole_in(row.at(0));
        const auto last = whole_in(row.at(1));
        const auto turn = whole_in(row.at(2));
        const auto bytes = whole_in(row.at(3));
        if (!first || !last || !turn || !bytes || *first < 1 || *last < *first) {
          findings_.note(kBlock, first ? name(*first) : session_id_);
          if (!first) return {};  // not a number: the next page cannot be asked for
          last_read = *first;
          continue;
        }
        if (auto read = read_block({*first, *last, *turn, *bytes}); !read) return read;
        last_read = *first;
      }
      if (std::cmp_less(page->rows.size(), kVerifyBlocksMax)) return {};
    }
  }

  Result<void> read_block(const BlockRow& block) {
    if (next_ == 0) {
      has_head_ = block.first == 1;
      first_ = block.first;
    } else if (block.first != next_) {
      findings_.note(kHole, name(next_));
    }
    next_ = block.last + 1;
    auto result = driver_.execute(kEvents, {session_id_, block.first});
    if (!result) return std::unexpected(std::move(result.error()));
    auto* const events =
        result->rows.empty() ? nullptr : std::get_if<std::string>(&result->rows[0].at(0));
    if (events != nullptr && events->empty() && block.bytes > 0) {
      if (auto read = append_parts(driver_, session_id_, block.first, *events); !read) return read;
    }
    if (events == nullptr || !std::cmp_equal(events->size(), block.bytes) ||
        !read_events(*events, block)) {
      findings_.note(kBlock, name(block.first));
    }
    return {};
  }

  // False: they are not the events that the block's row promises.
  bool read_events(std::string_view lines, const BlockRow& block) {
    std::int64_t id = block.first;
    for (; !lines.empty(); ++id) {
      const std::size_t end = lines.find('\n');
      if (end == lines.npos) return false;
      const std::string_view line = lines.substr(0, end);
      lines.remove_prefix(end + 1);
      const auto event = event_in(line);
      if (!event || event->id != id || event->turn_index != block.turn_index) return false;
      if (!is_json_object(line, kJournalJsonDepthMax)) findings_.note(kEvent, name(id));
      note_opening(*event);
      if (event->kind == EventKind::done) note_closing(event->turn_index, Closing::done);
      if (event->kind == EventKind::failed) note_closing(event->turn_index, Closing::failed);
    }
    return id == block.last + 1;
  }

  // The first event of a turn, if that is its `turn` event; one that comes later makes it wrong.
  void note_opening(const EventView& event) {
    const std::int64_t turn = event.turn_index;
    if (turn < 1 || std::cmp_greater_equal(turn, openings_.size())) return;
    std::int64_t& known = openings_[static_cast<std::size_t>(turn)];
    const bool is_opening = event.kind == EventKind::turn;
    if (known == 0) {
      known = is_opening ? event.id : kNotOpened;
    } else if (is_opening) {
      known = kNotOpened;
    }
  }

  void note_closing(std::int64_t turn_index, Closing closing) {
    // Beyond the turns that are there: another check finds those.
    if (turn_index < 1 || std::cmp_greater_equal(turn_index, closings_.size())) return;
    Closing& known = closings_[static_cast<std::size_t>(turn_index)];
    known = known == Closing::none ? closing : Closing::many;
  }

  Result<void> read_turns() {
    for (std::int64_t last_read = kBeforeAll;;) {
      const auto page = driver_.execute(kTurns, {session_id_, last_read, kVerifyTurnsMax});
      if (!page) return std::unexpected(page.error());
      for (const SqlRow& row : page->rows) {
        const auto index = whole_in(row.at(0));
        if (!index) return {};
        last_read = *index;
        if (*index < 1 || std::cmp_greater_equal(*index, closings_.size())) continue;
        compare(*index, turn_state_from(text_in(row.at(1)).value_or("")),
                !std::holds_alternative<std::monostate>(row.at(2)));
        compare_opening(*index, whole_in(row.at(3)));
      }
      if (std::cmp_less(page->rows.size(), kVerifyTurnsMax)) return {};
    }
  }

  void compare(std::int64_t index, std::optional<TurnState> state, bool has_ended) {
    const Closing closing = closings_[static_cast<std::size_t>(index)];
    const bool is_failure = state == TurnState::failed || state == TurnState::interrupted;
    if (closing == Closing::many) {
      findings_.note(kManyClosings, name(index));
    } else if (closing == Closing::none) {
      // Retention takes the oldest events away, and with them perhaps this one.
      if (has_ended && has_head_) findings_.note(kNoClosing, name(index));
    } else if (!has_ended) {
      findings_.note(kEarlyClosing, name(index));
    } else if ((closing == Closing::failed) != is_failure) {
      findings_.note(kOtherClosing, name(index));
    }
  }

  // Turns that are older than such events have none, and retention may have taken it away.
  void compare_opening(std::int64_t index, std::optional<std::int64_t> first_event_id) {
    if (!first_event_id || *first_event_id < first_) return;
    if (openings_[static_cast<std::size_t>(index)] != *first_event_id) {
      findings_.note(kNoOpening, name(index));
    }
  }

  static constexpr std::int64_t kNotOpened = -1;

  SqlDriver& driver_;
  Findings& findings_;
  const std::string session_id_;
  std::vector<Closing> closings_;       // by turn index
  std::vector<std::int64_t> openings_;  // likewise: of `turn` events; 0: no event of it was seen
  std::int64_t first_ = std::numeric_limits<std::int64_t>::max();  // event that the journal has
  std::int64_t next_ = 0;  // the event that comes next; 0: there was none yet
  bool has_head_ = false;  // the journal begins with the session's first event
};

}  // namespace

Result<void> verify_journals(SqlDriver& driver, Findings& findings) {
  for (const Check& check : {kHole, kBlock, kEvent, kNoClosing, kManyClosings, kEarlyClosing,
                             kOtherClosing, kNoOpening}) {
    findings.begin(check);
  }
  for (std::string last;;) {
    const auto page = driver.execute(kSessions, {last, kVerifySessionsMax});
    if (!page) return std::unexpected(page.error());
    std::string next = last;
    for (const SqlRow& row : page->rows) {
      next = text_in(row.at(0)).value_or("");
      JournalWalk walk(driver, findings, next, whole_in(row.at(1)).value_or(0));
      if (auto walked = walk.run(); !walked) return walked;
    }
    if (std::cmp_less(page->rows.size(), kVerifySessionsMax) || next <= last) return {};
    last = std::move(next);
  }
}

}  // namespace clawdforge
