"""The tarball in roots that are not Debian 12: without any library, with musl, and with PACKAGE_ROOTS=yes of Debian 11, 12 and 13.

Each time it is installed, started, used, stopped and undone by the tools of that root alone.
"""
import json
import re
import shutil

import pytest

from roots import LOADER, copy_of, debian_root, empty_root, musl_root, run, skip_without_roots, the, why_no_roots, within

SUITES = {"bullseye": "Debian 11", "bookworm": "Debian 12", "trixie": "Debian 13"}
STREAM_PARTS = 5

IN_A_ROOT = """set -eu
fail() {{ echo "$*" >&2; cat /tmp/serve.log >&2; exit 1; }}
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
  [ $tries -lt 300 ] || fail "the gateway does not start"
  sleep 0.1
done
CLAWDFORGE_TOKEN=$(/opt/cf/bin/clawdforge token mint my-app)
export CLAWDFORGE_TOKEN
/opt/cf/bin/clawdforge run --agent demo Hello
session=$(/opt/cf/bin/clawdforge session new --agent demo)
/opt/cf/bin/clawdforge session turn "$session" "slow {parts}" > /tmp/streamed
grep -o 'Slowly [0-9]' /tmp/streamed | wc -l
/opt/cf/bin/clawdforge session close "$session" > /dev/null
/opt/cf/bin/clawdforge health --json
grep -o '"message":"agents are [^"]*"' /tmp/serve.log
kill -TERM $gateway
wait $gateway || fail "the gateway did not end well"
./{name}/install.sh --undo --prefix /opt/cf > /dev/null
find /opt/cf -type f -o -type l
"""


def try_tarball(root):
    """Gives how the gateway held its agents there."""
    tarball = the("*linux-x86_64.tar.xz")
    run("tar", "-xJf", tarball, "-C", root)
    said = within(root, "/bin/sh", "-c", IN_A_ROOT.format(name=tarball.name.removesuffix(".tar.xz"), parts=STREAM_PARTS)).splitlines()
    assert said[:2] == ["You said: Hello", str(STREAM_PARTS)], said
    health = json.loads(said[2])
    assert health["ok"], health
    # The log tells the owner the same as the API tells callers.
    assert len(said) == 4 and re.search("jail", said[3]), f"an answer, a stream, the jail, and nothing left after the undo: {said}"
    return health["jail"]


@pytest.fixture
def foreign(tmp_path):
    """Places for roots, which the machine must allow."""
    if reason := why_no_roots():
        pytest.skip(reason)
    yield tmp_path / "root"
    shutil.rmtree(tmp_path / "root", ignore_errors=True)


def test_it_runs_where_there_is_no_library(foreign):
    busybox = shutil.which("busybox")
    assert "statically linked" in run("file", "-L", busybox), "busybox-static is not there: scripts/install-packages package-test"
    root = empty_root(foreign, busybox)
    run("chroot", root, "/bin/busybox", "--install", "-s", "/bin")
    assert try_tarball(root) == "own_root"


@pytest.mark.timeout(1500)
def test_it_runs_where_musl_is_the_c_library(foreign):
    """As in Alpine: musl's loader in its place, and a busybox that needs it. Without it no program of that root starts."""
    skip_without_roots()
    if not LOADER.exists() or shutil.which("musl-gcc") is None:
        pytest.skip("musl is not there: scripts/install-packages roots")
    root = musl_root(foreign)
    assert sorted(path.name for path in (root / "lib").iterdir()) == [LOADER.name]
    assert try_tarball(root) == "own_root"
    # What runs there is that root's own: without its loader the shell does not start.
    (root / "lib" / LOADER.name).unlink()
    with pytest.raises(AssertionError, match="No such file"):
        run("chroot", root, "/bin/sh", "-c", "true")


@pytest.mark.timeout(1500)
@pytest.mark.parametrize("suite", SUITES)
def test_it_runs_on_debian(suite, foreign):
    skip_without_roots()
    assert try_tarball(copy_of(debian_root(suite), foreign)) == "own_root"
