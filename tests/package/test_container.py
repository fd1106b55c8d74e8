"""The container of packaging/container, built and run by Debian's podman.

With PACKAGE_ROOTS=yes it is built from the Dockerfile, with a root of debootstrap in the place of the base image, so that no registry is
needed, and run as docs/install.md says: not as root, with a read-only root and without capabilities. That needs root and a network. Else
only what can be read in the files is compared.
"""
import json
import pathlib
import re
import shutil
import subprocess

import pytest
import yaml

from gateway import REPO, wait_until
from roots import debian_root, run, skip_without_roots, the

PLACE = REPO / "packaging/container"
BASE = "docker.io/library/debian:bookworm-slim"


def test_the_container_and_the_tests_have_the_same_claude():
    tested = re.search(r"^claude_version=(\S+)", (REPO / "test").read_text(), re.M)[1]
    assert f"ARG CLAUDE_VERSION={tested}\n" in (PLACE / "Dockerfile").read_text()


def test_the_compose_file_runs_it_with_all_walls():
    service = yaml.safe_load((PLACE / "compose.yaml").read_text())["services"]["clawdforge"]
    assert service["read_only"] and service["cap_drop"] == ["ALL"] and service["security_opt"] == ["no-new-privileges"]
    assert service["volumes"] == ["home:/var/lib/clawdforge"] and service["tmpfs"] == ["/tmp"]
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])


class Podman:
    """With storage of its own, which goes with the test; nothing of the machine's containers is seen."""

    def __init__(self, place):
        self.place = place
        (place / "containers.conf").write_text("[containers]\ndefault_ulimits = []\n")
        self.environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(place), "CONTAINERS_CONF": str(place / "containers.conf")}

    def command(self, *words):
        return ["podman", "--root", str(self.place / "storage"), "--runroot", str(self.place / "run"), "--cgroup-manager", "cgroupfs",
                "--events-backend", "file", "--runtime", "runc", *map(str, words)]

    def __call__(self, *words, timeout=120):
        return run(*self.command(*words), timeout=timeout, env=self.environment)

    def run(self, *words):
        """As docs/install.md says. podman leaves the times of health checks to systemd, so tests ask for one themselves."""
        return self("run", "--detach", "--network", "host", "--ulimit", "host", "--read-only", "--tmpfs", "/tmp",
                    "--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--volume", "home:/var/lib/clawdforge", *words)

    def logs(self, name):
        return subprocess.run(self.command("logs", name), env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=60).stdout

    def end(self):
        subprocess.run(self.command("rm", "--all", "--force", "--time", "0"), env=self.environment, capture_output=True, timeout=120)
        subprocess.run(self.command("rmi", "--all", "--force"), env=self.environment, capture_output=True, timeout=120)


def import_base(podman):
    made = debian_root("bookworm")
    # As the official image has it: without it dpkg waits for the disk after each file.
    extra = podman.place / "extra"
    quick = pathlib.Path("etc/dpkg/dpkg.cfg.d/docker-apt-speedup")
    (extra / quick).parent.mkdir(parents=True)
    (extra / quick).write_text("force-unsafe-io\n")
    with subprocess.Popen(["tar", "--exclude=./proc/*", "--exclude=./sys/*", "--exclude=./var/cache/apt/archives/*.deb", "-c", "-C", made, ".",
                           "-C", extra, f"./{quick}"], stdout=subprocess.PIPE) as tar:
        subprocess.run(podman.command("import", "-", BASE), stdin=tar.stdout, env=podman.environment, check=True, capture_output=True,
                       timeout=300)


@pytest.fixture(scope="module")
def podman(tmp_path_factory):
    skip_without_roots()
    if not shutil.which("podman") or not shutil.which("runc"):
        pytest.skip("podman or runc is not there: scripts/install-packages container")
    podman = Podman(tmp_path_factory.mktemp("podman"))
    import_base(podman)
    context = podman.place / "context"
    context.mkdir()
    shutil.copy(the("*.deb"), context)
    # The machine's own certificates, because it may be after a proxy that opens TLS.
    podman("build", "--isolation", "chroot", "--network", "host", "--format", "docker", "--pull-never", "--tag", "clawdforge",
           "--secret", "id=ca,src=/etc/ssl/certs/ca-certificates.crt", "--file", PLACE / "Dockerfile", context, timeout=1200)
    yield podman
    podman.end()


@pytest.fixture
def container(podman):
    podman.run("--name", "gateway", "--env", "CLAWDFORGE_LISTEN=127.0.0.1:0", "clawdforge")

    def is_up():
        return "clawdforge listening" in podman.logs("gateway") or None
    wait_until(is_up, "the gateway in its container listens", seconds=60)
    yield podman
    podman("rm", "--force", "--time", "60", "gateway")
    podman("volume", "rm", "home")


@pytest.mark.timeout(1800)
def test_the_image_says_what_it_is(podman):
    image = json.loads(podman("image", "inspect", "clawdforge"))[0]
    config = image["Config"]
    assert config["User"] == "clawdforge" and list(config["Volumes"]) == ["/var/lib/clawdforge"]
    assert config["ExposedPorts"] == {"8800/tcp": {}} and config["Entrypoint"] == ["clawdforge"] and config["Cmd"] == ["serve"]
    assert image["Healthcheck"]["Test"] == ["CMD", "clawdforge", "health"]


@pytest.mark.timeout(600)
def test_it_serves_with_a_read_only_root_and_not_as_root(container, capsys):
    podman = container

    def within(*words):
        return podman("exec", "gateway", *words)
    assert within("id", "-u") == "8800\n"
    assert within("sh", "-c", "touch /etc/x 2>/dev/null || touch /usr/x 2>/dev/null || echo refused") == "refused\n"
    assert podman("healthcheck", "run", "gateway") == ""
    token = within("clawdforge", "token", "mint", "my-app").strip()
    answer = podman("exec", "--env", f"CLAWDFORGE_TOKEN={token}", "gateway", "clawdforge", "run", "--agent", "demo", "Hello")
    assert answer == "You said: Hello\n"
    health = json.loads(within("clawdforge", "health", "--json"))
    with capsys.disabled():
        size = int(json.loads(podman("image", "inspect", "clawdforge"))[0]["Size"]) // 1_000_000
        print(f"\nthe image has {size} MB, Claude {health['claude_version']}")
        print("".join(line + "\n" for line in podman.logs("gateway").splitlines() if "jail" in line)[:2000])
    assert health["claude_present"], health


@pytest.mark.timeout(600)
def test_an_engine_that_covers_nothing_of_proc_leaves_the_whole_jail(podman):
    podman.run("--rm", "--name", "jailer", "--security-opt", "unmask=ALL", "--env", "CLAWDFORGE_LISTEN=127.0.0.1:0", "--env",
               "CLAWDFORGE_JAIL=files", "clawdforge")
    try:
        wait_until(lambda: "each has a root of its own" in podman.logs("jailer") or None, "agents are jailed", seconds=60)
    finally:
        podman("rm", "--force", "--time", "60", "jailer")
        podman("volume", "rm", "home")


@pytest.mark.timeout(600)
def test_data_and_apps_outlive_the_container(container):
    podman = container
    podman("exec", "gateway", "clawdforge", "token", "mint", "my-app")
    podman("stop", "--time", "60", "gateway")
    assert podman("inspect", "gateway", "--format", "{{.State.ExitCode}}") == "0\n", podman.logs("gateway")
    podman("rm", "gateway")
    podman.run("--name", "gateway", "--env", "CLAWDFORGE_LISTEN=127.0.0.1:0", "clawdforge")
    wait_until(lambda: "clawdforge listening" in podman.logs("gateway") or None, "it starts again", seconds=60)
    assert "my-app" in podman("exec", "gateway", "clawdforge", "token", "list")
