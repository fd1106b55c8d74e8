"""What is installed: below a prefix and by the Debian package. ./test package makes the packages first.

test_tarball.py and test_life.py try them in other roots.
"""
import gzip
import pathlib
import re
import shutil
import subprocess
import tomllib

import pytest

from gateway import PROGRAM, REPO, clean_environment
from roots import run, the


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    root = tmp_path_factory.mktemp("deb")
    run("dpkg-deb", "-x", the("*.deb"), root)
    return root


# Below a prefix

@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    prefix = tmp_path_factory.mktemp("installed") / "prefix"
    run("cmake", "--install", REPO / "build/release", "--prefix", prefix)
    return prefix


def test_what_is_installed_below_a_prefix_names_that_prefix(prefix):
    assert run(prefix / "bin/clawdforge", "version").startswith("clawdforge ")
    for unit in ("system/clawdforge.service", "user/clawdforge.service", "system/clawdforge-backup.service"):
        text = (prefix / "lib/systemd" / unit).read_text()
        assert f"ExecStart={prefix}/" in text and "@" not in re.sub(r"SystemCallFilter=@system-service|=@system-service:", "", text)
    assert "ListenStream=127.0.0.1:8800" in (prefix / "lib/systemd/system/clawdforge.socket").read_text()
    assert f"{prefix}/etc/clawdforge/clawdforge.toml" in (prefix / "lib/systemd/system/clawdforge.service").read_text()


def test_an_owners_configuration_is_not_written_over(prefix):
    file = prefix / "etc/clawdforge/clawdforge.toml"
    kept = file.read_text()
    file.write_text("max_runs = 3\n")
    run("cmake", "--install", REPO / "build/release", "--prefix", prefix)
    assert file.read_text() == "max_runs = 3\n"
    file.write_text(kept)


def shown(home, *arguments):
    text = run(PROGRAM, "config", *arguments, env=clean_environment(home))
    return dict(re.findall(r"^(?:# )?(\w+) *= (.*?) +#", text, re.M))


def test_the_default_configuration_has_every_key_with_its_default(prefix, tmp_path):
    text = (prefix / "etc/clawdforge/clawdforge.toml").read_text()
    assert tomllib.loads(text) == {}, "something is not commented out"
    keys = set(re.findall(r"^#(\w+) =", text, re.M))
    defaults = shown(tmp_path)
    assert keys == set(defaults) - {"admin_token"}, keys ^ set(defaults)
    told = tmp_path / "all.toml"
    told.write_text(re.sub(r"^#(\w+ = .)", r"\1", text, flags=re.M))
    assert len(tomllib.loads(told.read_text())) > 40
    assert shown(tmp_path, "--config", told) == defaults


def test_every_command_has_a_man_page_with_what_its_help_says(prefix, tmp_path):
    overview = run(PROGRAM, "--help", env=clean_environment(tmp_path))
    pages = {path.name for path in (prefix / "share/man/man1").iterdir()}
    nouns = re.findall(r"^  ([a-z]+)( [a-z-]+)?", overview, re.M)
    for words in nouns:
        assert f"{'-'.join(['clawdforge', *''.join(words).split()])}.1.gz" in pages, words
    for path in sorted((prefix / "share/man").glob("man*/*.gz")):
        text = gzip.decompress(path.read_bytes()).decode()
        done = subprocess.run(["man", "--warnings", "-l", "-"], input=text, capture_output=True, text=True, timeout=60,
                              env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "MANWIDTH": "120"})
        assert done.returncode == 0 and not done.stderr, f"{path}: {done.stderr}"
    mint = run("man", "-l", prefix / "share/man/man1/clawdforge-token-mint.1.gz",
               env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "MANWIDTH": "120"})
    for line in run(PROGRAM, "token", "mint", "--help", env=clean_environment(tmp_path)).splitlines():
        assert line.strip() in mint, line


# The Debian package

def test_lintian_finds_no_error():
    run("lintian", "--allow-root", "--fail-on", "error", the("*.deb"))


def test_the_units_are_sound(unpacked):
    units = [unpacked / "usr/lib/systemd/system" / name
             for name in ("clawdforge.service", "clawdforge-backup.service", "clawdforge-backup.timer", "clawdforge.socket")]
    for target in pathlib.Path("/usr/lib/systemd/system").glob("*.target"):  # which every unit leans on
        if not (units[0].parent / target.name).exists():
            shutil.copy(target, units[0].parent, follow_symlinks=True)
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", f"--root={unpacked}", *(unit.name for unit in units)],
                          capture_output=True, text=True, timeout=60)
    complaints = [line for line in done.stderr.splitlines() if "clawdforge" in line]
    assert not complaints, done.stderr
    for unit, worst in ((units[0], 5.0), (units[1], 2.5)):
        said = run("systemd-analyze", "security", "--offline=true", "--no-pager", unit)
        exposure = float(re.search(r"exposure level for \S+: ([0-9.]+)", said)[1])
        assert exposure <= worst, said


def test_the_service_keeps_the_calls_that_the_gateway_needs(unpacked):
    """systemd takes openat2() away with RestrictSUIDSGID, since a filter cannot look into its arguments."""
    for unit in ("system", "user"):
        assert "\nRestrictSUIDSGID=" not in (unpacked / "usr/lib/systemd" / unit / "clawdforge.service").read_text()


def test_restarts_refuse_nobody(unpacked):
    """The socket unit names the port of the default configuration, and both units of the service have theirs kept."""
    units = unpacked / "usr/lib/systemd"
    socket = (units / "system/clawdforge.socket").read_text()
    default = re.search(r'^#listen = "(.*)"', (unpacked / "etc/clawdforge/clawdforge.toml").read_text(), re.M)[1]
    assert f"ListenStream={default}\n" in socket and "WantedBy=sockets.target" in socket
    for unit in ("system", "user"):
        text = (units / unit / "clawdforge.service").read_text()
        assert "FileDescriptorStoreMax=1\nEnvironment=FDSTORE=1\n" in text
