"""The command line: it speaks HTTP to a running gateway and finds it by itself."""
import json
import re
import socket

import pytest

from gateway import run_program

TOKEN = re.compile(r"cf_[A-Za-z0-9_-]{43}\n")


def cli(gateway, *arguments, env=None):
    return run_program(*arguments, "--data-dir", gateway.data_dir, home=gateway.root, env=env)


def test_version_is_one_line_with_the_version(tmp_path):
    done = run_program("version", home=tmp_path)
    assert done.returncode == 0
    assert re.fullmatch(r"clawdforge \d+\.\d+\.\d+\S*\n", done.stdout)


@pytest.mark.parametrize("arguments", [
    ["--help"], ["serve", "--help"], ["token", "--help"], ["token", "mint", "--help"]])
def test_help_is_on_stdout_and_no_error(tmp_path, arguments):
    done = run_program(*arguments, home=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "clawdforge" in done.stdout and done.stderr == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments", [
    [], ["nonsense"], ["token"], ["token", "nonsense"], ["token", "mint"],
    ["token", "mint", "a", "b"], ["token", "mint", "a", "--colour", "red"],
    ["token", "mint", "a", "--max-runs"], ["token", "mint", "a", "--max-runs", "many"],
    ["token", "rotate"], ["token", "webhook-secret"], ["token", "revoke"], ["token", "show"], ["token", "set"],
    ["token", "set", "a"], ["token", "set", "a", "--reset", "colour"],
    ["token", "set", "a", "--max-runs", "many"], ["token", "list", "x"],
    ["token", "list", "--url", "nonsense"], ["token", "list", "--url", "ftp://127.0.0.1"],
    ["version", "x"]])
def test_wrong_usage_is_exit_2_and_said_on_stderr(tmp_path, arguments):
    done = run_program(*arguments, home=tmp_path, env={"CLAWDFORGE_ADMIN_TOKEN": "x" * 30})
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert done.stderr.strip()


def test_mint_prints_the_token_alone_and_the_token_works(gateway):
    done = cli(gateway, "token", "mint", "by-hand")
    assert done.returncode == 0, done.stderr
    assert TOKEN.fullmatch(done.stdout)
    assert done.stdout.strip() not in done.stderr
    assert gateway.client(done.stdout.strip()).get("/whoami").json()["name"] == "by-hand"


def test_mint_passes_everything_on(gateway):
    done = cli(gateway, "token", "mint", "full", "--ip-cidrs", "127.0.0.0/8,10.0.0.0/8",
               "--event-format", "simple", "--max-sessions", "3", "--max-runs=4", "--json",
               "--agents", "demo", "--models", "sonnet,h*", "--permission-mode-max", "ask",
               "--mcp", "http", "--mcp-url", "https://a.example/mcp", "--mcp-url",
               "https://b.example")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert set(answer) == {"name", "token", "ip_cidrs"}
    body = gateway.client(answer["token"]).get("/whoami").json()
    expected = {"ok": True, "kind": "app", "name": "full",
                "ip_cidrs": ["127.0.0.0/8", "10.0.0.0/8"], "event_format": "simple",
                "max_sessions": 3, "max_runs": 4, "agents": ["demo"], "models": ["sonnet", "h*"],
                "permission_mode_max": "ask", "mcp": "http",
                "mcp_urls": ["https://a.example/mcp", "https://b.example/"]}
    assert expected.items() <= body.items()


def test_list_shows_the_apps_for_people_and_for_programs(gateway):
    gateway.mint("one")
    gateway.mint("two", ip_cidrs=["127.0.0.0/8"])
    done = cli(gateway, "token", "list")
    assert done.returncode == 0, done.stderr
    assert "one" in done.stdout and "two" in done.stdout and "127.0.0.0/8" in done.stdout
    done = cli(gateway, "token", "list", "--json")
    assert json.loads(done.stdout) == gateway.admin.get("/admin/tokens").json()


def shown(gateway, *arguments):
    done = cli(gateway, "token", *arguments)
    assert done.returncode == 0, done.stderr
    return dict(line.split(None, 1) for line in done.stdout.splitlines())


def test_set_changes_what_is_said_and_show_prints_it(gateway):
    gateway.mint("app", max_runs=3)
    before = shown(gateway, "show", "app")
    assert (before["max_runs"], before["agents"], before["mcp"]) == ("3", "-", "-")
    after = shown(gateway, "set", "app", "--agents", "demo,claude", "--mcp", "any",
                  "--mcp-url", "https://a.example/", "--max-sessions", "4")
    assert after == before | {"agents": "demo,claude", "mcp": "any", "max_sessions": "4",
                              "mcp_urls": "https://a.example/"}
    assert shown(gateway, "show", "app") == after
    listed = cli(gateway, "token", "list").stdout.splitlines()
    assert "AGENTS" in listed[0] and "demo,claude" in listed[1] and listed[1].endswith("any")
    back = shown(gateway, "set", "app", "--reset", "agents,mcp", "--reset", "max_runs",
                 "--permission-mode-max", "deny_all")
    assert back == after | {"agents": "-", "mcp": "-", "max_runs": "-",
                            "permission_mode_max": "deny_all"}
    done = cli(gateway, "token", "show", "app", "--json")
    assert json.loads(done.stdout) == gateway.admin.get("/admin/tokens").json()["tokens"][0]


def test_help_says_what_mcp_any_means(gateway):
    for command in ("mint", "set"):
        text = " ".join(cli(gateway, "token", command, "--help").stdout.split())
        assert "any lets it run commands on this machine" in text


def test_rotate_prints_the_new_token_and_revoke_ends_it(gateway):
    old = gateway.mint("turning")["token"]
    done = cli(gateway, "token", "rotate", "turning")
    assert done.returncode == 0 and TOKEN.fullmatch(done.stdout), done.stderr
    new = done.stdout.strip()
    assert (gateway.whoami(old), gateway.whoami(new)) == (401, 200)
    assert cli(gateway, "token", "revoke", "turning").returncode == 0
    assert gateway.whoami(new) == 401


@pytest.mark.parametrize("arguments, word", [
    (["token", "mint", "taken"], "already"), (["token", "mint", "NO"], "name"),
    (["token", "set", "absent", "--mcp", "any"], None), (["token", "show", "absent"], None),
    (["token", "set", "taken", "--mcp", "all"], "mcp"),
    (["token", "rotate", "absent"], None), (["token", "revoke", "absent"], None),
    (["token", "mint", "x", "--ip-cidrs", "nonsense"], "ip_cidrs"),
    (["token", "revoke", "../../healthz"], None), (["token", "revoke", "a b?c#d"], None)])
def test_a_refusal_of_the_gateway_is_exit_4_with_its_reason(gateway, arguments, word):
    gateway.mint("taken")
    done = cli(gateway, *arguments)
    assert (done.returncode, done.stdout) == (4, ""), done.stderr
    assert done.stderr.strip()
    assert word is None or word in done.stderr


def test_a_wrong_admin_token_is_exit_4(gateway):
    done = cli(gateway, "token", "list", "--url", gateway.url,
               env={"CLAWDFORGE_ADMIN_TOKEN": "x" * 30})
    assert done.returncode == 4


def test_no_admin_token_is_exit_3(gateway, tmp_path):
    done = run_program("token", "list", "--url", gateway.url, "--data-dir", tmp_path / "empty",
                       home=tmp_path)
    assert (done.returncode, done.stdout) == (3, ""), done.stderr


def test_no_gateway_is_exit_1(gateway):
    token = gateway.admin_token
    gateway.stop()
    done = cli(gateway, "token", "list", env={"CLAWDFORGE_LISTEN": "127.0.0.1:1"})
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        done = cli(gateway, "token", "list", "--url",
                   f"http://127.0.0.1:{unused.getsockname()[1]}")
        assert done.returncode == 1, done.stderr
    assert token not in done.stderr


def test_a_server_error_is_exit_5(new_gateway):
    gateway = new_gateway(env={"CLAWDFORGE_MAX_CONNECTIONS": "1"})
    with socket.create_connection(("127.0.0.1", gateway.port)) as held:
        held.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert held.recv(4096).startswith(b"HTTP/1.1 200")
        done = cli(gateway, "token", "list", "--url", gateway.url)
        assert done.returncode == 5, done.stderr


def test_url_token_and_directory_may_come_from_the_environment(gateway, tmp_path):
    token = {"CLAWDFORGE_ADMIN_TOKEN": gateway.admin_token}
    place = {"CLAWDFORGE_DATA_DIR": str(gateway.data_dir)}
    for env in (place, place | {"CLAWDFORGE_URL": gateway.url},
                token | {"CLAWDFORGE_URL": gateway.url},
                token | {"CLAWDFORGE_URL": gateway.url + "/"}):
        done = run_program("token", "list", "--json", home=tmp_path, env=env)
        assert done.returncode == 0, (env.keys(), done.stderr)
        assert json.loads(done.stdout) == {"tokens": []}


def test_a_flag_beats_the_environment(gateway, tmp_path):
    done = run_program("token", "list", "--url", gateway.url, "--data-dir", gateway.data_dir,
                       home=tmp_path, env={"CLAWDFORGE_URL": "http://127.0.0.1:1",
                                           "CLAWDFORGE_DATA_DIR": "/nonexistent"})
    assert done.returncode == 0, done.stderr


def test_the_admin_token_is_never_an_argument_of_the_process(gateway):
    done = cli(gateway, "token", "list", "--admin-token", gateway.admin_token)
    assert (done.returncode, done.stdout) == (2, "")


def test_a_port_left_behind_by_a_killed_gateway_is_not_trusted(gateway):
    gateway.kill()
    assert (gateway.data_dir / "port").exists()
    done = run_program("token", "list", "--data-dir", gateway.data_dir, home=gateway.root)
    assert done.returncode == 1
    assert "no gateway runs" in done.stderr
    gateway.start()


def test_the_token_of_this_machine_is_not_sent_to_another(gateway):
    # 192.0.2.1 is for documentation only; it must be refused before anything is sent.
    done = run_program("token", "list", "--data-dir", gateway.data_dir,
                       "--url", "http://192.0.2.1:8800", home=gateway.root)
    assert done.returncode == 3
    assert "another" in done.stderr


def test_run_and_upload_print_what_a_script_needs(gateway):
    env = {"CLAWDFORGE_TOKEN": gateway.mint("scripts")["token"]}
    notes = gateway.root / 'a "quoted" name.TXT'
    notes.write_text("some notes")
    uploaded = cli(gateway, "upload", notes, "--ttl-secs", "600", env=env)
    assert re.fullmatch(r"ff_[A-Za-z0-9_-]{43}\n", uploaded.stdout), uploaded.stderr
    token = uploaded.stdout.strip()
    done = cli(gateway, "run", "--agent", "demo", "--file", token, "Hello", env=env)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("You said: Hello") and "attachment-1.txt" in done.stdout
    as_json = json.loads(cli(gateway, "run", "--json", "--agent", "demo", "Hello", env=env).stdout)
    assert as_json["result"] == "You said: Hello"
    piped = run_program("run", "--agent", "demo", "--data-dir", gateway.data_dir,
                        home=gateway.root, env=env, stdin="from a pipe")
    assert piped.stdout == "You said: from a pipe\n", piped.stderr


def test_run_with_a_key_is_done_once(gateway):
    env = {"CLAWDFORGE_TOKEN": gateway.mint("keyed")["token"]}

    def keyed(key, prompt):
        return cli(gateway, "run", "--agent", "demo", "--key", key, "--json", prompt, env=env)

    first = keyed("k-1", "Hello")
    assert first.returncode == 0 and json.loads(first.stdout)["ok"] is True, first.stderr
    assert keyed("k-1", "Hello").stdout == first.stdout
    assert keyed("k-1", "Bye").returncode == 4
    for key in ("a b", "a\r\nX: y", "x" * 256):
        refused = keyed(key, "Hello")
        assert refused.returncode == 2 and "--key" in refused.stderr


def test_run_and_upload_need_an_apps_token_and_say_what_is_wrong(gateway):
    env = {"CLAWDFORGE_TOKEN": gateway.mint("scripts")["token"]}
    for arguments, code in [(["run", "x"], 3), (["upload", gateway.stderr_file], 3)]:
        done = cli(gateway, *arguments)
        assert (done.returncode, done.stdout) == (code, "") and "CLAWDFORGE_TOKEN" in done.stderr
    assert cli(gateway, "run", "--agent", "absent", "x", env=env).returncode == 4
    assert cli(gateway, "run", "--file", "ff_no", "x", env=env).returncode == 4
    assert cli(gateway, "upload", gateway.root / "absent", env=env).returncode == 2
    assert cli(gateway, "run", "x", env={"CLAWDFORGE_TOKEN": "cf_wrong"}).returncode == 4
