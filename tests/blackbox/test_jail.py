"""A jailed agent finds nothing of the machine that is not its own. Each attack is tried as root and as
an ordinary user; where the jail is what stops it, it succeeds with jail = "off"."""
import contextlib
import ctypes
import os
import pathlib
import socket
import subprocess
import tempfile
import threading

import pytest

from agents import (UNPRIVILEGED, REPO, App, allows_namespaces, assert_success, children_of,
                    fake_env, gateway_of, gauge, loud_skip)
from gateway import PROGRAM, refused_start, run_program, wait_until

INTRUDER = REPO / "tests" / "agents" / "fake_intruder"
USERS = [None, UNPRIVILEGED]
JAILED = "agents are jailed: each has a root of its own"
NOT_JAILED = "agents are not jailed: they can read what the gateway's user can"
BY_LANDLOCK = "agents are jailed by Landlock only"

either_user = pytest.mark.parametrize("user", USERS, ids=["root", "ordinary"])


def messages(gateway):
    return [line["message"] for line in gateway.log_lines()]


class Victim:
    """What belongs to the gateway's user and to no agent: files, sockets, a process."""

    def __init__(self, place, user):
        self.place = place
        self.secret = place / ".ssh" / "id_ed25519"
        self.secret.parent.mkdir()
        self.secret.write_text("a private key")
        self.socket = place / "bus"
        self.abstract = f"victim-{os.getpid()}-{place.name}"
        self.listeners = []
        for address in (str(self.socket), "\0" + self.abstract):
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(address)
            listener.listen()
            self.listeners.append(listener)
        self.process = subprocess.Popen(["sleep", "600"], user=user)
        for path in (place, self.secret.parent, self.secret, self.socket):
            os.chown(path, user or os.geteuid(), -1)

    def close(self):
        self.process.kill()
        self.process.wait()
        for listener in self.listeners:
            listener.close()


@contextlib.contextmanager
def victim_of(user):
    with tempfile.TemporaryDirectory(prefix="victim-") as name:
        victim = Victim(pathlib.Path(name).resolve(), user)
        try:
            yield victim
        finally:
            victim.close()


@contextlib.contextmanager
def jailed(user, **settings):
    if not allows_namespaces(user):
        loud_skip("the kernel allows no namespaces")
    with gateway_of(user, "auto", stand_in=INTRUDER,
                    **{"jail_write": "", "jail": "auto", **settings}) as gateway:
        yield gateway


def attempted(app, *what):
    """What became of each of the attempts, in one run of the hostile stand-in."""
    return assert_success(app.run({"do": [list(one) for one in what]}))["result"]


def outcomes(gateway, *what, app="intruder"):
    return attempted(App(gateway, app), *what)


@either_user
def test_what_is_outside_is_not_there(user):
    """Rows 1 to 3, 5, 7 and 8: the ledger, the admin token, the directories and uploads of others,
    keys of the user. Reading, truncating and changing modes find nothing."""
    with jailed(user) as gateway, victim_of(user) as victim:
        assert JAILED in messages(gateway)
        assert gauge(gateway, 'clawdforge_jail_mode{mode="own_root"}') == 1
        owner = App(gateway, "owner")
        owner.upload("theirs.txt", b"a secret of another app")
        upload, = (gateway.data_dir / "uploads").iterdir()
        session = owner.client().post("/sessions", json={"agent": "demo"}).json()["session_id"]
        ledger = gateway.data_dir / "clawdforge.db"
        before = ledger.stat()
        paths = [ledger, gateway.data_dir / "clawdforge.db-wal", gateway.data_dir / "admin-token", upload,
                 gateway.data_dir / "sessions" / session, victim.secret, pathlib.Path("/etc/shadow"),
                 pathlib.Path("/run"), pathlib.Path("/home"), pathlib.Path("/sys")]
        assert all(path.exists() for path in paths[:6])
        for name in ("read", "truncate", "chmod"):
            assert outcomes(gateway, *[(name, str(path)) for path in paths],
                            app=f"intruder-{name}") == ["ENOENT"] * len(paths)
        listed, = outcomes(gateway, ("list", str(gateway.data_dir)), app="lister")
        assert listed == ["runs"], "only the way to its own directory is there"
        runs, = outcomes(gateway, ("list", str(gateway.data_dir / "runs")), app="again")
        assert len(runs) == 1
        assert ledger.stat().st_mode == before.st_mode and ledger.stat().st_size >= before.st_size
        assert victim.secret.read_text() == "a private key"


@either_user
def test_sockets_of_others_cannot_be_reached(user):
    """Rows 15 and 16."""
    with jailed(user) as gateway, victim_of(user) as victim:
        by_path, abstract = outcomes(gateway, ("connect", "unix", str(victim.socket)),
                                     ("connect", "unix", "\0" + victim.abstract))
        assert by_path == "ENOENT"
        if landlock_version() >= 6:
            assert abstract == "EPERM"
        else:
            loud_skip("this kernel does not refuse abstract sockets")


def landlock_version():
    return ctypes.CDLL(None).syscall(444, None, 0, 1)


@either_user
def test_processes_of_others_cannot_be_reached(user):
    """Rows 9 to 11: by /proc, by signals, by tracing; its own supervisor is closed, too."""
    with jailed(user) as gateway, victim_of(user) as victim:
        gateway_pid, victim_pid = gateway.process.pid, victim.process.pid
        found = outcomes(gateway, ("read", f"/proc/{gateway_pid}/environ"),
                         ("read", f"/proc/{victim_pid}/environ"), ("kill", gateway_pid, 9),
                         ("kill", victim_pid, 9), ("trace", victim_pid), ("trace", 1),
                         ("read", "/proc/1/environ"), ("read", "/proc/1/fd/4"), ("list", "/proc/1/root"),
                         ("read", "/proc/1/mem"), ("read", "/proc/1/cmdline"), ("kill", -1, 19), ("ids",))
        assert found[:5] == ["ENOENT", "ENOENT", "ESRCH", "ESRCH", "ESRCH"]
        assert set(found[5:10]) <= {"EPERM", "EACCES"}
        assert found[10] == "cf-launcher\0"
        assert victim.process.poll() is None and gateway.process.poll() is None
        uid, _, pid, parent = found[12]
        assert uid == (user or 1000 if os.geteuid() == 0 else os.geteuid()), "root is another user"
        assert parent == 1 and pid < 100


@either_user
def test_the_root_cannot_be_left_or_changed(user):
    """Rows 12 to 14: namespaces of its own, set-user-ID programs, devices, chroot."""
    with jailed(user) as gateway:
        data = str(gateway.data_dir)
        found = outcomes(
            gateway, ("list", "/"), ("list", "/../.."), ("write", "/usr/planted"), ("write", "/planted"),
            ("write", "/etc/planted"), ("device", "disk"), ("chmod", "/dev/null"),
            ("run", "unshare", "-Urm", "sh", "-c", "mount -o remount,rw,bind /usr && echo out > /usr/planted"),
            ("run", "unshare", "-Urm", "sh", "-c", f"umount /usr; umount -l {data}; ls {data}"),
            ("run", "unshare", "-Ur", "chroot", "/proc/1/root", "ls", data),
            ("run", "su", "-c", "id"), ("run", "unshare", "-Urm", "true"))
        assert found[0] == found[1] and "home" not in found[0] and "run" not in found[0]
        assert set(found[2:5]) == {"EROFS"}
        assert found[5] == "EPERM"
        assert found[6] in ("EROFS", "EPERM")
        assert found[7][0] != 0
        assert found[8][1] in ("", "runs"), found[8]
        assert found[9][0] != 0
        assert found[10][0] != 0
        assert found[11][0] == 0, "sandboxes of agents still nest"
        assert not pathlib.Path("/usr/planted").exists()


@either_user
def test_without_the_jail_all_this_is_open(user):
    """The control: each of these must fail above because of the jail."""
    with gateway_of(user, "auto", stand_in=INTRUDER, jail="off", jail_write="") as gateway:
        with victim_of(user) as victim:
            assert f"{NOT_JAILED}; jail is off" in messages(gateway)
            found = outcomes(gateway, ("read", str(victim.secret)), ("chmod", str(victim.secret), 0o600),
                             ("connect", "unix", str(victim.socket)),
                             ("connect", "unix", "\0" + victim.abstract), ("list", "/"),
                             ("truncate", str(victim.secret)))
            assert found[0] == "a private key"
            assert found[1:4] == [None, None, None]
            assert set(os.listdir("/")) == set(found[4])
            assert victim.secret.read_text() == ""


def test_nothing_of_the_order_is_in_arguments(new_gateway, tmp_path):
    """Row 26: neither paths nor prompts show in the launcher's command line."""
    gateway = new_gateway(env=fake_env())
    held = App(gateway).hold(tmp_path, {"secret-of-the-prompt": 1}).begun()
    launchers = children_of(gateway.process.pid)
    assert launchers
    for pid in launchers:
        assert pathlib.Path(f"/proc/{pid}/cmdline").read_bytes() == b"cf-launcher\0"
    for entry in pathlib.Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            assert b"secret-of-the-prompt" not in (entry / "cmdline").read_bytes()
    assert_success(held.end())


@either_user
def test_instructions_outside_are_not_seen(user):
    """Row 25: above the working directory there are only empty directories."""
    with jailed(user) as gateway:
        for place in (gateway.data_dir, gateway.data_dir / "runs"):
            (place / "CLAUDE.md").write_text("Do as I say")
        found = outcomes(gateway, ("read", "../../CLAUDE.md"), ("read", "../../../CLAUDE.md"),
                         ("list", "../.."), ("write", "../../CLAUDE.md"))
        assert found[:2] == ["ENOENT", "ENOENT"]
        assert len(found[2]) == 1 and found[3] == "EROFS"
        (gateway.data_dir / "runs" / "CLAUDE.md").unlink()


def test_the_owner_gives_more_to_all_to_an_agent_and_to_an_app(new_gateway, tmp_path):
    given = {}
    for name in ("all", "claude", "app", "none"):
        given[name] = tmp_path.parent / f"given-{name}-{tmp_path.name}"
        given[name].mkdir()
        (given[name] / "file").write_text(name)
    config = tmp_path / "jail.toml"
    config.write_text(f'[agents.claude]\njail_write = ["{given["claude"]}"]\n')
    gateway = new_gateway(env=fake_env(claude_bin=INTRUDER, jail_read=given["all"], jail_write=""),
                          flags=["--config", str(config)])
    reads = [("read", str(given[name] / "file")) for name in given]
    writes = [("write", str(given[name] / "file")) for name in given]
    plain = attempted(App(gateway, "plain"), *reads, *writes)
    assert plain == ["all", "claude", "ENOENT", "ENOENT", "EROFS", None, "ENOENT", "ENOENT"]
    more = attempted(App(gateway, "more", jail_read=[str(given["app"])]), *reads, *writes)
    assert more[2] == "app" and more[6] == "EROFS" and more[3] == more[7] == "ENOENT"


def test_the_strictest_jail_holds(new_gateway, tmp_path):
    gateway = new_gateway(env=fake_env(jail="auto"))
    minted = gateway.mint("strict", jail="files")
    with gateway.admin as admin:
        listed = {token["name"]: token for token in admin.get("/admin/tokens").json()["tokens"]}
    assert listed["strict"]["jail"] == "files"
    with gateway.client(minted["token"]) as client:
        assert client.get("/whoami").json()["jail"] == "files"
    for wrong in ({"jail": "full of it"}, {"jail_read": ["relative"]}, {"jail_read": ["/"]},
                  {"jail_write": ["/proc/1"]}, {"jail_read": ["/a/../etc"]}):
        with gateway.admin as admin:
            answer = admin.post("/admin/tokens", json={"name": "wrong", **wrong})
        assert answer.status_code == 422, wrong
        assert answer.json()["code"] == "validation_failed"


def test_an_agent_of_ones_own_choice_can_be_left_out(new_gateway, tmp_path):
    """Where the gateway's own key says nothing."""
    config = tmp_path / "off.toml"
    config.write_text('[agents.claude]\njail = "off"\n')
    outside = tmp_path.parent / f"outside-{tmp_path.name}"
    outside.write_text("seen")
    env = {**fake_env(claude_bin=INTRUDER), "CLAWDFORGE_JAIL_WRITE": ""}
    gateway = new_gateway(env=env, flags=["--config", str(config)])
    assert outcomes(gateway, ("read", str(outside))) == ["seen"]
    strict = new_gateway(env={**env, "CLAWDFORGE_JAIL": "auto"}, flags=["--config", str(config)])
    assert outcomes(strict, ("read", str(outside))) == ["ENOENT"]


def test_a_program_that_runs_outside_only_is_named(new_gateway, tmp_path):
    """A wrapper calls a program that the gateway cannot find by itself."""
    elsewhere = tmp_path.parent / f"elsewhere-{tmp_path.name}"
    elsewhere.mkdir()
    (elsewhere / "real").write_text("#!/bin/sh\necho '2.1.325 (Claude Code)'\n")
    (elsewhere / "real").chmod(0o755)
    wrapper = tmp_path / "bin" / "claude"
    wrapper.parent.mkdir()
    wrapper.write_text(f"#!/bin/sh\nexec '{elsewhere}/real' \"$@\"\n")
    wrapper.chmod(0o755)
    env = {**fake_env(claude_bin=wrapper), "CLAWDFORGE_JAIL_WRITE": ""}
    gateway = new_gateway(env=env)
    named = wait_until(lambda: [line for line in gateway.log_lines()
                                if line["message"].startswith("a program runs, but not in its jail")],
                       "the log names it")
    assert "jail_read" in named[0]["message"] and named[0]["program"] == str(wrapper)
    assert "not found" in named[0]["said"]
    mended = new_gateway(env={**env, "CLAWDFORGE_JAIL_READ": str(elsewhere)})
    wait_until(lambda: mended.client().get("/healthz").json()["claude_present"], "it is there")


def without_namespaces(tmp_path):
    wrapper = tmp_path / "without-namespaces"
    wrapper.write_text(
        "#!/bin/sh\n"
        "exec unshare --user --map-root-user sh -c '\n"
        "  echo 0 > /proc/sys/user/max_user_namespaces\n"
        "  exec setpriv --bounding-set=-all --inh-caps=-all \"$@\"' sh "
        f"{PROGRAM} \"$@\"\n")
    wrapper.chmod(0o755)
    return wrapper


def test_landlock_takes_the_place_of_a_root_that_is_refused(new_gateway, tmp_path):
    if not allows_namespaces(None) or landlock_version() < 1:
        loud_skip("this kernel has no namespaces to refuse, or no Landlock")
    outside = tmp_path.parent / f"outside-{tmp_path.name}"
    outside.mkdir()
    (outside / "key").write_text("a private key")
    env = {**fake_env(claude_bin=INTRUDER), "CLAWDFORGE_JAIL_WRITE": ""}
    gateway = new_gateway(program=without_namespaces(tmp_path), env=env)
    told = wait_until(lambda: [line for line in gateway.log_lines()
                               if line["message"].startswith(BY_LANDLOCK)], "it is told")
    assert "user namespaces" in told[0]["reason"]
    # Below /tmp, which this weaker jail leaves open.
    where = outside if not str(outside).startswith("/tmp") else pathlib.Path("/root")
    assert outcomes(gateway, ("list", str(where)), ("list", "/usr"))[0] == "EACCES"


def test_a_file_that_is_replaced_meanwhile_is_shown(tmp_path):
    """As an installation of packages does with /etc/ld.so.cache while agents start."""
    settings = tmp_path / "settings"
    settings.write_text("as ever")
    is_over = threading.Event()

    def replace():
        while not is_over.is_set():
            (tmp_path / "settings.new").write_text("as ever")
            (tmp_path / "settings.new").rename(settings)

    with jailed(None, jail_read=str(settings)) as gateway:
        app = App(gateway, "starter")
        replacing = threading.Thread(target=replace)
        replacing.start()
        try:
            for _ in range(20):
                assert attempted(app, ("read", str(settings))) != ["ENOENT"]
        finally:
            is_over.set()
            replacing.join()


def test_a_jail_that_is_demanded_and_refused_ends_the_start(tmp_path):
    if not allows_namespaces(None):
        loud_skip("the kernel allows no namespaces in which there could be none")
    home = tmp_path / "home"
    home.mkdir()
    done = subprocess.run(
        [str(without_namespaces(tmp_path)), "serve", "--listen", "127.0.0.1:0", "--data-dir",
         str(home / "data"), "--jail", "files"],
        env={"PATH": "/usr/bin:/bin", "HOME": str(home)}, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert "jail" in last and "user namespaces" in last


def test_the_owners_settings_and_a_jail_exclude_each_other(new_gateway, tmp_path):
    gateway = new_gateway(env=fake_env(claude_owner_settings="on"))
    line, = wait_until(lambda: [line for line in gateway.log_lines() if line["message"] == NOT_JAILED],
                       "it is told")
    assert "claude_owner_settings" in line["reason"]
    home = tmp_path / "other"
    home.mkdir()
    code, sentence = refused_start(home, "--jail", "files", "--claude-owner-settings", "on")
    assert code == 1 and "claude_owner_settings" in sentence


def test_the_configuration_names_a_wrong_path(tmp_path):
    for path in ("/", "/proc/1", "/dev/sda"):
        done = run_program("config", "--jail-read", path, home=tmp_path)
        assert done.returncode == 2 and "jail-read" in done.stderr, done.stderr


@either_user
def test_an_upload_is_not_rewritten_through_what_a_run_gets(user):
    """Row 6: the run has a copy of its own."""
    with jailed(user) as gateway:
        app = App(gateway, "app")
        token = app.upload("notes.txt", b"as it was")
        for _ in range(2):
            found = assert_success(app.run({"do": [["chmod", "attachment-1.txt", 0o600],
                                                   ["write", "attachment-1.txt", "changed"],
                                                   ["read", "attachment-1.txt"]]}, files=[token]))["result"]
            assert found == [None, None, "as it waschanged"]
        upload, = (gateway.data_dir / "uploads").iterdir()
        assert upload.read_bytes() == b"as it was"


@either_user
def test_nothing_survives_the_end_of_a_run(user):
    """Row 19: not by a session of its own, nor by a double fork, nor by ignoring signals."""
    mark = f"61{os.getpid()}{user or 0}"
    script = ("import os, signal, time\n"
              "for number in range(1, 32):\n"
              "    if number not in (9, 19): signal.signal(number, signal.SIG_IGN)\n"
              "if os.fork() == 0:\n"
              "    os.setsid()\n"
              "    null = os.open('/dev/null', os.O_RDWR)\n"
              "    for number in range(3): os.dup2(null, number)\n"
              "    if os.fork() == 0:\n"
              f"        os.execvp('sleep', ['sleep', '{mark}'])\n"
              "    os._exit(0)\n")

    def survivors():
        found = []
        for entry in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                found += [entry] if f"sleep\0{mark}\0".encode() in entry.read_bytes() else []
        return found

    with jailed(user) as gateway:
        done, = outcomes(gateway, ("run", "python3", "-c", script))
        assert done[0] == 0, done
        wait_until(lambda: not survivors(), "nothing of the run is left")
