"""The jail, seen from the Bash tool of the real command line."""
import os
import pathlib
import subprocess

import pytest

from model_api import scripted, tool, tool_results

ROWS = {
    "ledger": "cat {data}/clawdforge.db | head -c 16",
    "admin": "cat {data}/admin-token",
    "others": "ls {data}/sessions",
    "key": "cat {key}",
    "truncate": "truncate -s 0 {data}/clawdforge.db",
    "environ": "cat /proc/{pid}/environ",
    "kill": "kill -9 {victim}",
    "supervisor": "cat /proc/1/environ",
    "remount": "unshare -Urm sh -c 'mount -o remount,rw,bind /usr && touch /usr/planted'",
    "su": "su -c id",
    "node": "mknod disk b 254 0",
    "old root": "ls /proc/1/root/home",
    "nested": "unshare -Urm true && echo nested",
}


@pytest.fixture
def victim():
    process = subprocess.Popen(["sleep", "600"])
    yield process
    process.kill()
    process.wait()


def attempts(house, victim, key):
    """What became of each row, by its name."""
    values = {"data": house.gateway.data_dir, "key": key, "pid": house.gateway.process.pid,
              "victim": victim.pid}
    lines = [f"echo '@{name}@'; ({command.format(**values)}) 2>&1" for name, command in ROWS.items()]
    answer = house.run(scripted("look around", tool("Bash", command="\n".join(lines) + "\necho '@end@'",
                                                    description="look"), {"text": "looked"}),
                       permission_mode="approve_all")
    assert answer.status_code == 200, answer.text
    text = str(tool_results(house.api.requests()[-1])[-1]["content"]).replace("\\n", "\n")
    assert "@end@" in text, text
    parts = text.split("@")
    return dict(zip(parts[1::2], (part.strip() for part in parts[2::2])))


@pytest.fixture
def key(tmp_path):
    file = pathlib.Path.home() / f".clawdforge-test-{os.getpid()}"
    file.write_text("a private key")
    yield file
    file.unlink()


def test_without_the_jail_it_does(new_house, victim, key):
    house = new_house(CLAWDFORGE_JAIL="off")
    found = attempts(house, victim, key)
    assert found["key"] == "a private key"
    assert "No such file" not in found["old root"] or os.geteuid() != 0
