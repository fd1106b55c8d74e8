"""What an app may ask for: its owner says it in the token, the gateway's file and agents' tables."""
import concurrent.futures
import contextlib
import hashlib
import sqlite3

import pytest

from agents import NUMBERS
from answers import assert_error
from gateway import REPO, Gateway
from sessions import (Session, Talker, agent_table, assert_created, assert_turn,
                      assert_turn_failure, change, held, session_gateway, session_options)

POLICY_KEYS = {"agents", "models", "permission_mode_max", "mcp", "mcp_urls"}
SECRET = "the-owners-secret"
OWNERS = f"""
[mcp_servers.files]
command = ["sh", "-c", "echo $PLACE > $MARKER"]
env = ["OWNERS_VARIABLE", "NOT_SET"]
set_env = {{ PLACE = "{SECRET}", MARKER = "MARKER_PATH" }}

[mcp_servers.web]
url = "https://tools.example/mcp"
headers = {{ X-Team = "blue" }}
headers_env = {{ Authorization = "OWNERS_VARIABLE" }}
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("policy")


@pytest.fixture(scope="module")
def forge(place):
    more = OWNERS.replace("MARKER_PATH", str(place / "owners-marker"))
    more += agent_table("generous", [], permission_mode='"approve_all"')
    more += agent_table("narrow", ["--start-mcp"], permission_mode_max='"approve_reads"',
                        models='["m2"]', mcp='"named"')
    more += agent_table("switched", []).replace(held(), """
permission_modes.deny_all.env = { TOOLS = "none" }
permission_modes.approve_all.env = { TOOLS = "all" }
""")
    options = session_options(place, {"mcp": ["--start-mcp"]}, more, max_live_sessions=500)
    options["env"] |= {"OWNERS_VARIABLE": SECRET}
    gateway = Gateway(place / "gateway", **options).start()
    yield gateway
    gateway.finish()


@pytest.fixture
def app(forge):
    """An app of this test alone, of which nothing is said."""
    return Talker(forge, f"app-{next(NUMBERS)}")


def patch(app, **fields):
    answer = app.gateway.admin.patch(f"/admin/tokens/{app.name}", json=fields)
    assert answer.status_code == 200, answer.text
    return answer.json()


def whoami(app):
    return app.get("/whoami").json()


def command_server(marker):
    return [{"name": "evil", "command": "sh", "args": ["-c", f"touch {marker}"]}]


# The fields

def test_a_new_app_has_the_stated_defaults(app):
    body = whoami(app)
    assert {"claude", "demo", "fake", "narrow"} <= set(body["agents"])
    assert {key: body[key] for key in POLICY_KEYS - {"agents"}} == {
        "models": None, "permission_mode_max": "approve_all", "mcp": "none", "mcp_urls": None}
    assert body["mcp_servers"] == []


def test_fields_are_minted_changed_taken_back_and_shown(forge):
    asked = {"agents": ["fake", "demo"], "models": ["m2", "son*"], "mcp": "http",
             "permission_mode_max": "ask", "mcp_urls": ["https://Tools.example:443/mcp"]}
    app = Talker(forge, "fields", max_runs=3, **asked)
    shown = asked | {"mcp_urls": ["https://tools.example/mcp"]}

    def listed():
        rows = forge.admin.get("/admin/tokens").json()["tokens"]
        return next(row for row in rows if row["name"] == "fields")

    assert {key: listed()[key] for key in POLICY_KEYS} == shown
    body = whoami(app)
    assert {key: body[key] for key in POLICY_KEYS} == shown | {"agents": ["demo", "fake"]}
    assert body["mcp_servers"] == ["files", "web"]

    changed = patch(app, mcp="named", max_sessions=5, ip_cidrs=["127.0.0.0/8"],
                    event_format="simple")
    assert changed == listed()
    assert {key: changed[key] for key in POLICY_KEYS} == shown | {"mcp": "named"}
    assert (changed["max_runs"], changed["max_sessions"]) == (3, 5)
    assert (changed["ip_cidrs"], changed["event_format"]) == (["127.0.0.0/8"], "simple")

    nothing = patch(app, **dict.fromkeys([*POLICY_KEYS, "max_runs", "max_sessions", "ip_cidrs",
                                          "event_format"]))
    assert {key: nothing[key] for key in POLICY_KEYS} == dict.fromkeys(POLICY_KEYS)
    assert (nothing["max_runs"], nothing["max_sessions"]) == (None, None)
    assert (nothing["ip_cidrs"], nothing["event_format"]) == ([], None)
    assert patch(app) == nothing, "an empty patch changes nothing"


@pytest.mark.parametrize("field, value", [
    ("agents", "fake"), ("agents", []), ("agents", [1]), ("agents", [""]), ("agents", ["a"] * 65),
    ("models", ["a*b"]), ("models", {}), ("permission_mode_max", "all"),
    ("permission_mode_max", 1), ("mcp", "all"), ("mcp", True), ("mcp_urls", ["tools.example"]),
    ("mcp_urls", ["https://user@tools.example/"]), ("mcp_urls", ["https://tools.example/a/../b"]),
    ("mcp_urls", ["file:///etc"]), ("webhook_urls", ["hooks.example"]), ("webhook_urls", []),
    ("webhook_urls", ["https://user@hooks.example/"]), ("webhook_urls", ["https://h.example/?x"]),
    ("webhook_urls", ["https://h.example/a/%2e%2e/b"]), ("webhook_urls", "https://h.example/"),
    ("workspaces", "blog"), ("workspaces", []), ("workspaces", ["a*"]), ("workspaces", [1]),
    ("max_runs", 0), ("ip_cidrs", ["x"]), ("event_format", "x")])
def test_what_is_wrong_is_422_and_changes_nothing(app, field, value):
    before = patch(app)
    answer = app.gateway.admin.patch(f"/admin/tokens/{app.name}",
                                     json={"mcp" if field != "mcp" else "models": None,
                                           "max_sessions": 7, field: value})
    body = assert_error(answer, 422, "validation_failed")
    assert [wrong["field"] for wrong in body["errors"]] == [field]
    assert patch(app) == before
    minted = app.gateway.admin.post("/admin/tokens", json={"name": "never", field: value})
    assert_error(minted, 422, "validation_failed")


def test_a_patch_names_what_it_ignores_and_a_name_that_is_not_there_is_404(app):
    answer = app.gateway.admin.patch(f"/admin/tokens/{app.name}", json={"name": "x", "budget": 1})
    assert (answer.status_code, answer.headers["X-Clawdforge-Ignored"]) == (200, "name, budget")
    assert_error(app.gateway.admin.patch("/admin/tokens/absent", json={"mcp": "any"}), 404,
                 "token_not_found")
    assert_error(app.client().patch(f"/admin/tokens/{app.name}", json={"mcp": "any"}), 403,
                 "wrong_token_kind")


def test_of_changes_at_the_same_time_none_is_lost(app):
    fields = [{"mcp": "any"}, {"models": ["m2"]}, {"agents": ["fake"]}, {"max_runs": 9},
              {"max_sessions": 8}, {"permission_mode_max": "ask"}, {"event_format": "simple"}]
    with concurrent.futures.ThreadPoolExecutor(len(fields)) as pool:
        list(pool.map(lambda one: patch(app, **one), fields))
    now = patch(app)
    for one in fields:
        assert one.items() <= now.items()


def test_a_change_outlives_a_kill_and_a_rotation(place):
    options = session_options(place)
    gateway = Gateway(place / "killed", **options).start()
    app = Talker(gateway)
    patch(app, agents=["fake"], mcp="named")
    gateway.kill()
    gateway.start()
    assert whoami(app)["agents"] == ["fake"]
    app.token = gateway.admin.post("/admin/tokens/app/rotate").json()["token"]
    app._client = None
    assert (whoami(app)["agents"], whoami(app)["mcp"]) == (["fake"], "named")
    gateway.finish()


# Agents and models

def test_agents_that_are_not_listed_are_403(app):
    patch(app, agents=["fake", "absent"])
    app.session().ask("hi")
    assert [agent["name"] for agent in app.get("/agents").json()["agents"]] == ["fake"]
    assert_error(app.create("resume"), 403, "agent_not_allowed")
    assert_error(app.create("nowhere"), 403, "agent_not_allowed")
    assert "resume" not in app.create("absent").text
    assert_error(app.run("hi", agent="demo"), 403, "agent_not_allowed")
    patch(app, agents=["demo"])
    assert app.run("hi", agent="demo").status_code == 200
    names = [agent["name"] for agent in app.gateway.admin.get("/agents").json()["agents"]]
    assert {"fake", "resume", "demo"} <= set(names)


def test_models_that_are_not_listed_are_403(app):
    patch(app, models=["m2", "haiku*"])
    assert_error(app.create(model="m1"), 403, "model_not_allowed")
    app.session(model="m2").ask("hi")
    unnamed = assert_error(app.create(), 403, "model_not_allowed")
    assert "m2, haiku*" in unnamed["detail"]
    assert_error(app.run("hi", agent="demo"), 403, "model_not_allowed")
    assert app.run("hi", agent="demo", model="haiku-4").status_code == 200
    patch(app, models=["demo-small"])
    assert app.run("hi", agent="demo").status_code == 200, "the default model is allowed"


def test_what_is_wrong_is_told_before_what_is_not_allowed(app):
    patch(app, agents=["fake"])
    assert_error(app.create("demo", meta=1), 422, "validation_failed")
    assert_error(app.run("", agent="demo"), 422, "validation_failed")
    assert_error(app.run("hi", agent="demo", files=["ff_none"]), 403, "agent_not_allowed")
    assert_error(Session(app, "nothing").turn("hi"), 404, "session_not_found")


# Permission modes

def test_a_mode_over_the_limit_is_403_and_a_default_is_lowered(app):
    assert app.session("generous").told({"permission": {"kind": "execute"}}) == (
        "permission: allow-once")
    patch(app, permission_mode_max="approve_reads")
    for mode in ("ask", "approve_all"):
        assert_error(app.create("generous", permission_mode=mode), 403,
                     "permission_mode_not_allowed")
    lowered = app.session("generous")
    assert lowered.told({"permission": {"kind": "execute"}}) == "permission: reject-once"
    assert lowered.told({"permission": {"kind": "read"}}) == "permission: allow-once"
    strict = app.session("generous", permission_mode="deny_all")
    assert strict.told({"permission": {"kind": "read"}}) == "permission: reject-once"


def test_a_session_is_never_given_more_than_its_app_may_have_now(app):
    session = app.session(permission_mode="approve_all")
    assert session.told({"permission": {"kind": "execute"}}) == "permission: allow-once"
    patch(app, permission_mode_max="deny_all")
    body = assert_turn(session.turn({"permission": {"kind": "read"}}), resumed=True)
    assert body["text"] == "permission: reject-once"
    assert assert_turn(session.turn("again")).get("resumed") is None
    patch(app, permission_mode_max=None)
    assert session.told({"permission": {"kind": "execute"}}) == "permission: allow-once"
    assert session.told({"recall": True}) != "[]", "the conversation is kept"


def test_a_lowered_mode_lowers_the_agents_own_switches_as_well(app):
    """What holds such an agent is what it is started with, not how its questions are answered."""
    session = app.session("switched", permission_mode="approve_all")
    assert session.told({"env": "TOOLS"}) == "all"
    patch(app, permission_mode_max="deny_all")
    assert session.told({"env": "TOOLS"}) == "none"
    patch(app, permission_mode_max="ask")
    assert_turn_failure(session.turn("hi"), 422, "permission_mode_not_supported")
    patch(app, permission_mode_max=None)
    assert session.told({"env": "TOOLS"}) == "all"


# MCP servers

def test_a_command_of_the_callers_never_runs_without_any(app, tmp_path):
    marker = tmp_path / "marker"
    servers = command_server(marker)
    for access in (None, "none", "named", "http"):
        patch(app, mcp=access)
        assert_error(app.create("mcp", mcp_servers=servers), 403, "mcp_not_allowed")
        disguised = [servers[0] | {"type": "http", "url": "https://tools.example/mcp"}]
        assert_error(app.create("mcp", mcp_servers=disguised), 403, "mcp_not_allowed")
        assert_error(app.create("mcp", mcp_servers=["files", *servers]), 403, "mcp_not_allowed")
    assert app.ids() == []
    assert not marker.exists()
    patch(app, mcp="any")
    app.session("mcp", mcp_servers=servers)
    assert marker.exists(), "the stand-in runs what it is given"


def test_an_agents_table_forbids_what_the_token_allows(app, tmp_path):
    patch(app, mcp="any")
    answer = app.create("narrow", model="m2", mcp_servers=command_server(tmp_path / "marker"))
    assert_error(answer, 403, "mcp_not_allowed")
    assert_error(app.create("narrow", model="m1"), 403, "model_not_allowed")
    assert_error(app.create("narrow", model="m2", permission_mode="ask"), 403,
                 "permission_mode_not_allowed")
    assert not (tmp_path / "marker").exists()
    assert whoami(app)["agent_policies"] == {"narrow": {
        "agents": ["narrow"], "models": ["m2"], "permission_mode_max": "approve_reads",
        "mcp": "named", "mcp_urls": None, "webhook_urls": None, "workspaces": []}}


def test_servers_of_the_owners_are_asked_for_by_name_and_stay_his_secret(app, place):
    assert_error(app.create("mcp", mcp_servers=["files"]), 403, "mcp_not_allowed")
    patch(app, mcp="named")
    unknown = assert_error(app.create("mcp", mcp_servers=["other"]), 403, "mcp_not_allowed")
    assert "files, web" in unknown["detail"]
    session = app.session("mcp", mcp_servers=["files", "web"])
    assert (place / "owners-marker").read_text().strip() == SECRET
    opened = session.report("session")["opened_with"]["mcpServers"]
    assert opened[0] == {"name": "files", "command": "sh",
                         "args": ["-c", "echo $PLACE > $MARKER"],
                         "env": [{"name": "MARKER", "value": str(place / "owners-marker")},
                                 {"name": "OWNERS_VARIABLE", "value": SECRET},
                                 {"name": "PLACE", "value": SECRET}]}
    assert opened[1] == {"type": "http", "name": "web", "url": "https://tools.example/mcp",
                         "headers": [{"name": "Authorization", "value": SECRET},
                                     {"name": "X-Team", "value": "blue"}]}
    for path in ("/whoami", "/sessions", session.path):
        assert SECRET not in app.get(path).text
    assert SECRET not in app.gateway.admin.get("/admin/sessions").text


def test_an_agent_that_dies_does_not_show_the_secrets_of_mcp_servers(app):
    patch(app, mcp="any")
    own = {"name": "own", "command": "true", "args": [], "env": [{"name": "X", "value": "its-own-secret"}]}
    session = app.session("mcp", mcp_servers=["files", "web", own])
    words = f"PLACE={SECRET}, Authorization: {SECRET}, X=its-own-secret, sent to tools.example"
    body = session.turn({"stderr": words}, {"exit": 3}).json()
    assert body["stderr"].strip() == "PLACE=***, Authorization: ***, X=***, sent to tools.example"
    failed = session.turn({"fail": {"code": -32000, "message": f"refused {SECRET}"}}).json()
    assert "refused ***" in failed["error"]
    assert SECRET not in app.gateway.stderr() and "its-own-secret" not in app.gateway.stderr()


@pytest.mark.parametrize("url, is_allowed", [
    ("https://tools.example/mcp", True), ("https://TOOLS.example:443/mcp/v1?key=1", True),
    ("https://tools.example/mcp-other", False), ("https://tools.example.evil.example/mcp", False),
    ("https://tools.example@evil.example/mcp", False), ("https://tools.example/mcp/../x", False),
    ("https://tools.example/mcp/%2e%2e/x", False), ("http://tools.example/mcp", False),
    ("https://tools.example:8443/mcp", False), ("https://evil.example/mcp", False)])
def test_an_address_must_be_within_the_prefixes(app, url, is_allowed):
    patch(app, mcp="http", mcp_urls=["https://tools.example/mcp"])
    answer = app.create("mcp", mcp_servers=[{"name": "n", "type": "http", "url": url}])
    if is_allowed:
        assert_created(answer)
    else:
        assert_error(answer, 403, "mcp_not_allowed")


# Narrowed while a session is open

def test_turns_of_a_session_beyond_a_narrowed_policy_are_403(app, tmp_path):
    marker = tmp_path / "marker"
    session = app.session("mcp", model="m2")
    patch(app, agents=["fake"])
    assert_error(session.turn("hi"), 403, "agent_not_allowed")
    patch(app, agents=None, models=["m1"])
    assert_error(session.turn("hi"), 403, "model_not_allowed")
    assert_error(session.turn("hi", stream=True), 403, "model_not_allowed")
    patch(app, models=None, mcp="any")
    session.ask("hi")
    other = app.session("mcp", mcp_servers=command_server(marker))
    other.ask("hi")
    patch(app, mcp="named")
    assert_error(other.turn("hi"), 403, "mcp_not_allowed")
    assert other.state()["turn_count"] == 1
    assert other.close() == {"ok": True}, "a session can always be closed"


def test_a_session_with_a_command_is_not_woken_beyond_the_policy(place, tmp_path):
    marker = tmp_path / "marker"
    gateway = Gateway(place / "woken", **session_options(place, {"mcp": ["--start-mcp"]})).start()
    app = Talker(gateway, mcp="any")
    session = app.session("mcp", mcp_servers=command_server(marker))
    session.ask("hi")
    marker.unlink()
    gateway.restart()
    patch(app, mcp="http")
    assert_error(session.turn("hi"), 403, "mcp_not_allowed")
    assert not marker.exists()
    patch(app, mcp="any")
    assert_turn(session.turn("hi"), resumed=True)
    assert marker.exists()
    gateway.finish()


# The gateway's file

def test_the_strictest_of_gateway_and_token_wins(place, tmp_path):
    more = '\n[defaults]\nagents = ["fake", "mcp", "demo"]\nmodels = ["m2", "son*"]\n'
    more += 'permission_mode_max = "ask"\nmcp = "http"\nmcp_urls = ["https://tools.example/"]\n'
    (place / "defaults").mkdir()
    with session_gateway(place / "defaults", {"mcp": ["--start-mcp"]}, more) as gateway:
        silent = whoami(Talker(gateway, "silent"))
        assert {key: silent[key] for key in POLICY_KEYS} == {
            "agents": ["demo", "fake", "mcp"], "models": ["m2", "son*"], "mcp": "http",
            "permission_mode_max": "ask", "mcp_urls": ["https://tools.example/"]}
        app = Talker(gateway, "loud", agents=["fake", "resume"], models=["*"], mcp="any",
                     permission_mode_max="approve_all",
                     mcp_urls=["https://tools.example/mcp", "https://other.example/"])
        loud = whoami(app)
        assert {key: loud[key] for key in POLICY_KEYS} == {
            "agents": ["fake"], "models": ["m2", "son*"], "mcp": "http",
            "permission_mode_max": "ask", "mcp_urls": ["https://tools.example/mcp"]}
        assert_error(app.create("resume", model="m2"), 403, "agent_not_allowed")
        assert_error(app.create(model="m1"), 403, "model_not_allowed")
        assert_error(app.create(model="m2", permission_mode="approve_all"), 403,
                     "permission_mode_not_allowed")
        assert_error(app.create(model="m2", mcp_servers=command_server(tmp_path / "marker")), 403,
                     "mcp_not_allowed")
    assert not (tmp_path / "marker").exists()


# A ledger from before there were policies

def old_ledger(gateway, name, **columns):
    """A ledger as the first two migrations left it, with one app in it; gives its token."""
    schemas = sorted((REPO / "src/ledger/core/schema").glob("*.sql"))[:2]
    token = "cf_" + "A" * 43
    row = {"name": name, "token_sha256": hashlib.sha256(token.encode()).hexdigest(), **columns}
    gateway.data_dir.mkdir(mode=0o700, parents=True)
    with contextlib.closing(sqlite3.connect(gateway.data_dir / "clawdforge.db")) as ledger:
        ledger.execute("CREATE TABLE schema_migrations (number BIGINT NOT NULL PRIMARY KEY, "
                       "name TEXT NOT NULL, applied_at BIGINT NOT NULL)")
        for number, schema in enumerate(schemas, 1):
            ledger.executescript(schema.read_text().replace(
                " AUTO_ID,", " INTEGER PRIMARY KEY AUTOINCREMENT,"))
            ledger.execute("INSERT INTO schema_migrations VALUES (?, ?, 0)", (number, schema.name))
        ledger.execute(f"INSERT INTO tokens ({', '.join(row)}) VALUES "
                       f"({', '.join('?' * len(row))})", list(row.values()))
        ledger.commit()
    return token


def test_an_older_ledgers_tokens_work_as_before_but_for_mcp(place, tmp_path):
    gateway = Gateway(place / "older", **session_options(place, {"mcp": ["--start-mcp"]}))
    token = old_ledger(gateway, "veteran", max_runs=2)
    gateway.start()
    app = Talker.__new__(Talker)
    app.gateway, app.name, app.token, app._client = gateway, "veteran", token, None
    body = whoami(app)
    assert (body["name"], body["max_runs"], body["mcp"]) == ("veteran", 2, "none")
    assert app.run("hi", agent="demo").status_code == 200
    app.session(permission_mode="approve_all").ask("hi")
    marker = tmp_path / "marker"
    assert_error(app.create("mcp", mcp_servers=command_server(marker)), 403, "mcp_not_allowed")
    assert not marker.exists()
    patch(app, mcp="any")
    app.session("mcp", mcp_servers=command_server(marker))
    assert marker.exists()
    gateway.finish()


def test_a_policy_in_the_ledger_that_cannot_be_understood_gives_no_access(place):
    gateway = Gateway(place / "odd", **session_options(place)).start()
    for number, text in enumerate(("nonsense", "[]", '{"mcp":"all"}', '{"later":1}')):
        app = Talker(gateway, f"odd-{number}")
        assert app.get("/whoami").status_code == 200
        gateway.stop()
        change(gateway, "UPDATE tokens SET policy = ? WHERE name = ?", text, app.name)
        gateway.start()
        assert app.get("/whoami").status_code == 401, text
        assert_error(gateway.admin.patch(f"/admin/tokens/{app.name}", json={"mcp": "none"}), 409,
                     "token_unreadable")
    gateway.finish()
