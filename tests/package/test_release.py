"""scripts/release: what it refuses, and that a release can be built again.

With RELEASE_BUILD=yes the whole of it is done: two builds without the compiler cache, in different folders, byte by byte the
same. That takes two whole compilations; else a sample of the objects is compiled again, in another folder.
"""
import datetime
import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

from gateway import PROGRAM, REPO

SCRIPT = REPO / "scripts/release"
VERSION = re.search(r"^project\(clawdforge VERSION ([0-9.]+) ", (REPO / "CMakeLists.txt").read_text(), re.M)[1]
TODAY = datetime.datetime.now(datetime.timezone.utc).date()
# Of whom the objects are compiled again: quick ones that inline much of base, Asio, fmt and Boost.JSON.
SAMPLE = ("room_json", "room_quota_budgets")


def git(folder, *words):
    subprocess.run(["git", "-C", str(folder), "-c", "user.name=test", "-c", "user.email=test@localhost", *words], check=True,
                   capture_output=True, timeout=60)


def copy_of_the_tree(folder):
    """What is in the tree now, committed or not."""
    names = subprocess.run(["git", "-C", str(REPO), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                           capture_output=True, check=True, text=True).stdout.split("\0")
    for name in filter(None, names):
        if (REPO / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(REPO / name, folder / name)


def date_the_changelog(tree, date):
    text = (tree / "CHANGELOG.md").read_text()
    (tree / "CHANGELOG.md").write_text(re.sub(r"^## .*$", f"## {VERSION}, {date}", text, count=1, flags=re.M))


@pytest.fixture
def tree(tmp_path):
    """A small tree that is ready for a release."""
    for name in ("CMakeLists.txt", "CHANGELOG.md", "docs/openapi.yaml", "scripts/release"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(REPO / name, tmp_path / name)
    date_the_changelog(tmp_path, TODAY)
    git(tmp_path, "init", "-q")
    commit(tmp_path)
    return tmp_path


def commit(tree):
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "--allow-empty", "-m", "all")


def check(tree, version=VERSION):
    return subprocess.run([str(tree / "scripts/release"), "--check", version], capture_output=True, text=True, timeout=60)


def change(tree, name, before, after):
    text = (tree / name).read_text()
    assert before in text
    (tree / name).write_text(text.replace(before, after, 1))
    commit(tree)


def test_a_tree_that_is_ready_passes(tree):
    done = check(tree)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"release: {VERSION} is ready\n", "")


REFUSED = {
    "another version": (lambda tree: None, "9.9.9", f"CMakeLists.txt says version {VERSION}"),
    "not a version": (lambda tree: None, "1.0", "'1.0' is not a version"),
    "the API's version": (lambda tree: change(tree, "docs/openapi.yaml", f"version: {VERSION}", "version: 0.0.7"), VERSION,
                          "docs/openapi.yaml says version 0.0.7"),
    "no date": (lambda tree: change(tree, "CHANGELOG.md", f", {TODAY}", ", not released yet"), VERSION,
                f"it must be '## {VERSION}, "),
    "not a day": (lambda tree: change(tree, "CHANGELOG.md", f"{TODAY}", "2024-02-30"), VERSION, "2024-02-30 is not a day"),
    "a later day": (lambda tree: change(tree, "CHANGELOG.md", f"{TODAY}", "2999-01-01"), VERSION, "2999-01-01 has not come yet"),
    "no entry": (lambda tree: change(tree, "CHANGELOG.md", f"{TODAY}\n", f"{TODAY}\n\n## 0.0.1, 2020-01-01\n"), VERSION,
                 "has no entry below its first heading"),
    "twice": (lambda tree: change(tree, "CHANGELOG.md", f"{TODAY}\n", f"{TODAY}\n\n- One.\n\n## {VERSION}, 2020-01-01\n"), VERSION,
              "two headings for one version"),
    "not committed": (lambda tree: (tree / "new").write_text("x"), VERSION, "something is not committed"),
    "the tag elsewhere": (lambda tree: (git(tree, "tag", f"v{VERSION}"), commit(tree)), VERSION, f"tag v{VERSION} is on another commit"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_tree_that_is_not_ready_is_refused(tree, what):
    spoil, version, reason = REFUSED[what]
    spoil(tree)
    done = check(tree, version)
    assert done.returncode == 1 and reason in done.stderr, done.stderr
    assert done.stdout == ""


def test_the_version_is_in_one_place():
    """Other files may show it as an example; none decides by it."""
    may = {"CMakeLists.txt", "CHANGELOG.md", "docs/openapi.yaml", "docs/api.md"}
    names = subprocess.run(["git", "-C", str(REPO), "grep", "-lwF", VERSION], capture_output=True, text=True).stdout.split()
    others = {name for name in names if not name.endswith("_test.cc") and not name.startswith("docs/adr/")} - may
    assert not others, f"{VERSION} is also in {others}"
    # docs/openapi.yaml must have one; scripts/release compares it.
    assert check_openapi() == VERSION


def check_openapi():
    import yaml
    return yaml.safe_load((REPO / "docs/openapi.yaml").read_text())["info"]["version"]


# Built again

def test_the_builders_paths_are_not_in_the_program():
    program = pathlib.Path(PROGRAM).read_bytes()
    for path in {str(REPO), str(pathlib.Path.home())} - {"/", "/root"}:
        assert path.encode() not in program, f"{path} is in {PROGRAM}"


def objects_of(folder):
    return {path.relative_to(folder): path.read_bytes() for room in SAMPLE
            for path in sorted((folder / "CMakeFiles" / f"{room}.dir").rglob("*.o")) if "cmake_pch" not in path.name}


@pytest.mark.timeout(300)
def test_objects_compiled_in_another_folder_are_the_same(tmp_path):
    ours = REPO / "build/release"
    if json.loads((ours / "compile_commands.json").read_text())[0]["directory"] != str(ours):
        pytest.skip("build/release was made elsewhere")
    tree = tmp_path / "a-folder-with-another-name"
    copy_of_the_tree(tree)
    environment = os.environ | {"CCACHE_DISABLE": "1"}
    subprocess.run(["cmake", "--preset", "release"], cwd=tree, env=environment, check=True, capture_output=True, timeout=120)
    first = objects_of(ours)
    assert len(first) >= len(SAMPLE), "build/release has not been built"
    # The objects alone: a whole room would bring all that it uses.
    for folder in (ours, tree / "build/release"):
        subprocess.run(["ninja", "-C", folder, *map(str, first)], env=environment, check=True, capture_output=True, timeout=280)
    again, first = objects_of(tree / "build/release"), objects_of(ours)
    assert again.keys() == first.keys()
    differing = [str(name) for name in first if again[name] != first[name]]
    assert not differing, f"compiled again in another folder, without the cache, these differ: {differing}"


@pytest.mark.timeout(3000)
def test_two_builds_in_different_folders_have_the_same_bytes(tmp_path, capsys):
    if os.environ.get("RELEASE_BUILD") != "yes":
        pytest.skip("RELEASE_BUILD=yes ./test package does it: two whole builds without the compiler cache")
    tree = tmp_path / "tree"
    copy_of_the_tree(tree)
    date_the_changelog(tree, TODAY)
    git(tree, "init", "-q")
    commit(tree)
    done = subprocess.run([str(tree / "scripts/release"), VERSION], capture_output=True, text=True, timeout=2900)
    assert done.returncode == 0, done.stdout + done.stderr[-5000:]
    assert "two builds in different folders have the same bytes" in done.stdout
    made = tree / "build/releases" / VERSION
    assert {path.name for path in made.iterdir()} == {
        "SHA256SUMS", f"clawdforge_{VERSION}_amd64.deb", f"clawdforge-{VERSION}-linux-x86_64.tar.xz", f"clawdforge-{VERSION}.tar.xz"}
    subprocess.run(["sha256sum", "-c", "--strict", "SHA256SUMS"], cwd=made, check=True, capture_output=True, timeout=60)
    with capsys.disabled():
        print(f"\n{done.stdout}")
