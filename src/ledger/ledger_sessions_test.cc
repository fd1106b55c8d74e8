// Every promise of Ledger about sessions, on every database there is a driver for.
#include <algorithm>

#include "ledger/ledger_contract_fixture.h"

namespace clawdforge {
namespace {

using Ids = std::vector<std::string>;

const SessionId kFirst("s1");

constexpr SessionLimits kWide{.open_max = 1'000, .open_max_per_app = std::nullopt};

AuditEvent event_of(const std::string& name, std::int64_t second, std::string meta = "{}") {
  return {.event = name, .at = at_second(second), .meta = std::move(meta)};
}

Session session_named(const std::string& id, std::int64_t second = 100,
                      const std::string& app = "a") {
  Session session;
  session.id = SessionId(id);
  session.app = AppName(app);
  session.agent = "demo";
  session.created_at = at_second(second);
  return session;
}

class LedgerSessions : public LedgerContract {
 protected:
  void add(const std::string& id, std::int64_t second = 100, const std::string& app = "a") {
    ASSERT_TRUE(await(ledger().sessions.add(session_named(id, second, app), kWide)));
  }
  Session find(const std::string& id) { return *await(ledger().sessions.load(SessionId(id))); }
  bool close(const std::string& id, std::int64_t second,
             std::optional<TimePoint> idle_since = std::nullopt) {
    const SessionId asked(id);
    return *await(
        ledger().sessions.close(asked, CloseReason::closed, event_of("close", second), idle_since));
  }
  // One turn that has begun, said something and ended.
  SessionWrite whole_turn(const std::string& id, std::int64_t index, std::int64_t second) {
    SessionWrite write{.session_id = SessionId(id),
                       .app = AppName("a"),
                       .starts = {},
                       .blocks = {},
                       .ends = {},
                       .audit = {event_of("turn", second)}};
    write.starts = {{index, at_second(second)}};
    write.blocks = {{index * 10, index * 10 + 4, index, at_second(second), "{}\n{}\n"}};
    write.ends = {{.index = index,
                   .state = TurnState::done,
                   .at = at_second(second + 1),
                   .stop_reason = "end_turn",
                   .code = std::nullopt,
                   .usage = Usage{1, 2, 3, 4},
                   .cost_usd = 0.25}};
    return write;
  }
  Ids audit() {
    Ids lines;
    for (const AuditRecord& record : await(ledger().audit.page({})).value().events) {
      lines.push_back(record.session_id.str() + " " + record.app.str() + " " + record.event.event);
    }
    return lines;
  }
  Ids listed(const SessionFilter& filter) {
    Ids ids;
    for (const Session& session : await(ledger().sessions.page(filter)).value().sessions) {
      ids.push_back(session.id.str());
    }
    return ids;
  }
};

INSTANTIATE_TEST_SUITE_P(Databases, LedgerSessions, databases(), name_of_database);

TEST_P(LedgerSessions, ASessionIsReadBackAsItWasAdded) {
  open();
  Session session = session_named("s1");
  session.meta = R"({"who": "me"})";
  session.model = "opus";
  session.system = "be brief";
  session.effort = "high";
  session.mcp_servers = R"([{"name":"x"}])";
  session.permission_mode = PermissionMode::ask;
  ASSERT_TRUE(await(ledger().sessions.add(session, kWide)));
  const Session read = find("s1");
  EXPECT_EQ(read.id, "s1");
  EXPECT_EQ(read.app, "a");
  EXPECT_EQ(read.agent, "demo");
  EXPECT_EQ(read.meta, session.meta);
  EXPECT_EQ(read.created_at, at_second(100));
  EXPECT_FALSE(read.last_turn_at);
  EXPECT_FALSE(read.closed_at);
  EXPECT_EQ(read.close_reason, "");
  EXPECT_EQ(read.turn_count, 0);
  EXPECT_EQ(read.last_event_id, 0);
  EXPECT_EQ(read.usage, Usage());
  EXPECT_FALSE(read.cost_usd);
  EXPECT_EQ(read.agent_session_id, "");
  EXPECT_EQ(read.model, "opus");
  EXPECT_EQ(read.system, "be brief");
  EXPECT_EQ(read.effort, "high");
  EXPECT_EQ(read.mcp_servers, session.mcp_servers);
  EXPECT_EQ(read.permission_mode, PermissionMode::ask);
  EXPECT_TRUE(audit().empty()) << "no caller was told of it yet";

  const Session found = await(ledger().sessions.find(kFirst)).value();
  EXPECT_EQ(found.model, "opus");
  EXPECT_EQ(found.permission_mode, PermissionMode::ask);
  EXPECT_EQ(found.system, "") << "only its agent needs it";
  EXPECT_EQ(found.mcp_servers, "");

  for (const auto& absent : {await(ledger().sessions.find(SessionId("s2"))),
                             await(ledger().sessions.load(SessionId("s2")))}) {
    ASSERT_FALSE(absent);
    EXPECT_EQ(absent.error().kind, Errc::not_found);
    EXPECT_EQ(absent.error().code, "session_not_found");
  }
}

TEST_P(LedgerSessions, NoMoreAreOpenThanTheLimitsAllow) {
  open();
  const auto add_to = [&](const std::string& id, const std::string& app, SessionLimits limits) {
    const auto added = await(ledger().sessions.add(session_named(id, 100, app), limits));
    return added ? "added" : std::string(added.error().code);
  };
  EXPECT_EQ(add_to("s1", "a", {3, 2}), "added");
  EXPECT_EQ(add_to("s2", "a", {3, 2}), "added");
  EXPECT_EQ(add_to("s3", "a", {3, 2}), "too_many_sessions");
  EXPECT_EQ(add_to("s3", "b", {3, 2}), "added");
  EXPECT_EQ(add_to("s4", "b", {3, 2}), "pool_full");
  EXPECT_EQ(add_to("s4", "a", {3, 2}), "too_many_sessions") << "its own limit is told first";
  EXPECT_EQ(add_to("s4", "c", {3, 0}), "too_many_sessions");
  EXPECT_EQ(add_to("s4", "c", {3, std::nullopt}), "pool_full");
  EXPECT_EQ(add_to("s4", "a", {.open_max = 9, .open_share_max = 2}), "pool_full");
  EXPECT_TRUE(ledger().is_healthy()) << "a full pool does not mean that the ledger fails";
  EXPECT_EQ(await(ledger().sessions.count_open()), 3);

  const auto full = await(ledger().sessions.add(session_named("s4"), {3, {}}));
  EXPECT_EQ(full.error().kind, Errc::unavailable);
  EXPECT_GT(full.error().retry_after.count(), 0);
  const auto own = await(ledger().sessions.add(session_named("s4"), {9, 1}));
  EXPECT_EQ(own.error().kind, Errc::over_quota);

  ASSERT_TRUE(close("s1", 101));
  EXPECT_EQ(add_to("s4", "a", {3, 2}), "added") << "closed ones do not count";
}

TEST_P(LedgerSessions, AnAgentIsNotedWhileTheSessionIsOpen) {
  open();
  add("s1");
  ASSERT_TRUE(await(ledger().sessions.note_agent(kFirst, "agent-1", {4711, 99, "b"},
                                                 SessionCreated{event_of("create", 100)})));
  EXPECT_EQ(find("s1").agent_session_id, "agent-1");
  ASSERT_TRUE(await(ledger().sessions.forget_process(kFirst)));
  ASSERT_TRUE(await(as("i2").sessions.note_agent(kFirst, "agent-2", {1, 2, "b"}, std::nullopt)));
  EXPECT_EQ(find("s1").agent_session_id, "agent-2");
  EXPECT_EQ(audit(), Ids{"s1 a create"});

  ASSERT_TRUE(close("s1", 101));
  for (const char* id : {"s1", "never-there"}) {
    const auto noted = await(ledger().sessions.note_agent(SessionId(id), "agent-3", {},
                                                          SessionCreated{event_of("create", 102)}));
    ASSERT_FALSE(noted);
    EXPECT_EQ(noted.error().kind, Errc::gone);
    EXPECT_EQ(noted.error().code, "session_closed");
  }
  EXPECT_EQ(find("s1").agent_session_id, "agent-2");
  EXPECT_EQ(audit(), (Ids{"s1 a close", "s1 a create"}));
  EXPECT_TRUE(await(ledger().sessions.forget_process(SessionId("never-there"))));
  EXPECT_TRUE(ledger().is_healthy());
}

TEST_P(LedgerSessions, NothingIsLeftOfADroppedSession) {
  open();
  add("s1");
  add("s2");
  ASSERT_TRUE(await(ledger().journal.write(whole_turn("s1", 1, 200))));
  ASSERT_TRUE(await(ledger().sessions.drop(kFirst)));
  ASSERT_TRUE(await(ledger().sessions.drop(kFirst)));
  EXPECT_EQ(texts_of(await(ledger().sessions.all_ids()).value()), Ids{"s2"});
  EXPECT_EQ(await(ledger().journal.trim_old(at_second(999), 10)), 0);
  EXPECT_EQ(await(ledger().sessions.count_open()), 1);
}

TEST_P(LedgerSessions, ASessionIsClosedOnce) {
  open();
  add("s1");
  EXPECT_TRUE(close("s1", 200));
  EXPECT_FALSE(close("s1", 300));
  EXPECT_FALSE(close("never-there", 300));
  EXPECT_EQ(find("s1").closed_at, at_second(200));
  EXPECT_EQ(find("s1").close_reason, "closed");
  EXPECT_EQ(audit(), Ids{"s1 a close"});
  EXPECT_EQ(texts_of(await(ledger().sessions.open_among({kFirst})).value()), Ids{});
}

TEST_P(LedgerSessions, AnIdleSessionIsClosedOnlyIfNothingHasHappenedSince) {
  open();
  add("s1", 100);
  EXPECT_FALSE(close("s1", 500, at_second(99)));
  ASSERT_TRUE(await(ledger().journal.write(whole_turn("s1", 1, 200))));
  EXPECT_FALSE(close("s1", 500, at_second(100))) << "a turn has ended at 201";
  EXPECT_FALSE(close("s1", 500, at_second(200)));
  EXPECT_FALSE(find("s1").closed_at);
  EXPECT_EQ(audit(), Ids{"s1 a turn"});
  EXPECT_TRUE(close("s1", 500, at_second(201)));
  add("s2", 100);
  EXPECT_TRUE(close("s2", 500, at_second(100))) << "without a turn, its creation counts";
}

TEST_P(LedgerSessions, AWriteMovesTheSessionOn) {
  open();
  add("s1");
  SessionWrite begun{.session_id = kFirst,
                     .app = AppName("a"),
                     .starts = {{1, at_second(200)}},
                     .blocks = {},
                     .ends = {},
                     .audit = {}};
  ASSERT_TRUE(await(ledger().journal.write(begun)));
  EXPECT_EQ(find("s1").turn_count, 1);
  EXPECT_EQ(find("s1").last_turn_at, at_second(200));
  EXPECT_EQ(find("s1").last_event_id, 0);

  ASSERT_TRUE(await(ledger().journal.write(whole_turn("s1", 1, 210))));
  const Session after = find("s1");
  EXPECT_EQ(after.turn_count, 1);
  EXPECT_EQ(after.last_turn_at, at_second(211));
  EXPECT_EQ(after.last_event_id, 14);
  EXPECT_EQ(after.usage, (Usage{1, 2, 3, 4}));
  EXPECT_EQ(after.cost_usd, 0.25);

  ASSERT_TRUE(await(ledger().journal.write(whole_turn("s1", 2, 220))));
  EXPECT_EQ(find("s1").turn_count, 2);
  EXPECT_EQ(find("s1").usage, (Usage{2, 4, 6, 8}));
  EXPECT_EQ(find("s1").cost_usd, 0.5);
  EXPECT_EQ(audit(), (Ids{"s1 a turn", "s1 a turn"}));
}

TEST_P(LedgerSessions, WhatIsNotKnownOfATurnIsNotCounted) {
  open();
  add("s1");
  SessionWrite write = whole_turn("s1", 1, 200);
  write.ends[0].usage.reset();
  write.ends[0].cost_usd.reset();
  ASSERT_TRUE(await(ledger().journal.write(write)));
  EXPECT_EQ(find("s1").usage, Usage());
  EXPECT_FALSE(find("s1").cost_usd);
  SessionWrite priced = whole_turn("s1", 2, 300);
  priced.ends[0].cost_usd = 1.5;
  ASSERT_TRUE(await(ledger().journal.write(priced)));
  SessionWrite unpriced = whole_turn("s1", 3, 400);
  unpriced.ends[0].cost_usd.reset();
  ASSERT_TRUE(await(ledger().journal.write(unpriced)));
  SessionWrite absurd = whole_turn("s1", 4, 400);
  absurd.ends[0].cost_usd = std::numeric_limits<double>::infinity();
  ASSERT_TRUE(await(ledger().journal.write(absurd)));
  EXPECT_EQ(find("s1").cost_usd, 1.5);
}

TEST_P(LedgerSessions, AWriteThatIsRepeatedCountsOnce) {
  open();
  add("s1");
  const SessionWrite write = whole_turn("s1", 1, 200);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(await(ledger().journal.write(write)));
  EXPECT_EQ(find("s1").turn_count, 1);
  EXPECT_EQ(find("s1").usage, (Usage{1, 2, 3, 4}));
  EXPECT_EQ(find("s1").cost_usd, 0.25);
  EXPECT_EQ(audit(), Ids{"s1 a turn"});
  EXPECT_EQ(await(ledger().journal.trim_old(at_second(999), 10)), 1);

  SessionWrite told = whole_turn("s1", 1, 200);
  told.starts.clear();
  told.blocks.clear();
  told.ends.clear();
  told.audit = {event_of("cancel", 300)};
  ASSERT_TRUE(await(ledger().journal.write(told)));
  EXPECT_EQ(audit(), (Ids{"s1 a cancel", "s1 a turn"})) << "the audit alone is always news";
  EXPECT_EQ(find("s1").last_turn_at, at_second(201));
}

TEST_P(LedgerSessions, ATurnEndsOnceAndTheFirstEndCounts) {
  open();
  add("s1");
  ASSERT_TRUE(await(ledger().journal.write(whole_turn("s1", 1, 200))));
  SessionWrite again = whole_turn("s1", 1, 300);
  again.starts.clear();
  again.blocks.clear();
  again.ends[0].usage = Usage{1'000, 0, 0, 0};
  again.ends[0].cost_usd = 1'000;
  ASSERT_TRUE(await(ledger().journal.write(again)));
  EXPECT_EQ(find("s1").usage, (Usage{1, 2, 3, 4}));
  EXPECT_EQ(find("s1").cost_usd, 0.25);
}

TEST_P(LedgerSessions, NothingIsWrittenForASessionThatIsGone) {
  open();
  ASSERT_TRUE(await(ledger().journal.write(whole_turn("s1", 1, 200))));
  EXPECT_TRUE(audit().empty());
  EXPECT_EQ(await(ledger().journal.trim_old(at_second(999), 10)), 0);
  add("s1");
  EXPECT_EQ(find("s1").turn_count, 0);
  EXPECT_TRUE(await(as("other").journal.unfinished_turns(10)).value().empty());
}

TEST_P(LedgerSessions, AClosedSessionStillTakesTheEndOfItsTurn) {
  open();
  add("s1");
  SessionWrite begun = whole_turn("s1", 1, 200);
  begun.ends.clear();
  begun.audit.clear();
  ASSERT_TRUE(await(ledger().journal.write(begun)));
  ASSERT_TRUE(close("s1", 201));
  SessionWrite ended = whole_turn("s1", 1, 202);
  ended.starts.clear();
  ended.blocks.clear();
  ASSERT_TRUE(await(ledger().journal.write(ended)));
  EXPECT_TRUE(await(as("other").journal.unfinished_turns(10)).value().empty());
  EXPECT_EQ(find("s1").closed_at, at_second(201));
}

TEST_P(LedgerSessions, SessionsComeNewestFirstInPagesThatLeaveNothingOut) {
  open();
  Ids expected;
  Ids expected_open;
  for (int i = 0; i < 25; ++i) {
    const std::string id = "s" + std::to_string(100 + i);
    add(id, 1'000 + i / 4);
    expected.insert(expected.begin(), id);
    if (i % 5 == 0) ASSERT_TRUE(close(id, 2'000));
    if (i % 5 != 0) expected_open.insert(expected_open.begin(), id);
  }
  for (const bool includes_closed : {false, true}) {
    for (const std::int64_t limit : {1, 2, 7, 19, 20, 21, 25, 1'000}) {
      SessionFilter filter;
      filter.audit.limit = limit;
      filter.includes_closed = includes_closed;
      Ids seen;
      for (;;) {
        const SessionPage page = await(ledger().sessions.page(filter)).value();
        ASSERT_LE(page.sessions.size(), static_cast<std::size_t>(limit));
        ASSERT_FALSE(page.sessions.empty());
        for (const Session& session : page.sessions) seen.push_back(session.id.str());
        if (!page.next_cursor) break;
        filter.audit.cursor = page.next_cursor;
      }
      EXPECT_EQ(seen, includes_closed ? expected : expected_open) << limit;
    }
  }
}

TEST_P(LedgerSessions, SessionsAreFilteredByAppAndTimeOfCreation) {
  open();
  for (int i = 0; i < 10; ++i) {
    add("s" + std::to_string(i), 100 + i, i % 2 == 0 ? "even" : "odd");
  }
  ASSERT_TRUE(close("s5", 200));
  SessionFilter filter;
  filter.audit.app = AppName("odd");
  EXPECT_EQ(listed(filter), (Ids{"s9", "s7", "s3", "s1"}));
  filter.includes_closed = true;
  EXPECT_EQ(listed(filter), (Ids{"s9", "s7", "s5", "s3", "s1"}));
  filter.audit.since = at_second(103);
  filter.audit.until = at_second(107);
  EXPECT_EQ(listed(filter), (Ids{"s7", "s5", "s3"}));
  filter.includes_closed = false;
  EXPECT_EQ(listed(filter), (Ids{"s7", "s3"}));
  filter.audit.app.reset();
  EXPECT_EQ(listed(filter), (Ids{"s7", "s6", "s4", "s3"}));
  filter.audit.app = AppName("absent");
  EXPECT_TRUE(listed(filter).empty());
}

TEST_P(LedgerSessions, TheAuditComesNewestFirstInPagesThatLeaveNothingOut) {
  open();
  add("s1");
  add("s2", 100, "b");
  Ids expected;
  for (int i = 0; i < 25; ++i) {
    const bool is_first = i % 3 != 0;
    SessionWrite write{.session_id = SessionId(is_first ? "s1" : "s2"),
                       .app = AppName(is_first ? "a" : "b"),
                       .starts = {},
                       .blocks = {},
                       .ends = {},
                       .audit = {event_of("n" + std::to_string(i), 1'000 + i / 10)}};
    ASSERT_TRUE(await(ledger().journal.write(write)));
    expected.insert(expected.begin(), "n" + std::to_string(i));
  }
  for (const std::int64_t limit : {1, 2, 9, 24, 25, 26}) {
    AuditFilter filter;
    filter.limit = limit;
    Ids seen;
    for (;;) {
      const AuditPage page = await(ledger().audit.page(filter)).value();
      ASSERT_FALSE(page.events.empty());
      for (const AuditRecord& record : page.events) seen.push_back(record.event.event);
      if (!page.next_cursor) break;
      filter.cursor = page.next_cursor;
    }
    EXPECT_EQ(seen, expected) << limit;
  }
  const auto names = [&](const AuditFilter& filter) {
    Ids seen;
    for (const AuditRecord& record : await(ledger().audit.page(filter)).value().events) {
      seen.push_back(record.session_id.str() + record.event.event);
    }
    return seen;
  };
  AuditFilter filter;
  filter.app = AppName("b");
  filter.since = at_second(1'001);
  EXPECT_EQ(names(filter), (Ids{"s2n24", "s2n21", "s2n18", "s2n15", "s2n12"}));
  filter.until = at_second(1'001);
  filter.limit = 2;
  EXPECT_EQ(names(filter), (Ids{"s2n18", "s2n15"}));
  filter.cursor = await(ledger().audit.page(filter)).value().next_cursor;
  EXPECT_EQ(names(filter), Ids{"s2n12"});
}

TEST_P(LedgerSessions, ACursorThatNoPageHasGivenIsRefused) {
  open();
  for (const char* cursor : {"", "x", "12", ".s1", "s1.12", "99999999999999999999.s1"}) {
    SessionFilter filter;
    filter.audit.cursor = cursor;
    const auto sessions = await(ledger().sessions.page(filter));
    ASSERT_FALSE(sessions) << cursor;
    EXPECT_EQ(sessions.error().code, "validation_failed");
    EXPECT_FALSE(await(ledger().audit.page(filter.audit))) << cursor;
  }
  for (const char* cursor : {"12.s1", "12.7x", "12.99999999999999999999"}) {
    AuditFilter filter;
    filter.cursor = cursor;
    const auto events = await(ledger().audit.page(filter));
    ASSERT_FALSE(events) << cursor;
    EXPECT_EQ(events.error().fields.at(0).field, "cursor");
  }
}

TEST_P(LedgerSessions, ThoseThatAreOpenAreToldFromTheOthers) {
  open();
  add("s1");
  add("s2");
  add("s3");
  ASSERT_TRUE(close("s2", 101));
  EXPECT_EQ(texts_of(await(ledger().sessions.open_among({SessionId("s3"), SessionId("never-there"),
                                                         SessionId("s2"), kFirst}))
                         .value()),
            (Ids{"s3", "s1"}));
  EXPECT_TRUE(await(ledger().sessions.open_among({})).value().empty());
}

TEST_P(LedgerSessions, IdleOnesComeOldestFirst) {
  open();
  add("late", 500);
  add("first", 100);
  add("woken", 50);
  add("then", 200);
  add("closed", 10);
  ASSERT_TRUE(await(ledger().journal.write(whole_turn("woken", 1, 300))));
  ASSERT_TRUE(close("closed", 20));
  const auto idle = [&](std::int64_t last, std::int64_t limit) {
    Ids ids;
    for (const Session& session : await(ledger().sessions.idle(at_second(last), limit)).value()) {
      ids.push_back(session.id.str() + session.app.str());
    }
    return ids;
  };
  EXPECT_EQ(idle(99, 10), Ids{});
  EXPECT_EQ(idle(100, 10), Ids{"firsta"});
  EXPECT_EQ(idle(301, 10), (Ids{"firsta", "thena", "wokena"}));
  EXPECT_EQ(idle(301, 2), (Ids{"firsta", "thena"}));
}

TEST_P(LedgerSessions, ClosedOnesComeOldestFirst) {
  open();
  for (const char* id : {"s1", "s2", "s3", "s4"}) add(id);
  ASSERT_TRUE(close("s1", 300));
  ASSERT_TRUE(close("s2", 200));
  ASSERT_TRUE(close("s3", 400));
  EXPECT_EQ(texts_of(await(ledger().sessions.closed(at_second(300), 10)).value()),
            (Ids{"s2", "s1"}));
  EXPECT_EQ(texts_of(await(ledger().sessions.closed(at_second(900), 1)).value()), Ids{"s2"});
  Ids all = texts_of(await(ledger().sessions.all_ids()).value());
  std::ranges::sort(all);
  EXPECT_EQ(all, (Ids{"s1", "s2", "s3", "s4"}));
}

TEST_P(LedgerSessions, OnlyClosedSessionsAreDeletedAndTheirJournalsInSteps) {
  open();
  add("s1");
  add("other");
  ASSERT_TRUE(await(ledger().journal.write(whole_turn("other", 1, 200))));
  for (std::int64_t i = 1; i <= 5; ++i) {
    ASSERT_TRUE(await(ledger().journal.write(whole_turn("s1", i, 200 + i))));
  }
  const AuditEvent gone = event_of("hard_delete", 900);
  EXPECT_EQ(await(ledger().sessions.remove_closed(kFirst, gone, 100)), false) << "it is open";
  EXPECT_EQ(find("s1").turn_count, 5);
  ASSERT_TRUE(close("s1", 300));
  EXPECT_EQ(await(ledger().sessions.remove_closed(kFirst, gone, 2)), false);
  EXPECT_EQ(await(ledger().sessions.remove_closed(kFirst, gone, 2)), false);
  EXPECT_EQ(find("s1").closed_at, at_second(300)) << "the row goes last";
  EXPECT_EQ(audit().at(0), "s1 a close");
  EXPECT_EQ(await(ledger().sessions.remove_closed(kFirst, gone, 2)), true);
  EXPECT_EQ(audit().at(0), "s1 a hard_delete");
  EXPECT_FALSE(await(ledger().sessions.find(kFirst)));
  EXPECT_EQ(await(ledger().sessions.remove_closed(kFirst, gone, 2)), true);
  EXPECT_EQ(std::ranges::count(audit(), "s1 a hard_delete"), 1);
  EXPECT_EQ(await(ledger().journal.trim_old(at_second(999), 10)), 1) << "the other's is there";
}

TEST_P(LedgerSessions, JournalsAreTrimmedByAgeOldestFirst) {
  open();
  add("s1");
  for (std::int64_t i = 1; i <= 5; ++i) {
    ASSERT_TRUE(await(ledger().journal.write(whole_turn("s1", i, 200 + i))));
  }
  EXPECT_EQ(await(ledger().journal.trim_old(at_second(200), 10)), 0);
  EXPECT_EQ(await(ledger().journal.trim_old(at_second(203), 2)), 2);
  EXPECT_EQ(await(ledger().journal.trim_old(at_second(203), 2)), 1);
  EXPECT_EQ(await(ledger().journal.trim_old(at_second(203), 2)), 0);
  EXPECT_EQ(find("s1").last_event_id, 54) << "numbers are never used again";
  EXPECT_EQ(find("s1").turn_count, 5);
}

TEST_P(LedgerSessions, AJournalStampedByAClockThatWasSetBackLosesItsOldestFirst) {
  open();
  for (const char* id : {"s1", "s2"}) add(id);
  const auto write = [&](const char* id, std::int64_t turn, std::int64_t second) {
    ASSERT_TRUE(await(ledger().journal.write(whole_turn(id, turn, second))));
  };
  write("s1", 1, 500);
  write("s1", 2, 100);
  for (std::int64_t i = 1; i <= 3; ++i) write("s2", i, 100);
  EXPECT_EQ(await(ledger().journal.trim_old(at_second(200), 2)), 2)
      << "of the second, in its order";
  const auto left = await(ledger().journal.page(SessionId("s2"), 0, 1'000'000)).value();
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(left[0].turn_index, 3);
  EXPECT_EQ(await(ledger().journal.trim_old(at_second(200), 10)), 1);
  EXPECT_EQ(await(ledger().journal.trim_old(at_second(200), 10)), 0)
      << "the first waits for its first";
  EXPECT_EQ(await(ledger().journal.page(kFirst, 0, 1'000'000)).value().size(), 2U);
  EXPECT_EQ(await(ledger().journal.trim_old(at_second(500), 10)), 2);
}

TEST_P(LedgerSessions, LargeJournalsAreTrimmedToTheirLimit) {
  open();
  for (const char* id : {"large", "larger", "small"}) add(id);
  const auto fill = [&](const char* id, std::int64_t count) {
    for (std::int64_t i = 1; i <= count; ++i) {
      SessionWrite write = whole_turn(id, i, 200 + i);
      write.blocks[0].lines = std::string(100, 'x');
      ASSERT_TRUE(await(ledger().journal.write(write)));
    }
  };
  fill("large", 6);
  fill("larger", 8);
  fill("small", 4);
  EXPECT_EQ(await(ledger().journal.trim_large(400, 3)), 3);
  EXPECT_EQ(await(ledger().journal.trim_large(400, 100)), 3);
  EXPECT_EQ(await(ledger().journal.trim_large(400, 100)), 0);
  EXPECT_EQ(await(ledger().journal.trim_large(399, 100)), 3) << "one of each";
  EXPECT_EQ(await(ledger().journal.trim_old(at_second(203), 100)), 2)
      << "of the small one: 2 and 3";
  EXPECT_EQ(await(ledger().journal.trim_large(300, 100)), 0);
  EXPECT_EQ(await(ledger().journal.trim_large(100, 100)), 4) << "2 + 2 + 0";
  EXPECT_EQ(await(ledger().journal.trim_old(at_second(999), 100)), 3);
}

TEST_P(LedgerSessions, AJournalBeyondTheIndexedSizeIsTrimmedToo) {
  open();
  add("s1");
  add("s2");
  for (const char* id : {"s1", "s2"}) {
    for (std::int64_t i = 1; i <= (id == std::string("s1") ? 4 : 2); ++i) {
      SessionWrite write = whole_turn(id, i, 200 + i);
      write.blocks[0].lines = std::string(1'000'000, 'x');
      ASSERT_TRUE(await(ledger().journal.write(write)));
    }
  }
  EXPECT_EQ(await(ledger().journal.trim_large(2'000'000, 100)), 2);
  EXPECT_EQ(await(ledger().journal.trim_large(2'000'000, 100)), 0);
}

TEST_P(LedgerSessions, TurnsOfEarlierLivesAreFoundUntilTheyEnd) {
  open();
  add("s1");
  ASSERT_TRUE(await(as("i2").sessions.add(session_named("s2"), kWide)));
  SessionWrite done = whole_turn("s1", 1, 200);
  ASSERT_TRUE(await(ledger().journal.write(done)));
  SessionWrite begun = whole_turn("s1", 2, 210);
  begun.ends.clear();
  ASSERT_TRUE(await(ledger().journal.write(begun)));
  SessionWrite ours = whole_turn("s2", 1, 205);
  ours.ends.clear();
  ASSERT_TRUE(await(as("i2").journal.write(ours)));

  EXPECT_TRUE(await(ledger().journal.unfinished_turns(10)).value().size() == 1) << "that of i2";
  const auto found = await(as("i2").journal.unfinished_turns(10)).value();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].session_id, "s1");
  EXPECT_EQ(found[0].app, "a");
  EXPECT_EQ(found[0].index, 2);
  EXPECT_EQ(found[0].last_event_id, 24);
  EXPECT_EQ(found[0].started_at, at_second(210));
  EXPECT_EQ(await(as("i3").journal.unfinished_turns(10)).value().size(), 2u);
  EXPECT_EQ(await(as("i3").journal.unfinished_turns(1)).value().at(0).session_id, "s2")
      << "the oldest first";

  SessionWrite ended = whole_turn("s1", 2, 300);
  ended.starts.clear();
  ended.blocks.clear();
  ended.ends[0].state = TurnState::interrupted;
  ASSERT_TRUE(await(ledger().journal.write(ended)));
  EXPECT_TRUE(await(as("i2").journal.unfinished_turns(10)).value().empty());
}

TEST_P(LedgerSessions, ANewLifeTakesOverWhatWasAnsweredAndNothingElse) {
  open(
      "INSERT INTO sessions (session_id, app_name, agent, created_at) "
      "VALUES ('by-another-program', 'a', 'demo', 1);");
  add("answered");
  ASSERT_TRUE(
      await(ledger().sessions.note_agent(SessionId("answered"), "agent-1", {1, 2, "b"}, {})));
  add("answered-without-id");
  ASSERT_TRUE(
      await(ledger().sessions.note_agent(SessionId("answered-without-id"), "", {1, 2, "b"}, {})));
  add("never-answered");
  add("closed");
  ASSERT_TRUE(close("closed", 200));
  ASSERT_TRUE(await(as("i2").sessions.add(session_named("ours"), kWide)));
  EXPECT_EQ(await(as("i2").sessions.adopt_left()), 1);
  EXPECT_EQ(await(as("i2").sessions.adopt_left()), 0);
  Ids all = texts_of(await(ledger().sessions.all_ids()).value());
  std::ranges::sort(all);
  EXPECT_EQ(all, (Ids{"answered", "answered-without-id", "by-another-program", "closed", "ours"}));
  EXPECT_EQ(find("answered").agent_session_id, "agent-1");
}

TEST_P(LedgerSessions, TheProcessesOfAnEarlierLifeAreKnownUntilAStartHasEndedThem) {
  open(R"(
    INSERT INTO runs (run_id, app_name, agent, state, started_at, ended_at, instance_id,
                      process_pid, process_start, process_boot_id) VALUES
      ('r1', 'a', 'demo', 'running', 1, NULL, 'i1', 7, 70, 'boot'),
      ('r2', 'a', 'demo', 'running', 2, NULL, NULL, 8, 80, 'boot'),
      ('r3', 'a', 'demo', 'running', 3, NULL, 'i2', 9, 90, 'boot'),
      ('r4', 'a', 'demo', 'succeeded', 4, 5, 'i1', 10, 100, 'boot'),
      ('r5', 'a', 'demo', 'running', 5, NULL, 'i1', NULL, NULL, NULL),
      ('r6', 'a', 'demo', 'running', 6, NULL, 'i1', 11, NULL, 'boot');
    INSERT INTO sessions (session_id, app_name, agent, created_at, closed_at, process_pid,
                          process_start, process_boot_id, instance_id) VALUES
      ('closed by another program', 'a', 'demo', 1, 2, 12, 120, 'boot', 'i1');)");
  add("lives");
  ASSERT_TRUE(await(ledger().sessions.note_agent(SessionId("lives"), "x", {13, 130, "boot"}, {})));
  add("sleeps");
  ASSERT_TRUE(await(ledger().sessions.note_agent(SessionId("sleeps"), "x", {14, 140, "boot"}, {})));
  ASSERT_TRUE(await(ledger().sessions.forget_process(SessionId("sleeps"))));
  const auto left = [&](const char* id, std::int64_t limit) {
    std::vector<ProcessMark> marks = await(as(id).runs.left_processes(limit)).value();
    const auto of_sessions = await(as(id).sessions.left_processes(limit)).value();
    marks.insert(marks.end(), of_sessions.begin(), of_sessions.end());
    return marks;
  };
  std::vector<std::int64_t> pids;
  for (const ProcessMark& mark : left("i2", 100)) {
    EXPECT_EQ(mark.start_time, 10 * mark.pid);
    EXPECT_EQ(mark.boot_id, "boot");
    pids.push_back(mark.pid);
  }
  EXPECT_EQ(pids, (std::vector<std::int64_t>{7, 8, 10, 12, 13}))
      << "the oldest first, also of a run that has ended";
  EXPECT_EQ(left("i2", 1).size(), 2u) << "one of each";
  ASSERT_TRUE(await(as("i2").runs.interrupt_left(at_second(50))));
  ASSERT_TRUE(await(as("i2").sessions.adopt_left()));
  EXPECT_EQ(left("i3", 100).size(), 1u) << "that of i2";
}

TEST_P(LedgerSessions, RemovingAnAppClosesItsSessionsInTheAuditToo) {
  open();
  ASSERT_TRUE(await(ledger().apps.add(app_named("a"))));
  add("s1");
  add("s2");
  add("s3", 100, "b");
  ASSERT_TRUE(close("s2", 150));
  ASSERT_TRUE(await(ledger().apps.remove(AppName("a"), at_second(200))));
  EXPECT_EQ(find("s1").closed_at, at_second(200));
  EXPECT_EQ(find("s1").close_reason, "token_revoked");
  EXPECT_EQ(find("s2").closed_at, at_second(150));
  EXPECT_FALSE(find("s3").closed_at);
  EXPECT_EQ(audit(), (Ids{"s1 a close", "s2 a close"}));
}

TEST_P(LedgerSessions, NonsenseOfAnotherProgramIsReadAsHarmlessValues) {
  open(R"(
    INSERT INTO sessions (session_id, app_name, agent, created_at, meta, model, last_turn_at,
        closed_at, close_reason, turn_count, last_event_id, input_tokens, cost_usd, system,
        permission_mode, mcp_servers, agent_session_id) VALUES
      ('s1', 'a', 'demo', 5, NULL, 7, 'long ago', NULL, 'left over', 'many', -3, 'x', 'dear',
       x'ff00', 'everything', '{}', 12),
      ('s2', 'a', 'demo', 4, '{"a":', NULL, 1.5, 'yes', 8, 2.5, 'x', -1, 9e999, NULL, NULL, '[',
       NULL),
      ('s3', 'a', 'demo', -9, '[1]', NULL, 9223372036854775807, 9223372036854775807, NULL, 0, 0,
       0, NULL, NULL, 'ask', '[]', NULL),
      ('s4', 'a', 'demo', 2, '"text"', NULL, NULL, NULL, NULL, 0, 0, 0, NULL, NULL, '', 5, NULL),
      ('s5', 'a', 'demo', 1, ' {"a" : [1] } ', NULL, NULL, NULL, NULL, 0, 0, 0, NULL, NULL,
       'approve_all', '[{}]', NULL);
    INSERT INTO session_events (session_id, app_name, event, at, meta) VALUES
      ('s1', NULL, 7, 3, 'none'), ('s1', 'a', 'create', -1, '{}'),
      ('s1', 'a', 'later', 9223372036854775806, NULL);)");
  SessionFilter filter;
  filter.includes_closed = true;
  filter.audit.limit = 1;
  Ids seen;
  for (int i = 0; i < 5; ++i) {
    const SessionPage page = await(ledger().sessions.page(filter)).value();
    ASSERT_EQ(page.sessions.size(), 1u);
    seen.push_back(page.sessions[0].id.str());
    filter.audit.cursor = page.next_cursor;
  }
  EXPECT_FALSE(filter.audit.cursor);
  EXPECT_EQ(seen, (Ids{"s1", "s2", "s4", "s5", "s3"}));

  const Session first = find("s1");
  EXPECT_EQ(first.meta, "{}");
  EXPECT_FALSE(first.last_turn_at);
  EXPECT_FALSE(first.closed_at);
  EXPECT_EQ(first.close_reason, "") << "it is open";
  EXPECT_EQ(first.turn_count, 0);
  EXPECT_EQ(first.last_event_id, 0);
  EXPECT_EQ(first.usage, Usage());
  EXPECT_FALSE(first.cost_usd);
  EXPECT_EQ(first.permission_mode, PermissionMode::deny_all);
  EXPECT_EQ(first.mcp_servers, "");
  const Session second = find("s2");
  EXPECT_EQ(second.meta, "{}");
  EXPECT_TRUE(second.closed_at) << "closed for the database is closed";
  EXPECT_EQ(second.permission_mode, PermissionMode::deny_all);
  EXPECT_FALSE(second.cost_usd);
  EXPECT_EQ(second.mcp_servers, "");
  EXPECT_TRUE(find("s3").closed_at);
  EXPECT_EQ(find("s3").meta, "{}");
  EXPECT_EQ(find("s3").permission_mode, PermissionMode::ask);
  EXPECT_EQ(find("s4").meta, "{}");
  EXPECT_EQ(find("s4").permission_mode, PermissionMode::deny_all);
  EXPECT_EQ(find("s5").meta, R"( {"a" : [1] } )") << "as it was written";
  EXPECT_EQ(find("s5").mcp_servers, "[{}]");

  EXPECT_EQ(audit(), (Ids{"s1 a later", "s1  7", "s1 a create"}));
  EXPECT_EQ(await(ledger().audit.page({})).value().events.at(1).event.meta, "{}");
  EXPECT_EQ(
      texts_of(
          await(ledger().sessions.open_among({kFirst, SessionId("s2"), SessionId("s3")})).value()),
      Ids{"s1"});
  EXPECT_TRUE(await(ledger().sessions.idle(at_second(1'000), 10)));
  EXPECT_TRUE(await(ledger().sessions.closed(at_second(1'000), 10)));
}

TEST_P(LedgerSessions, ATurnPutsNumbersWhereAnotherProgramHasPutNone) {
  open(R"(
    INSERT INTO sessions (session_id, app_name, agent, created_at, last_turn_at, turn_count,
        last_event_id, input_tokens, cost_usd, journal_bytes) VALUES
      ('s1', 'a', 'demo', 5, 'long ago', 'many', 'lots', 'some', 'dear', 'heavy');)");
  EXPECT_EQ(await(ledger().journal.trim_large(1'000, 10)), 0) << "there is nothing to trim";
  ASSERT_TRUE(await(ledger().journal.write(whole_turn("s1", 1, 200))));
  const Session session = find("s1");
  EXPECT_EQ(session.turn_count, 1);
  EXPECT_EQ(session.last_event_id, 14);
  EXPECT_EQ(session.last_turn_at, at_second(201));
  EXPECT_EQ(session.usage.input_tokens, 1);
  EXPECT_EQ(session.cost_usd, 0.25);
  EXPECT_EQ(await(ledger().journal.trim_large(5, 10)), 1);
}

TEST_P(LedgerSessions, NonsenseInTurnsAndJournalStopsNoQuery) {
  open(R"(
    INSERT INTO sessions (session_id, app_name, agent, created_at, journal_bytes, closed_at)
      VALUES ('s1', 'a', 'demo', 5, 9999999, 6);
    INSERT INTO turns (session_id, turn_index, state, started_at) VALUES
      ('s1', 'first', 'odd', 1), ('s1', 1.5, 'odd', 2), ('s1', -1, 'odd', 3),
      ('s1', 4, 'odd', 'never'), ('gone', 1, 'odd', 5);
    INSERT INTO journal (session_id, first_event_id, last_event_id, turn_index, at, bytes, events)
      VALUES ('s1', 'x', 'y', 'z', 3, 'much', 7), ('s1', 1, 1, 1, 'then', -5, ''),
             ('gone', 1, 1, 1, 3, 10, '');)");
  const auto turns = await(ledger().journal.unfinished_turns(10)).value();
  ASSERT_EQ(turns.size(), 1u) << "those that could be ended, and have a session";
  EXPECT_EQ(turns[0].index, 4);
  EXPECT_EQ(await(ledger().journal.trim_large(2'000'000, 10)), 2);
  EXPECT_EQ(await(ledger().journal.trim_large(2'000'000, 10)), 0);
  EXPECT_EQ(await(ledger().journal.trim_old(at_second(100), 10)), 1);
  EXPECT_EQ(await(ledger().sessions.remove_closed(kFirst, event_of("hard_delete", 9), 10)), true);
  EXPECT_EQ(await(ledger().sessions.adopt_left()), 0);
}

}  // namespace
}  // namespace clawdforge
