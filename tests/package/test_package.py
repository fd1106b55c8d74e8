"""What is installed: below a prefix, by the Debian package, by the tarball. ./test package makes the packages first.

With PACKAGE_ROOTS=yes they are also tried in roots of Debian 11, 12 and 13, which debootstrap makes in build/roots; that needs
root and a network, and takes some minutes.
"""
import gzip
import os
import pathlib
import re
import shutil
import subprocess
import tomllib

import pytest

from gateway import PROGRAM, REPO, clean_environment

PACKAGES = REPO / "build/packages"
ROOTS = REPO / "build/roots"
MIRROR = os.environ.get("DEBIAN_MIRROR", "http://deb.debian.org/debian")
SUITES = {"bullseye": "Debian 11", "bookworm": "Debian 12", "trixie": "Debian 13"}


def run(*command, timeout=300, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=timeout, **options)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def the(pattern):
    found = sorted(PACKAGES.glob(pattern))
    assert len(found) == 1, f"{pattern} in build/packages: {found}; ./package all makes them"
    return found[0]


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


def test_restarts_refuse_nobody(unpacked):
    """The socket unit names the port of the default configuration, and both units of the service have theirs kept."""
    units = unpacked / "usr/lib/systemd"
    socket = (units / "system/clawdforge.socket").read_text()
    default = re.search(r'^#listen = "(.*)"', (unpacked / "etc/clawdforge/clawdforge.toml").read_text(), re.M)[1]
    assert f"ListenStream={default}\n" in socket and "WantedBy=sockets.target" in socket
    for unit in ("system", "user"):
        text = (units / unit / "clawdforge.service").read_text()
        assert "FileDescriptorStoreMax=1\nEnvironment=FDSTORE=1\n" in text


# The tarball

IN_A_ROOT = """set -eu
cd /
./{name}/install.sh --prefix /opt/cf > /tmp/said
grep -q 'undo:' /tmp/said
export HOME=/tmp/home
mkdir -p $HOME
/opt/cf/bin/clawdforge serve --listen 127.0.0.1:0 --allow-root > /tmp/serve.log 2>&1 &
gateway=$!
tries=0
until grep -q '^clawdforge listening' /tmp/serve.log; do
  tries=$((tries + 1))
  [ $tries -lt 300 ] || {{ cat /tmp/serve.log; exit 1; }}
  sleep 0.1
done
CLAWDFORGE_TOKEN=$(/opt/cf/bin/clawdforge token mint my-app)
export CLAWDFORGE_TOKEN
/opt/cf/bin/clawdforge run --agent demo Hello
/opt/cf/bin/clawdforge health > /dev/null
kill -TERM $gateway
wait $gateway
./{name}/install.sh --undo --prefix /opt/cf > /dev/null
find /opt/cf -type f -o -type l
"""


def why_no_roots():
    if os.getuid() != 0:
        return "only root may enter another root"
    done = subprocess.run(["unshare", "--mount", "--pid", "--fork", "true"], capture_output=True, text=True)
    return "" if done.returncode == 0 else f"this machine does not allow it: {done.stderr.strip()}"


def within(root, *command, timeout=600):
    """A command in another root, with a /proc and a mount namespace of its own: nothing is left mounted."""
    inner = 'mount -t proc proc "$1/proc" && mount --bind /dev "$1/dev" && shift && exec chroot "$@"'
    return run("unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", inner, "sh", root, root, *command, timeout=timeout,
               env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root"})


def try_tarball(root):
    tarball = the("*.tar.xz")
    run("tar", "-xJf", tarball, "-C", root)
    said = within(root, "/bin/sh", "-c", IN_A_ROOT.format(name=tarball.name.removesuffix(".tar.xz")))
    assert said == "You said: Hello\n", f"an answer, and nothing left after the undo: {said}"


def test_the_tarball_runs_where_there_is_no_library(tmp_path):
    if reason := why_no_roots():
        pytest.skip(reason)
    root = tmp_path / "root"
    for name in ("bin", "proc", "dev", "tmp", "etc", "opt", "usr/bin"):
        (root / name).mkdir(parents=True)
    busybox = shutil.which("busybox")
    assert "statically linked" in run("file", "-L", busybox), "busybox-static is not there: scripts/install-packages package-test"
    shutil.copy(busybox, root / "bin/busybox")
    run("chroot", root, "/bin/busybox", "--install", "-s", "/bin")
    (root / "etc/passwd").write_text("root:x:0:0::/root:/bin/sh\n")
    try_tarball(root)


@pytest.fixture(params=SUITES)
def debian(request, tmp_path):
    """A fresh copy of a root."""
    if os.environ.get("PACKAGE_ROOTS") != "yes":
        pytest.skip("PACKAGE_ROOTS=yes ./test package tries it: it needs root and a network, and takes minutes")
    if reason := why_no_roots():
        pytest.skip(reason)
    made = ROOTS / request.param
    if not (made / "etc/os-release").exists():
        ROOTS.mkdir(parents=True, exist_ok=True)
        run("debootstrap", "--variant=minbase", request.param, made, MIRROR, timeout=900)
    run("cp", "-a", "--reflink=auto", made, tmp_path / "root")
    yield request.param, tmp_path / "root"
    shutil.rmtree(tmp_path / "root")


@pytest.mark.timeout(1500)
def test_the_tarball_runs_on(debian):
    try_tarball(debian[1])


@pytest.mark.timeout(1500)
def test_the_life_of_the_debian_package(debian, tmp_path, capsys):
    suite, root = debian
    if suite != "bookworm":
        pytest.skip("the Debian package is for Debian 12; the tarball is for the others")
    new = the("*.deb")
    # The same as an earlier version, since there is no earlier one yet.
    run("dpkg-deb", "-R", new, tmp_path / "old")
    control = tmp_path / "old/DEBIAN/control"
    control.write_text(re.sub(r"^Version: .*$", "Version: 0.0.1", control.read_text(), flags=re.M))
    run("dpkg-deb", "--root-owner-group", "-b", tmp_path / "old", root / "old.deb")
    shutil.copy(new, root / "new.deb")
    shutil.copy(REPO / "tests/package/life.sh", root / "life.sh")
    shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
    within(root, "apt-get", "update", "-qq")
    said = within(root, "/bin/sh", "/life.sh", "/old.deb", "/new.deb", timeout=900)
    assert "installed, used, upgraded, removed and purged" in said
    seconds = int(re.search(r"first answer of a session: (\d+) s", said)[1])
    with capsys.disabled():
        print(f"\n{said}")
    assert seconds < 120, said
