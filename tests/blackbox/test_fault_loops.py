"""For each use case the n-th descriptor is refused, and the n-th write or sync of the ledger's files
fails, for n = 1, 2, 3 … until the use case passes untouched. Whatever fails, the answer is clear,
what was answered well is so, and afterwards nothing is missing and nothing is left over. The loop
over the ledger's calls is in src/daemon/fault_loop_test.cc."""
import contextlib
import itertools
import json
import os

import pytest

from agents import body_of
from answers import status_of
from faults import LEDGER, assert_clear, assert_well, faulty, new_faulty, shim
from gateway import wait_until
from sessions import Session, Talker, change
from streams import CLOSING
from wire import Wire, bearer, request, with_body

pytestmark = pytest.mark.timeout(120)
CODES = ("ledger_unavailable", "no_resources", "workspace_unavailable", "agent_exited")


class UseCases:
    """Each is a generator: what it does before its first yield is not to fail, then it gives the
    request that meets the fault and is sent its answer, and then it makes good. One whose work goes
    on behind its answer yields again when that is over: so long the fault may still strike."""

    def __init__(self, gateway, app, place):
        self.gateway = gateway
        self.app = app
        self.place = place
        self.numbers = itertools.count()

    def as_admin(self, line, body=None):
        data = b"" if body is None else json.dumps(body).encode()
        return with_body(line, data, bearer(self.gateway.admin_token))

    def as_app(self, line, body=None):
        data = b"" if body is None else json.dumps(body).encode()
        return with_body(line, data, bearer(self.app.token))

    def mint(self):
        name = f"mint-{next(self.numbers)}"
        answer = yield self.as_admin("POST /admin/tokens", {"name": name})
        again = self.gateway.admin.post("/admin/tokens", json={"name": name})
        assert again.status_code == (409 if answer.status == 200 else 200), "what was said holds"

    def rotate(self):
        name = f"rotate-{next(self.numbers)}"
        token = self.gateway.mint(name)["token"]
        answer = yield self.as_admin(f"POST /admin/tokens/{name}/rotate")
        assert self.gateway.whoami(token) == (401 if answer.status == 200 else 200)

    def revoke(self):
        name = f"revoke-{next(self.numbers)}"
        token = self.gateway.mint(name)["token"]
        answer = yield self.as_admin(f"DELETE /admin/tokens/{name}")
        assert self.gateway.whoami(token) == (401 if answer.status == 200 else 200)

    def run(self):
        yield self.as_app("POST /run", {"prompt": json.dumps({"result": "ok"})})

    def upload(self):
        form = (b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\nabc'
                b'\r\n--b--\r\n')
        answer = yield with_body("POST /files", form, bearer(self.app.token),
                                 "Content-Type: multipart/form-data; boundary=b")
        if answer.status == 200:
            token = answer.json()["file_token"]
            assert self.app.run({"result": "ok"}, files=[token]).status_code == 200

    def create(self):
        answer = yield self.as_app("POST /sessions", {"agent": "fake"})
        if answer.status == 200:
            session = Session(self.app, answer.json()["session_id"])
            assert session.told({"text": "ok"}) == "ok"
            session.close()

    def turn(self):
        session = self.app.session()
        yield self.as_app(f"POST {session.path}/turn", {"prompt": "hello"})
        session.close()

    def wake(self):
        """A turn of a session that sleeps."""
        session = self.app.session()
        change(self.gateway, "UPDATE sessions SET turn_count = 1 WHERE session_id = ?", session.id)
        os.kill(session.pid(), 9)
        wait_until(lambda: not session.state()["live"], "it sleeps")
        yield self.as_app(f"POST {session.path}/turn", {"prompt": "hello"})
        wait_until(lambda: session.turn("hello").status_code == 200, "it wakes")
        session.close()

    def streamed(self):
        session = self.app.session()
        answer = yield self.as_app(f"POST {session.path}/turn", {"prompt": "hello", "stream": True})
        if answer.status == 200:
            names = [line.split(b": ")[1] for line in answer.body.splitlines()
                     if line.startswith(b"event: ")]
            assert names[-1].decode() in CLOSING, "it ends with its turn"
        session.close()

    def cancel(self):
        session = self.app.session()
        turn = session.hold(self.place).begun()
        answer = yield self.as_app(f"POST {session.path}/cancel")
        if answer.status != 200:
            wait_until(lambda: self.app.client().post(session.path + "/cancel").status_code == 200,
                       "it is cancelled")
        turn.answer()
        yield None
        session.close()

    def permission(self):
        session = self.app.session(permission_mode="ask")
        wire = session.send({"permission": {"kind": "edit", "title": "t"}})
        asked = wait_until(lambda: self.app.get(session.path + "/permissions").json()["permissions"],
                           "it asks")
        path = f"{session.path}/permissions/{asked[0]['id']}"
        answer = yield self.as_app(f"POST {path}", {"decision": "allow"})
        if answer.status != 200:
            wait_until(lambda: self.app.client().post(path, json={"decision": "allow"}).status_code
                       == 200, "it is answered")
        wire.read()
        yield None
        session.close()

    def close(self):
        session = self.app.session()
        answer = yield self.as_app(f"DELETE {session.path}")
        if answer.status != 200:
            session.close()

    def sweep(self):
        self.app.session()
        self.app.session().close()
        change(self.gateway, "UPDATE sessions SET created_at = 1, last_turn_at = 1")
        change(self.gateway, "UPDATE sessions SET closed_at = 1 WHERE closed_at IS NOT NULL")
        yield self.as_admin("POST /admin/sweep")

    def lists(self):
        yield self.as_app("GET /sessions")


LATE = ("cancel", "permission")


def fault_loop(gateway, faults, app, use, kind, step=1):
    """How often the fault struck."""
    cases = UseCases(gateway, app, gateway.root)
    struck = 0
    for number in itertools.count(1, step):
        assert number < 500, "it does not end"
        case = getattr(cases, use)()
        data = next(case)
        with Wire(gateway) as wire:
            assert wire.ask(request("GET /healthz")).status == 200
            faults.arm(kind, number)
            answer = wire.ask(data)
            if use in LATE:
                case.send(answer)
            has_struck = faults.disarm()
        assert answer is not None, "it was cut off"
        if status_of(answer) != 200:
            assert has_struck, body_of(answer)
            assert_clear(answer, *CODES)
        with contextlib.suppress(StopIteration):
            case.send(None if use in LATE else answer)
        if not has_struck:
            return struck
        struck += 1


@pytest.mark.parametrize("use,least", [("run", 9), ("upload", 1), ("create", 9), ("wake", 9)])
def test_the_nth_descriptor_is_refused(faulty, use, least):
    gateway, faults = faulty
    app = Talker(gateway)
    assert fault_loop(gateway, faults, app, use, "descriptor") >= least
    assert_well(gateway, app)


def test_the_nth_descriptor_is_refused_where_few_are_needed(faulty):
    gateway, faults = faulty
    app = Talker(gateway)
    for use in ("turn", "streamed", "cancel", "permission", "close", "sweep", "lists", "mint",
                "rotate", "revoke"):
        fault_loop(gateway, faults, app, use, "descriptor")
    assert_well(gateway, app)


@pytest.mark.parametrize("uses", [("mint", "rotate", "revoke"), ("run", "upload"), ("create", "close"),
                                  ("turn", "streamed"), ("cancel", "permission"), ("sweep",)])
def test_the_nth_write_of_the_ledger_fails(faulty, uses):
    gateway, faults = faulty
    app = Talker(gateway)
    faults.scope = LEDGER
    for use in uses:
        assert fault_loop(gateway, faults, app, use, "write", 5 if use == "sweep" else 3) >= 2
    assert_well(gateway, app)
