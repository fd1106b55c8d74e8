// The paths of /sessions as their callers meet them, without a socket and without an agent.
#include "api/native/session_routes.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "agent/core/agent_catalog.h"
#include "agent/core/no_agents_fixture.h"
#include "api/native/event_routes.h"
#include "api/native/permission_routes.h"
#include "base/async/run_to_end.h"
#include "ledger/open_ledger.h"
#include "quota/policies.h"
#include "quota/quota.h"
#include "sessions/live/session_dependencies.h"
#include "storage/disk/disk.h"
#include "storage/work/acpx_records.h"
#include "storage/work/session_dirs.h"
#include "storage/work/upload_files.h"
#include "uploads/uploads.h"

namespace clawdforge {
namespace {

constexpr std::string_view kNotFoundBody =
    R"({"ok":false,"code":"session_not_found",)"
    R"("detail":"There is no such session.","request_id":"r"})";

class Collector final : public BodyWriter {
 public:
  Async<void> write(std::string bytes) override {
    pieces.push_back(std::move(bytes));
    co_return Result<void>{};
  }
  Async<void> write_slice(std::string_view bytes) override { return write(std::string(bytes)); }
  std::vector<std::string> pieces;
};

class SessionRoutes : public ::testing::Test {
 protected:
  SessionRoutes() {
    add_session_routes(endpoints_, sessions_, apps_, quota_, memory_, keys_, compute_,
                       ledger_->sessions,
                       {std::chrono::seconds(120), std::chrono::seconds(600), EventFormat::acp});
    add_event_routes(endpoints_, sessions_, apps_, quota_, memory_, compute_);
    add_permission_routes(endpoints_, sessions_);
  }
  ~SessionRoutes() override {
    const auto stopped = run_to_end(io_, stop(&sessions_));
    EXPECT_TRUE(stopped);
    std::filesystem::remove_all(root_);
  }

  static std::string make_root() {
    std::string root = ::testing::TempDir() + "session-routes-XXXXXX";
    if (mkdtemp(root.data()) == nullptr) std::abort();
    return root;
  }
  static Task<bool> stop(Sessions* sessions) {
    co_await sessions->stop();
    co_return true;
  }

  // What the endpoint of this method and pattern answers to an app of this name.
  Response ask(std::string_view method, std::string_view pattern, std::vector<std::string> params,
               const std::string& app = "news", std::string body = {}) {
    Request request(*IpAddress::parse("127.0.0.1"));
    request.id = "r";
    request.params = std::move(params);
    request.body = std::move(body);
    auto caller_app = std::make_shared<App>();
    caller_app->name = AppName(app);
    for (const Endpoint& endpoint : endpoints_) {
      if (endpoint.method != method || endpoint.pattern != pattern) continue;
      return run_to_end(io_, endpoint.answer({CallerKind::app, caller_app, {}}, &request));
    }
    ADD_FAILURE() << method << " " << pattern;
    return {};
  }

  // A session of the app "news", with its directory.
  void add_session(const std::string& id) {
    Session session;
    session.id = SessionId(id);
    session.app = AppName("news");
    session.agent = "demo";
    session.created_at = clock_.now();
    ASSERT_TRUE(run_to_end(io_, ledger_->sessions.add(session, {10, {}})));
    ASSERT_TRUE(run_to_end(io_, dirs_.keep_only({session.id})));
    ASSERT_TRUE(run_to_end(io_, dirs_.make(id)));
  }

  std::string root_ = make_root();
  IoContext io_{1};
  Log log_{LogLevel::error, LogFormat::json};
  Metrics metrics_;
  SystemClock clock_;
  RandomIds ids_{clock_};
  std::unique_ptr<Ledger> ledger_ = std::move(
      *open_ledger(io_.get_executor(), "sqlite::memory:", InstanceId("i1"), log_, metrics_));
  Keys keys_{ledger_->keys, clock_, InstanceId("i1"), {}};
  Disk disk_{io_.get_executor()};
  UploadFiles upload_files_{root_, disk_};
  Uploads uploads_{ledger_->uploads, upload_files_, clock_, ids_, InstanceId("instance"), 1'000};
  Quota quota_{{}, metrics_};
  const AgentCatalog catalog_{{}};
  NoAgents starter_;
  SessionDirs dirs_{root_, disk_, log_};
  AcpxRecords acpx_records_{root_, disk_};
  const Policies policies_{{}, {}, {}};
  Sessions sessions_{
      {io_.get_executor(), ledger_->sessions, ledger_->journal, quota_, policies_, catalog_,
       starter_, uploads_, dirs_, acpx_records_, clock_, ids_, log_, metrics_},
      {}};
  Apps apps_{ledger_->apps, clock_, ids_, log_};
  ByteBudget memory_{{.bytes_max = 64 << 20, .share_bytes_max = 16 << 20}, metrics_};
  ComputeWorker compute_{io_.get_executor()};
  Endpoints endpoints_;
};

TEST_F(SessionRoutes, AnswerTheSameForWhateverIsNotTheCallers) {
  add_session("s-1");
  const std::string prompt = R"({"prompt":"hi"})";
  for (const std::string& id : {std::string("s-1"), std::string("s-2"), std::string("no id"),
                                std::string("../s-1"), std::string(65, 'a')}) {
    for (const Response& response : {
             ask("GET", "/sessions/{id}", {id}, "other"),
             ask("DELETE", "/sessions/{id}", {id}, "other"),
             ask("POST", "/sessions/{id}/turn", {id}, "other", prompt),
             ask("GET", "/sessions/{id}/events", {id}, "other"),
             ask("POST", "/sessions/{id}/cancel", {id}, "other"),
             ask("GET", "/sessions/{id}/permissions", {id}, "other"),
             ask("POST", "/sessions/{id}/permissions/{permission}", {id, "p"}, "other",
                 R"({"decision":"deny"})"),
             ask("GET", "/sessions/{id}/files", {id}, "other"),
             ask("GET", "/sessions/{id}/files/{path...}", {id, "a.txt"}, "other"),
         }) {
      EXPECT_EQ(response.status, 404) << id;
      EXPECT_EQ(response.body, kNotFoundBody) << id;
    }
  }
}

TEST_F(SessionRoutes, CheckTheBodyBeforeTheSession) {
  EXPECT_EQ(ask("POST", "/sessions/{id}/turn", {"no id"}, "news", "{").status, 400);
  EXPECT_EQ(ask("POST", "/sessions/{id}/turn", {"no id"}, "news", "{}").status, 422);
}

TEST_F(SessionRoutes, TellWhatTheJournalHas) {
  add_session("s-1");
  EXPECT_EQ(ask("GET", "/sessions/{id}/events", {"s-1"}).body, R"({"events":[],"next_after":0})");
  SessionWrite write;
  write.session_id = SessionId("s-1");
  write.blocks.push_back({1, 2, 1, clock_.now(), {}});
  append_event_line(write.blocks[0].lines, Event{1, 1, EventKind::update, R"({"a":1})"});
  append_event_line(write.blocks[0].lines, Event{2, 1, EventKind::done, "{}"});
  ASSERT_TRUE(run_to_end(io_, ledger_->journal.write(write)));
  EXPECT_EQ(ask("GET", "/sessions/{id}/events", {"s-1"}).body,
            R"({"events":[{"id":1,"turn_index":1,"at":0,"offset_ms":null,"event":"update",)"
            R"("data":{"a":1}},{"id":2,"turn_index":1,"at":0,"offset_ms":null,"event":"done",)"
            R"("data":{}}],"next_after":2})");
  EXPECT_EQ(ask("POST", "/sessions/{id}/cancel", {"s-1"}).body, R"({"ok":true,"cancelled":false})");
  EXPECT_EQ(ask("GET", "/sessions/{id}/permissions", {"s-1"}).body, R"({"permissions":[]})");
  EXPECT_EQ(ask("POST", "/sessions/{id}/permissions/{permission}", {"s-1", "p"}, "news",
                R"({"decision":"deny"})")
                .status,
            404);
}

TEST(PermissionChoice, IsAnOptionOrADecision) {
  const auto by_option = parse_choice(R"({"option_id":"yes"})");
  ASSERT_TRUE(by_option);
  EXPECT_EQ(by_option->option_id, "yes");
  EXPECT_EQ(parse_choice(R"({"decision":"allow"})")->allows, true);
  EXPECT_EQ(parse_choice(R"({"decision":"deny","option_id":null})")->allows, false);
  for (const char* body : {"{}", R"({"decision":"perhaps"})", R"({"option_id":1})",
                           R"({"option_id":"yes","decision":"allow"})"}) {
    ASSERT_FALSE(parse_choice(body)) << body;
    EXPECT_EQ(parse_choice(body).error().kind, Errc::invalid) << body;
  }
  EXPECT_EQ(parse_choice("{").error().kind, Errc::malformed);
}

TEST_F(SessionRoutes, ListOnlyTheCallersOwn) {
  add_session("s-1");
  EXPECT_EQ(ask("GET", "/sessions", {}, "other").body,
            R"({"sessions":[],"count":0,"next_cursor":null})");
  const Response own = ask("GET", "/sessions", {});
  EXPECT_TRUE(own.body.starts_with(R"({"sessions":[{"session_id":"s-1","agent":"demo",)"))
      << own.body;
  EXPECT_TRUE(own.body.ends_with(R"(],"count":1,"next_cursor":null})")) << own.body;
}

TEST_F(SessionRoutes, CloseTwiceWithoutHarm) {
  add_session("s-1");
  EXPECT_EQ(ask("DELETE", "/sessions/{id}", {"s-1"}).body, R"({"ok":true})");
  EXPECT_EQ(ask("DELETE", "/sessions/{id}", {"s-1"}).body, R"({"ok":true,"already_closed":true})");
  EXPECT_EQ(ask("POST", "/sessions/{id}/turn", {"s-1"}, "news", R"({"prompt":"hi"})").status, 410);
}

TEST_F(SessionRoutes, SendAFileInPieces) {
  add_session("s-1");
  std::string text(600 * 1024, 'x');
  text += "the end";
  std::filesystem::create_directory(dirs_.of("s-1").work + "/out");
  std::ofstream(dirs_.of("s-1").work + "/out/page.html", std::ios::binary) << text;

  EXPECT_TRUE(ask("GET", "/sessions/{id}/files", {"s-1"})
                  .body.starts_with(R"({"files":[{"path":"out/page.html","size":614407,)"));
  Response response = ask("GET", "/sessions/{id}/files/{path...}", {"s-1", "out/page.html"});
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.content_type, "application/octet-stream");
  using Headers = std::vector<std::pair<std::string_view, std::string>>;
  EXPECT_EQ(response.headers, (Headers{{"Content-Disposition", "attachment"}}));
  ASSERT_TRUE(response.stream);
  Collector sent;
  EXPECT_TRUE(run_to_end(io_, response.stream(&sent)));
  EXPECT_GT(sent.pieces.size(), 2u);
  std::string joined;
  for (const std::string& piece : sent.pieces) joined += piece;
  EXPECT_EQ(joined, text);
}

TEST_F(SessionRoutes, HaveNoFileOutsideOfTheDirectory) {
  add_session("s-1");
  for (const char* path : {"nothing", "..", "../../clawdforge.db", "/etc/hostname", "."}) {
    const Response response = ask("GET", "/sessions/{id}/files/{path...}", {"s-1", path});
    EXPECT_EQ(response.status, 404) << path;
    EXPECT_TRUE(response.body.contains("file_not_found")) << response.body;
  }
}

}  // namespace
}  // namespace clawdforge
