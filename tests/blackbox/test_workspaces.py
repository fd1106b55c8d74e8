"""Directories of the owner's that apps may have worked on: who may use which."""
import json

import pytest

from agents import NUMBERS
from gateway import Gateway, run_program, wait_until
from sessions import Talker, session_options
from workspaces import workspace


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("workspaces")


@pytest.fixture(scope="module")
def forge(place):
    (place / "notes").mkdir()
    more = workspace("notes", place / "notes", "copy", setup=["true"])
    more += workspace("gone", place / "gone", "direct")
    more += workspace("no-repository", place / "notes", "worktree", branch="x/{session}")
    more += workspace("data", place, "read")
    gateway = Gateway(place / "gateway", **session_options(place, more=more)).start()
    yield gateway
    gateway.finish()


def app_with(forge, **fields):
    return Talker(forge, f"app-{next(NUMBERS)}", **fields)


def seen(app):
    return app.get("/workspaces").json()["workspaces"]


def test_an_app_sees_none_unless_its_owner_names_some(forge):
    app = app_with(forge)
    assert seen(app) == []
    assert app.get("/whoami").json()["workspaces"] == []
    forge.admin.patch(f"/admin/tokens/{app.name}", json={"workspaces": ["notes", "unknown"]})
    assert seen(app) == [{"name": "notes", "mode": "copy", "present": True}]
    assert app.get("/whoami").json()["workspaces"] == ["notes", "unknown"]
    forge.admin.patch(f"/admin/tokens/{app.name}", json={"workspaces": None})
    assert seen(app) == []


def test_a_star_is_all_and_what_cannot_be_used_is_told(forge, place):
    every = [{"name": "data", "mode": "read", "present": False},
             {"name": "gone", "mode": "direct", "present": False},
             {"name": "no-repository", "mode": "worktree", "present": False},
             {"name": "notes", "mode": "copy", "present": True}]
    assert seen(app_with(forge, workspaces=["*"])) == every
    assert forge.admin.get("/workspaces").json()["workspaces"] == every
    for name in ("data", "gone", "no-repository"):
        wait_until(lambda: f'"workspace":"{name}"' in forge.stderr_file.read_text(),
                   f"the warning of {name}")
    assert '"workspace":"notes"' not in forge.stderr_file.read_text()
    (place / "gone").mkdir()
    try:
        assert seen(app_with(forge, workspaces=["gone"])) == [every[1] | {"present": True}]
    finally:
        (place / "gone").rmdir()


def test_the_defaults_give_and_the_token_narrows(place, new_gateway):
    (place / "blog").mkdir(exist_ok=True)
    more = workspace("blog", place / "blog", "copy") + workspace("other", place / "blog", "read")
    more += '[defaults]\nworkspaces = ["*"]\n'
    forge = new_gateway(**session_options(place, more=more))
    assert [one["name"] for one in seen(app_with(forge))] == ["blog", "other"]
    assert [one["name"] for one in seen(app_with(forge, workspaces=["other"]))] == ["other"]


@pytest.mark.parametrize("table, sentence", [
    ("[workspaces.a]\nmode = \"copy\"\n", "has no path"),
    ("[workspaces.a]\npath = \"/\"\n", "has no mode"),
    ("[workspaces.a]\npath = \"src\"\nmode = \"copy\"\n", "must begin with / or ~/"),
    ("[workspaces.a]\npath = \"/\"\nmode = \"write\"\n", "one of read, direct, copy, worktree"),
    ("[workspaces.a]\npath = \"/\"\nmode = \"worktree\"\nbranch = \"x\"\n", "{session}"),
    ("[workspaces.a]\npath = \"/\"\nmode = \"worktree\"\nbranch = \"-x{session}\"\n", "{session}"),
    ("[workspaces.a]\npath = \"/\"\nmode = \"read\"\nsetup = [\"x\"]\n", "has a setup"),
    ("[workspaces.a]\npath = \"/\"\nmode = \"read\"\nnet = 1\n", "not a known key"),
    ("[workspaces.\"a b\"]\npath = \"/\"\nmode = \"read\"\n", "not a name for a workspace"),
])
def test_a_wrong_table_stops_the_start(tmp_path, table, sentence):
    path = tmp_path / "wrong.toml"
    path.write_text(table)
    shown = run_program("config", "--config", path, home=tmp_path)
    assert shown.returncode == 2
    assert sentence in shown.stderr


def test_the_configuration_and_the_doctor_show_them(forge, place):
    config = forge.flags[-1]
    shown = run_program("config", "--config", config, home=place)
    assert 'workspaces.notes.path' in shown.stdout and str(place / "notes") in shown.stdout
    assert 'workspaces.no-repository.branch' in shown.stdout
    found = run_program("doctor", "--json", "--config", config, "--data-dir", forge.data_dir,
                        home=place)
    lines = {line["check"]: line for line in json.loads(found.stdout)["lines"]}
    assert "is not a directory" in lines["workspace-gone"]["says"]
    assert lines["workspace-notes"]["verdict"] != lines["workspace-gone"]["verdict"]
