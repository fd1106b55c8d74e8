"""Every command in README and docs is run, against a fresh gateway in a home of its own.

A block ```sh is a script. In a block without a language, the lines after "$ " are commands and the
others are what they print. <!-- not run: REASON --> in front of a block leaves it out; NOT_RUN
counts these, so that there are no more of them without a change here."""
import re
import subprocess
import tempfile

import pytest

from gateway import PROGRAM, REPO, SECONDS_MAX, clean_environment, wait_until

PAGES = sorted(path.relative_to(REPO).as_posix()
               for path in [REPO / "README.md", REPO / "CONTRIBUTING.md", *(REPO / "docs").glob("*.md")])
NOT_RUN = {"README.md": 2, "docs/api.md": 1, "docs/install.md": 5}
BLOCK = re.compile(r"(?:<!-- not run: ([^>]+) -->\n\n?)?^( *)```(\w*)\n(.*?)^ *```$", re.M | re.S)
# What stands for something that differs in every life of a gateway.
SESSION = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
UPLOAD = re.compile(r"\bff_[\w-]{30,}")


def blocks_of(page):
    """(reason or none, commands, what they print)"""
    for reason, indent, language, text in BLOCK.findall((REPO / page).read_text()):
        text = re.sub(rf"^{indent}", "", text, flags=re.M)
        if language == "sh":
            yield reason, text, ""
        elif not language and (commands := re.findall(r"^\$ ((?:.*\\\n)*.*)$", text, re.M)):
            shown = re.sub(r"^\$ (?:.*\\\n)*.*$", "", text, flags=re.M)
            yield reason, "\n".join(commands) + "\n", shown


def codes_in(text):
    return set(re.findall(r'"code":"(\w+)"', text))


class Shell:
    """Runs scripts one after another; what they export is there for the next."""

    def __init__(self, gateway, root):
        self.home = root / "home"
        (self.home / ".local/bin").mkdir(parents=True)
        (self.home / ".local/bin/clawdforge").symlink_to(PROGRAM)
        (self.home / "notes.txt").write_text("some notes\n")
        self.saved = root / "saved"
        token = gateway.mint("my-app" if not self.is_minted(gateway) else "other")["token"]
        self.environment = clean_environment(self.home, {
            "PATH": f"{self.home}/.local/bin:/usr/bin:/bin", "TOKEN": token, "ADMIN": gateway.admin_token,
            "CLAWDFORGE_TOKEN": token, "CLAWDFORGE_DATA_DIR": str(gateway.data_dir)})
        self.gateway = gateway
        self.client = gateway.client(token)
        self.sessions = {}

    @staticmethod
    def is_minted(gateway):
        return any(row["name"] == "my-app" for row in gateway.admin.get("/admin/tokens").json()["tokens"])

    def session(self, shown, line):
        """The session that stands for one of the page's; "ask" beside it is its mode."""
        if shown not in self.sessions:
            mode = "ask" if '"ask"' in line else "approve_reads"
            answer = self.client.post("/sessions", json={"agent": "demo", "permission_mode": mode})
            self.sessions[shown] = answer.json()["session_id"]
        return self.sessions[shown]

    def question(self):
        """What an agent waits for."""
        def open_ones():
            return [row for session in self.sessions.values() for row in
                    self.client.get(f"/sessions/{session}/permissions").json().get("permissions", [])]
        return wait_until(open_ones, "a question")[0]["id"]

    def stand_in(self, line):
        """A line with what is there now in the place of what the page shows."""
        line = line.replace("http://127.0.0.1:8800", self.gateway.url)
        if line.startswith("P="):
            return SESSION.sub(lambda found: self.question(), line)
        if "/runs/" in line:
            done = self.client.post("/run", json={"prompt": "x", "agent": "demo"})
            return SESSION.sub(done.headers["X-Clawdforge-Run-Id"], line)
        if "/jobs/" in line:
            job = self.client.post("/jobs", json={"run": {"prompt": "x", "agent": "demo"}}).json()
            return SESSION.sub(job["job_id"], line)
        line = SESSION.sub(lambda found: self.session(found[0], line), line)
        if UPLOAD.search(line):
            upload = self.client.post("/files", files={"file": ("notes.txt", b"text")}).json()
            line = UPLOAD.sub(upload["file_token"], line)
        return line

    def run(self, script):
        lines = "\n".join(self.stand_in(line) for line in script.splitlines())
        script = (f"[ ! -e {self.saved} ] || . {self.saved}\nset -aeo pipefail\n{lines}\n"
                  f"export -p > {self.saved}\n")
        # Files and not pipes: what goes on in the background would keep a pipe open.
        with tempfile.TemporaryFile("w+") as said, tempfile.TemporaryFile("w+") as complained:
            done = subprocess.run(["/bin/bash", "-c", script], env=self.environment, cwd=self.home,
                                  stdin=subprocess.DEVNULL, stdout=said, stderr=complained,
                                  timeout=SECONDS_MAX)
            said.seek(0)
            complained.seek(0)
            done.stdout, done.stderr = said.read(), complained.read()
        return done


@pytest.mark.parametrize("page", PAGES)
def test_every_command_of_the_page_runs(page, new_gateway, tmp_path):
    blocks = list(blocks_of(page))
    left_out = [reason for reason, _, _ in blocks if reason]
    assert len(left_out) == NOT_RUN.get(page, 0), left_out
    to_run = [(commands, shown) for reason, commands, shown in blocks if not reason]
    if not to_run:
        return
    shell = Shell(new_gateway(flags=["--max-live-sessions", "200"]), tmp_path)
    wrong = []
    for commands, shown in to_run:
        done = shell.run(commands)
        # A refusal that the page does not show is one that its reader does not expect.
        if done.returncode != 0 or not codes_in(done.stdout) <= codes_in(shown):
            wrong.append(f"{commands}{done.stdout}{done.stderr}({done.returncode})")
    assert not wrong, "\n".join(wrong)


# docs/migration.md

def cf_lines():
    text = (REPO / "docs/migration.md").read_text()
    rows = re.findall(r"^\| `(cf [^|]*)` \| `(clawdforge [^|]*)` \|$", text, re.M)
    assert len(rows) >= 19, rows
    return rows


@pytest.fixture(scope="module")
def cf_shell(shared, tmp_path_factory):
    return Shell(shared, tmp_path_factory.mktemp("cf"))


@pytest.fixture
def shell(cf_shell):
    yield cf_shell
    # However many lines one worker takes, the app's sessions do not run out.
    for session in cf_shell.client.get("/sessions").json()["sessions"]:
        cf_shell.client.delete(f"/sessions/{session['session_id']}")
    cf_shell.sessions.clear()


@pytest.mark.parametrize("number", range(19))
def test_a_line_of_cf_has_its_equal(shell, number):
    old, line = cf_lines()[number]
    client = shell.client
    session = client.post("/sessions", json={"agent": "demo"}).json()["session_id"]
    token = client.post("/files", files={"file": ("notes.txt", b"text")}).json()["file_token"]
    name = f"app-{number}"
    if "revoke" in line:
        shell.gateway.mint(name)
    for word, value in (("NAME", name), ("ID", session), ("PATH", "trace.json"), ("T1", token), ("T2", token),
                        ("FILE", "notes.txt"), ("PROMPT", "Hello"), ("A,B", "127.0.0.0/8,10.0.0.0/8"),
                        ("JSON", "'{\"a\":1}'"), ("TEXT", "'Be brief.'"), ("A", "demo"), ("M", "sonnet")):
        line = re.sub(rf"\b{word}\b", value, line)
    if " run " in line or line.endswith("session new"):
        line += " --agent demo"
    done = shell.run(line)
    assert done.returncode == 0, (old, line, done.stdout, done.stderr)
    if old.startswith(("cf healthz", "cf upload", "cf admin", "cf session get", "cf session list")):
        assert done.stdout.lstrip().startswith("{"), "cf printed JSON"
    if old == "cf session new":
        assert SESSION.fullmatch(done.stdout.strip()), "only the id"
    if old.startswith('cf session turn ID "PROMPT"`'):
        assert "Hello" in done.stdout
