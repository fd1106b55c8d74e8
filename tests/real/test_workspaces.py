"""A real repository through the modes, with the real command line editing it."""
import pytest

from gateway import wait_until
from model_api import scripted, tool
from workspaces import assert_clean, branches, git, repository, workspace

SWEPT = {"CLAWDFORGE_SESSION_HARD_TTL_SECS": "1"}


@pytest.fixture
def desk(new_parlour, tmp_path):
    """A house with one repository, in three modes."""
    repo = repository(tmp_path / "repo")
    config = tmp_path / "workspaces.toml"
    config.write_text("".join(workspace(mode, repo, mode) for mode in
                              ("read", "direct", "copy", "worktree")))
    house = new_parlour(CLAWDFORGE_CONFIG=str(config), **SWEPT)
    house.gateway.admin.patch("/admin/tokens/app", json={"workspaces": ["*"]})
    house.repo = repo
    return house


def edit(path, old, new):
    """A prompt that makes the model read the file, change it, and say so."""
    return scripted("change it", tool("Read", file_path=str(path)),
                    tool("Edit", file_path=str(path), old_string=old, new_string=new),
                    {"text": "changed"})


def work_of(house, talk):
    return house.gateway.data_dir / "sessions" / talk.id / "work"


def changed(house, talk):
    answer = house.client.get(f"/sessions/{talk.id}/diff", params={"stat": 1})
    assert answer.status_code == 200, answer.text
    return [file["path"] for file in answer.json()["files"]]


@pytest.mark.parametrize("mode", ["copy", "worktree", "direct"])
def test_it_is_edited_in_each_mode(desk, mode):
    talk = desk.talk(agent="claude", workspace=mode, permission_mode="approve_all")
    work = desk.repo if mode == "direct" else work_of(desk, talk)
    assert talk.say(edit(work / "src" / "main.txt", "two", "three"))["text"].endswith("changed")
    assert (work / "src" / "main.txt").read_text() == "one\nthree\n"
    assert changed(desk, talk) == ["src/main.txt"]
    assert "+three" in desk.client.get(f"/sessions/{talk.id}/diff").text
    if mode == "direct":
        git(desk.repo, "checkout", "--", ".")
    else:
        assert (desk.repo / "src" / "main.txt").read_text() == "one\ntwo\n"
    kept = []
    if mode == "worktree":
        done = desk.client.post(f"/sessions/{talk.id}/commit", json={"message": "three"})
        assert done.status_code == 200, done.text
        kept = [talk.state()["branch"]]
        assert git(desk.repo, "show", f"{kept[0]}:src/main.txt") == "one\nthree\n"
        assert desk.client.request("DELETE", f"/sessions/{talk.id}",
                                   json={"keep": True}).status_code == 200
    else:
        talk.close()

    def is_swept():
        desk.gateway.admin.post("/admin/sweep")
        return not work_of(desk, talk).exists() and len(branches(desk.repo)) == 1 + len(kept)

    wait_until(is_swept, "the session is deleted")
    assert_clean(desk.repo, *kept)


def test_a_run_sees_it(desk):
    answer = desk.run(scripted("read it", tool("Bash", command="cat README.md", description="read"),
                               {"text": "read"}),
                      workspace="worktree", permission_mode="approve_all")
    assert answer.status_code == 200, answer.text
    assert answer.json()["result"] == "read"
    assert "# readme" in desk.api.sent_text()
    desk.assert_nothing_left()
    wait_until(lambda: branches(desk.repo) == ["main"], "the branch of the run goes")
    assert_clean(desk.repo)


def test_it_is_only_read_in_mode_read(desk):
    talk = desk.talk(agent="claude", workspace="read", permission_mode="approve_all")
    path = desk.repo / "src" / "main.txt"
    talk.say(scripted("try it", tool("Bash", command=f"cat {path}; echo three > {path}; touch new.txt",
                                     description="try"), {"text": "tried"}))
    sent = desk.api.sent_text()
    assert "one\\\\ntwo" in sent or "one\\ntwo" in sent
    assert "Read-only file system" in sent
    assert path.read_text() == "one\ntwo\n" and not (desk.repo / "new.txt").exists()
    assert changed(desk, talk) == []
    talk.close()
    assert_clean(desk.repo)
