"""./run: installs, builds, says what to try, and becomes the gateway."""
import re
import shutil
import subprocess

import pytest

from gateway import PROGRAM, READY, REPO, SECONDS_MAX, assert_no_report, clean_environment

FAKE_CMAKE = """#!/bin/sh
echo "cmake $*" >> calls
[ ! -e broken ] || exit 3
case "$1" in
  --preset) mkdir -p build/$2 && touch build/$2/build.ninja ;;
  --build) ln -sf "$PROGRAM" $2/clawdforge ;;
esac
"""
FAKE_INSTALL = '#!/bin/sh\necho "install-packages $*" >> calls\n'
BUILT = ["install-packages ", "cmake --preset release",
         "cmake --build build/release --target clawdforge"]


class Tree:
    """A copy of the script, in a tree whose cmake only looks as if it built."""

    def __init__(self, root):
        self.root = root
        (root / "scripts").mkdir(parents=True)
        (root / "bin").mkdir()
        shutil.copy(REPO / "run", root / "run")
        for name, text in (("bin/cmake", FAKE_CMAKE), ("scripts/install-packages", FAKE_INSTALL)):
            (root / name).write_text(text)
            (root / name).chmod(0o755)
        self.home = root / "home"
        self.home.mkdir()

    def environment(self, **more):
        return clean_environment(self.home, {"PATH": f"{self.root}/bin:/usr/bin:/bin",
                                             "PROGRAM": str(PROGRAM), **more})

    def run(self, *arguments):
        """Runs it to its end."""
        return subprocess.run([self.root / "run", *arguments], env=self.environment(), cwd="/",
                              capture_output=True, text=True, timeout=2 * SECONDS_MAX)

    def calls(self):
        return (self.root / "calls").read_text().splitlines()


@pytest.fixture
def tree(tmp_path):
    return Tree(tmp_path / "tree")


def test_it_starts_the_gateway_and_what_it_says_to_try_works(tree):
    process = subprocess.Popen([tree.root / "run"], cwd="/", stdin=subprocess.DEVNULL,
                               env=tree.environment(CLAWDFORGE_LISTEN="127.0.0.1:0"),
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        lines = []
        while not lines or not READY.fullmatch(lines[-1]):
            lines.append(process.stdout.readline())
            assert lines[-1], f"it has ended: {process.stderr.read()}"
        said = "".join(lines[:-1])
        assert tree.calls() == BUILT
        token_file, = re.findall(r"admin token: +(\S+)", said)
        assert re.fullmatch(r"\S{40,}\s*", open(token_file, encoding="ascii").read())
        assert token_file.startswith(str(tree.home)), "where the configuration says"
        link = tree.home / ".local/bin/clawdforge"
        assert link.is_symlink() and link.resolve() == PROGRAM.resolve(), "for any folder"
        assert re.search(rf"program: +{re.escape(str(link))}\n", said), "it is not in PATH"
        commands = said.split("terminal:\n")[1].split("\n\n")[0]
        port = READY.fullmatch(lines[-1]).group(3)
        commands = commands.replace(":0/run", f":{port}/run")
        tried = subprocess.run(["/bin/bash", "-e", "-c", commands], env=tree.environment(),
                               capture_output=True, text=True, timeout=SECONDS_MAX)
        assert tried.returncode == 0, tried
        assert tried.stdout.count("You said: Hello") == 2, tried
    finally:
        process.terminate()
        rest, stderr = process.communicate(timeout=SECONDS_MAX)
    assert (process.returncode, rest) == (0, "")
    assert_no_report(stderr)


def test_a_program_that_is_there_already_stays(tree):
    link = tree.home / ".local/bin/clawdforge"
    link.parent.mkdir(parents=True)
    link.write_text("another program\n")
    done = tree.run("--tls-cert", "/c", "--tls-key", "/k")
    assert done.returncode != 0, "there is no such certificate"
    assert link.read_text() == "another program\n"
    assert f"program:      {tree.root}/build/release/clawdforge" in done.stdout


def test_help_is_that_of_serve_and_starts_nothing(tree):
    for arguments in (["--help"], ["--listen", "127.0.0.1:0", "--help"]):
        done = tree.run(*arguments)
        assert done.returncode == 0 and "--listen" in done.stdout and "--data-dir" in done.stdout
        assert "starts now" not in done.stdout
    assert tree.calls() == BUILT + [BUILT[0], BUILT[2]], "it is configured once"
    assert list(tree.home.iterdir()) == []


def test_its_arguments_are_those_of_serve(tree):
    done = tree.run("--listen", "127.0.0.1:1", "--data-dir", tree.root / "data", "--tls-cert", "/c",
                    "--tls-key", "/k")
    assert done.returncode != 0, "there is no such certificate"
    assert f"{tree.root}/data/admin-token" in done.stdout
    assert "https://127.0.0.1:1/run" in done.stdout


def test_a_build_that_fails_starts_nothing(tree):
    assert tree.run("--help").returncode == 0, "an older build is there"
    (tree.root / "broken").touch()
    done = tree.run()
    assert (done.returncode, done.stdout) == (3, "")
