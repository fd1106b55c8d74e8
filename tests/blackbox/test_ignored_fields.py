"""Fields that the gateway does not know are ignored, and named in the answer's head."""
import json

import pytest

from sessions import Talker, session_gateway
from wire import Wire, bearer, with_body

HEADER = "X-Clawdforge-Ignored"


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with session_gateway(tmp_path_factory.mktemp("ignored")) as gateway:
        yield gateway


@pytest.fixture(scope="module")
def app(served):
    return Talker(served, "ignoring")


def test_every_path_that_takes_json_names_them(served, app):
    session = app.session()
    client = app.client()
    for path, body, status in (
            ("/run", {"agent": "demo", "prompt": "hi"}, 200),
            ("/sessions", {"agent": "fake"}, 200),
            (session.path + "/turn", {"prompt": "hi"}, 200),
            (session.path + "/permissions/none", {"decision": "allow"}, 404)):
        plain = client.post(path, json=body)
        assert plain.status_code == status, plain.text
        assert HEADER not in plain.headers
        named = client.post(path, json={"cwd": "/", **body, "permision_mode": None})
        assert named.status_code == status, named.text
        assert named.headers[HEADER] == "cwd, permision_mode", path
    minted = served.admin.post("/admin/tokens", json={"name": "other", "rights": "all"})
    assert minted.status_code == 200
    assert minted.headers[HEADER] == "rights"


def test_a_stream_and_a_refusal_name_them_too(app):
    session = app.session()
    streamed = app.client().post(session.path + "/turn",
                                 json={"prompt": "hi", "stream": True, "promt": "x"})
    assert streamed.headers["Content-Type"].startswith("text/event-stream")
    assert streamed.headers[HEADER] == "promt"
    refused = app.client().post("/run", json={"promt": "hi"})
    assert refused.status_code == 422
    assert refused.headers[HEADER] == "promt"


def test_large_bodies_name_them_too(app):
    answer = app.client().post("/run", json={"agent": "demo", "prompt": "x" * 400_000, "y": 1})
    assert answer.status_code == 200, answer.text
    assert answer.headers[HEADER] == "y"


def test_names_are_bounded_and_cannot_bring_a_header_of_their_own(served, app):
    names = {"evil\r\nSet-Cookie: a=b": 1, "\u00e9": 1, "c, d": 1, "x" * 5000: 1}
    names |= {f"n{i}": 1 for i in range(3000)}
    body = json.dumps({"agent": "demo", "prompt": "hi", **names}).encode()
    with Wire(served) as wire:
        answer = wire.ask(with_body("POST /run", body, bearer(app.token)))
    assert answer.status == 200
    assert answer.header("Set-Cookie") is None
    value = answer.header(HEADER)
    assert value.startswith("evil??Set-Cookie??a?b, ??, c??d, " + "x" * 64 + ", n0, ")
    assert value.endswith(", ...")
    assert len(value) < 1100
