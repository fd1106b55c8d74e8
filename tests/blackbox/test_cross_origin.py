"""Web apps of the owner's on other origins: only those that are listed may read answers (CORS)."""
import pytest

from agents import App, fake_env
from gateway import Gateway, refused_start

LISTED = "http://localhost:5173"
OTHER = "https://evil.example"
CORS = "access-control-"


@pytest.fixture(scope="module")
def forge(tmp_path_factory):
    gateway = Gateway(tmp_path_factory.mktemp("cors"), env=fake_env(
        allow_origins=f"{LISTED}, https://app.example")).start()
    yield gateway
    gateway.finish()


@pytest.fixture(scope="module")
def app(forge):
    return App(forge, "web")


def cors(answer):
    return {name.lower(): value for name, value in answer.headers.items()
            if name.lower().startswith(CORS) or name.lower() == "vary"}


def preflight(forge, path, method="POST", origin=LISTED, **headers):
    return forge.client().request("OPTIONS", path, headers={
        "Origin": origin, "Access-Control-Request-Method": method,
        "Access-Control-Request-Headers": "authorization,content-type", **headers})


def test_a_listed_page_may_ask_and_read(forge, app):
    answer = app.client().get("/whoami", headers={"Origin": LISTED})
    assert answer.status_code == 200
    found = cors(answer)
    assert found.pop("access-control-allow-origin") == LISTED
    assert found.pop("vary") == "Origin"
    exposed = found.pop("access-control-expose-headers").split(", ")
    assert {"X-Request-Id", "Retry-After", "X-Clawdforge-Run-Id"} <= set(exposed)
    assert found == {}, "no credentials"
    answer = app.client().post("/run", json={"prompt": "hello"}, headers={"Origin": "https://app.example"})
    assert answer.status_code == 200
    shown = {name for name in answer.headers if name.lower().startswith(("x-clawdforge", "x-request"))}
    assert {name.lower() for name in shown} <= {name.lower() for name in exposed}


def test_a_preflight_needs_no_token(forge):
    for path, method, methods in (("/run", "POST", {"POST"}),
                                  ("/sessions/x/events", "GET", {"GET", "HEAD"}),
                                  ("/sessions/x", "DELETE", {"GET", "HEAD", "DELETE"})):
        answer = preflight(forge, path, method)
        assert (answer.status_code, answer.content) == (204, b""), path
        found = cors(answer)
        assert found["access-control-allow-origin"] == LISTED and found["vary"] == "Origin"
        assert set(found["access-control-allow-methods"].split(", ")) == methods
        allowed = found["access-control-allow-headers"].lower().split(", ")
        assert {"authorization", "content-type", "last-event-id", "idempotency-key"} <= set(allowed)
        assert "access-control-allow-credentials" not in found
        assert "*" not in "".join(found.values())


def test_refusals_can_be_read_too(forge, app):
    for answer, status in ((forge.client().get("/whoami", headers={"Origin": LISTED}), 401),
                           (app.client().get("/nothing", headers={"Origin": LISTED}), 404),
                           (app.client().post("/run", content=b"{", headers={
                               "Origin": LISTED, "Content-Type": "application/json"}), 400)):
        assert (answer.status_code, cors(answer)["access-control-allow-origin"]) == (status, LISTED)


def test_a_stream_can_be_read_too(forge, app):
    session = app.client().post("/sessions", json={"agent": "demo"}).json()["session_id"]
    with app.client().stream("POST", f"/sessions/{session}/turn", headers={"Origin": LISTED},
                             json={"prompt": "hi", "stream": True}) as answer:
        assert cors(answer)["access-control-allow-origin"] == LISTED
        assert "event: done" in "".join(answer.iter_text())


@pytest.mark.parametrize("origin", [OTHER, "null", "http://localhost:5174", "https://localhost:5173",
                                    "http://localhost:5173.evil.example", "http://LOCALHOST:5173"])
def test_others_get_what_they_get_without_a_list(forge, app, new_gateway, origin):
    plain = new_gateway(env=fake_env())
    for gateway, token in ((forge, app.token), (plain, App(plain, "web").token)):
        answer = gateway.client(token).get("/whoami", headers={"Origin": origin})
        assert (answer.status_code, cors(answer)) == (200, {})
        answer = preflight(gateway, "/run", origin=origin)
        assert (answer.status_code, answer.headers["Allow"], cors(answer)) == (405, "POST", {})


def test_what_is_not_a_preflight_is_not_answered_as_one(forge):
    answer = forge.client().request("OPTIONS", "/run", headers={"Origin": LISTED})
    assert answer.status_code == 405
    assert preflight(forge, "/nothing").status_code == 404


def test_an_origin_is_no_token(forge):
    answer = forge.client().post("/run", json={"prompt": "x"}, headers={"Origin": LISTED})
    assert answer.status_code == 401


@pytest.mark.parametrize("value", ["*", "app.example", "https://app.example/", "https://", "null",
                                   "https://a.example/path", "ftp://a.example", "https://a b"])
def test_only_origins_can_be_listed(tmp_path, value):
    code, sentence = refused_start(tmp_path, "--allow-origins", value)
    assert code == 2 and "origins like https://app.example" in sentence
