"""An agent sees its own directory and nothing else of the data directory: not the ledger, not the
admin token, not the files of others. It has no privileges beyond those of its user."""
import os

import pytest

from agents import (UNPRIVILEGED, REPO, App, allows_namespaces, assert_success, gateway_of, loud_skip)
from gateway import PROGRAM
from sessions import Talker, session_options

INTRUDER = REPO / "tests" / "agents" / "fake_intruder"
HIDING = "agents see only their own part of the data directory"
NOT_HIDING = "agents can read the data directory: the system does not let the gateway hide it"
SETFCAP = 1 << 31  # without it root could not make a user namespace
AS_ROOT = "the gateway runs as root"

HOMES = [(user, namespace) for user in (None, UNPRIVILEGED) for namespace in ("on", "off")]


def messages(gateway):
    return [line["message"] for line in gateway.log_lines()]


def secrets_of(gateway, app):
    """The admin token first: some of the ways try only that."""
    data = gateway.data_dir
    app.upload("theirs.txt", b"a secret of another app")
    session = app.client().post("/sessions", json={"agent": "demo"}).json()["session_id"]
    (data / "sessions" / session / "work" / "theirs.txt").write_text("a secret")
    assert app.client().delete(f"/sessions/{session}").status_code == 200
    upload, = (data / "uploads").iterdir()
    return [data / "admin-token", data / "clawdforge.db", data / "clawdforge.db-wal", upload,
            data / "sessions" / session / "work" / "theirs.txt", data / "uploads",
            data / "sessions" / session]


def intrude(gateway, secrets):
    answer = App(gateway, "intruder").run({"data_dir": str(gateway.data_dir),
                                           "gateway": gateway.process.pid,
                                           "secrets": [str(path) for path in secrets]})
    return assert_success(answer)["result"]


@pytest.mark.parametrize("user, namespace", HOMES,
                         ids=[f"{user or 'root'}-namespace-{on}" for user, on in HOMES])
def test_an_agent_finds_nothing_that_is_not_its_own(user, namespace):
    if not allows_namespaces(user):
        loud_skip("the kernel allows no namespaces")
    with gateway_of(user, namespace, stand_in=INTRUDER) as gateway:
        assert HIDING in messages(gateway)
        secrets = secrets_of(gateway, App(gateway, "owner"))
        assert all(path.exists() for path in secrets)
        told = intrude(gateway, secrets)
        assert told["found"] == []
        for name in ("CapEff", "CapPrm", "CapBnd"):
            assert int(told["status"][name], 16) == (
                0 if user or os.geteuid() or namespace == "on" else SETFCAP)
        assert told["status"]["NoNewPrivs"] == "1"
        assert told["status"]["oom_score_adj"] == 500
        assert told["nested"] == 0, "sandboxes of agents can still make namespaces of their own"
        assert all(path.exists() for path in secrets)


def test_an_agents_own_directory_is_where_it_was(new_gateway, tmp_path):
    """Seen from inside and from outside, with what each side puts there."""
    gateway = new_gateway(**session_options(tmp_path))
    app = Talker(gateway)
    session = app.session()
    token = app.upload("notes.txt", b"some notes")
    told = session.report("process")
    assert told["cwd"] == str(session.work())
    session.ask({"write": {"path": "made/here.txt", "content": "by the agent"}}, files=[token])
    assert (session.work() / "made" / "here.txt").read_text() == "by the agent"
    listed = {file["path"] for file in app.get(session.path + "/files").json()["files"]}
    assert listed == {"made/here.txt", "notes.txt"}


def test_a_home_below_the_data_directory_stays_visible(new_gateway, tmp_path):
    home = tmp_path / "gateway-0" / "data" / "home"
    home.mkdir(parents=True)
    (home / "login").write_text("the agent's own")
    options = session_options(tmp_path)
    options["env"]["HOME"] = str(home)
    gateway = new_gateway(**options)
    assert HIDING in messages(gateway)
    session = Talker(gateway).session()
    session.ask({"write": {"path": str(home / "seen"), "content": "yes"}})
    assert (home / "seen").read_text() == "yes"


def test_a_data_directory_that_is_the_agents_home_is_not_hidden(new_gateway, tmp_path):
    """Their logins are there. The log says what to do."""
    options = session_options(tmp_path)
    options["env"]["HOME"] = str(tmp_path / "gateway-0" / "data")
    gateway = new_gateway(**options)
    assert HIDING not in messages(gateway)
    assert any("it is their home" in message for message in messages(gateway))
    Talker(gateway).session().ask("hello")


def test_a_ledger_elsewhere_is_told(new_gateway, tmp_path):
    gateway = new_gateway(flags=["--ledger", f"sqlite:{tmp_path}/elsewhere.db"])
    assert any("agents can read the ledger" in message for message in messages(gateway))


def test_a_kernel_without_namespaces_is_told_and_does_no_harm(new_gateway, tmp_path):
    if not allows_namespaces(None):
        loud_skip("the kernel allows no namespaces in which there could be none")
    wrapper = tmp_path / "without-namespaces"
    wrapper.write_text(
        "#!/bin/sh\n"
        "exec unshare --user --map-root-user sh -c '\n"
        "  echo 0 > /proc/sys/user/max_user_namespaces\n"
        "  exec setpriv --bounding-set=-all --inh-caps=-all \"$@\"' sh "
        f"{PROGRAM} \"$@\"\n")
    wrapper.chmod(0o755)
    gateway = new_gateway(program=wrapper, **session_options(tmp_path))
    assert messages(gateway).count(NOT_HIDING) == 1
    app = Talker(gateway)
    assert app.session().told("hello") == "echo: hello"
    assert_success(app.run("hello"), "echo: hello")


def test_a_gateway_of_root_warns_unless_that_is_wanted(new_gateway):
    def is_told(gateway):
        return any(message.startswith(AS_ROOT) for message in messages(gateway))
    plain = new_gateway()
    assert is_told(plain) == (os.geteuid() == 0)
    assert not is_told(new_gateway(flags=["--allow-root"]))
    assert not is_told(new_gateway(env={"CLAWDFORGE_ALLOW_ROOT": "true"}))


def test_agents_do_not_get_the_runtime_directory(new_gateway, tmp_path):
    """Sockets of the owner's desktop and of his services are in it."""
    options = session_options(tmp_path)
    options["env"]["XDG_RUNTIME_DIR"] = str(tmp_path)
    session = Talker(new_gateway(**options)).session()
    assert session.told({"env": "XDG_RUNTIME_DIR"}) == "(none)"
