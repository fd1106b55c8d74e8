"""Where the commands talk to: --url, the environment, profiles, cf.env, this machine's gateway."""
import json
import os
import stat

import pytest

from gateway import Gateway, run_program
from test_tls import certificate, settings  # noqa: F401


@pytest.fixture
def home(tmp_path):
    place = tmp_path / "person"
    place.mkdir()
    return place


def login(home, gateway, token, *arguments):
    return run_program("login", gateway.url, *arguments, home=home, stdin=token + "\n")


def test_login_tries_the_token_and_stores_it(gateway, home):
    token = gateway.mint("mine")["token"]
    done = login(home, gateway, token)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert "the app mine" in done.stderr and token not in done.stderr
    stored = home / ".config/clawdforge/cf.env"
    assert stat.S_IMODE(stored.stat().st_mode) == 0o600
    assert stored.read_text() == f"CLAWDFORGE_URL={gateway.url}\nCLAWDFORGE_TOKEN={token}\n"
    assert run_program("run", "--agent", "demo", "Hi", home=home).stdout == "You said: Hi\n"
    who = run_program("whoami", home=home).stdout
    assert "mine" in who and gateway.url in who and str(stored) in who
    assert json.loads(run_program("whoami", "--json", home=home).stdout)["name"] == "mine"


def test_a_wrong_token_is_not_stored(gateway, home):
    done = login(home, gateway, "cf_wrong")
    assert (done.returncode, done.stdout) == (4, "")
    assert not (home / ".config").exists()
    assert login(home, gateway, "").returncode == 2
    assert run_program("login", "nonsense", home=home, stdin="x\n").returncode == 2
    assert run_program("login", "http://127.0.0.1:1", home=home, stdin="x\n").returncode == 1


def test_an_admin_token_is_stored_beside_the_apps(gateway, home):
    assert login(home, gateway, gateway.mint("both")["token"]).returncode == 0
    assert "the admin" in login(home, gateway, gateway.admin_token).stderr
    assert run_program("token", "list", home=home).returncode == 0
    assert "You said" in run_program("run", "--agent", "demo", "Hi", home=home).stdout


def test_profiles_stand_beside_each_other(new_gateway, home):
    one, two = new_gateway(), new_gateway()
    assert login(home, one, one.mint("a")["token"]).returncode == 0
    assert login(home, two, two.mint("b")["token"], "--profile", "work").returncode == 0
    name = lambda *arguments, env=None: json.loads(
        run_program("whoami", "--json", *arguments, home=home, env=env).stdout)["name"]
    assert name() == "a"
    assert name("--profile", "work") == "b"
    assert name(env={"CLAWDFORGE_PROFILE": "work"}) == "b"
    # Its own token, not one of the environment, which may be another gateway's.
    assert name("--profile", "work", env={"CLAWDFORGE_TOKEN": "cf_other"}) == "b"
    missing = run_program("whoami", "--profile", "absent", home=home)
    assert missing.returncode == 2 and "login" in missing.stderr
    assert run_program("whoami", "--profile", "../work", home=home).returncode == 2
    assert run_program("logout", "--profile", "work", home=home).returncode == 0
    assert run_program("whoami", "--profile", "work", home=home).returncode == 2
    assert run_program("logout", home=home).returncode == 0
    assert not (home / ".config/clawdforge/cf.env").exists()
    assert run_program("logout", home=home).returncode == 0


def write_env(home, text, mode=0o600):
    place = home / ".config/clawdforge"
    place.mkdir(parents=True, exist_ok=True)
    (place / "cf.env").write_text(text)
    (place / "cf.env").chmod(mode)
    return place / "cf.env"


def test_a_file_of_the_original_is_read(gateway, home):
    token = gateway.mint("old")["token"]
    write_env(home, f"# mine\nexport CLAWDFORGE_URL='{gateway.url}/'\n\nCLAWDFORGE_TOKEN=\"{token}\"\n",
              0o400)
    assert run_program("run", "--agent", "demo", "Hi", home=home).stdout == "You said: Hi\n"


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o660, 0o700])
def test_a_file_that_others_may_read_is_refused(gateway, home, mode):
    token = gateway.mint("open")["token"]
    write_env(home, f"CLAWDFORGE_URL={gateway.url}\nCLAWDFORGE_TOKEN={token}\n", mode)
    done = run_program("run", "--agent", "demo", "Hi", home=home)
    assert (done.returncode, done.stdout) == (2, "") and "chmod 600" in done.stderr
    assert token not in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_user_is_refused(gateway, home):
    path = write_env(home, f"CLAWDFORGE_URL={gateway.url}\n")
    os.chown(path, 12345, 12345)
    done = run_program("health", home=home)
    assert done.returncode == 2 and "another user" in done.stderr


def test_a_stored_token_is_not_sent_to_another_gateway(new_gateway, home):
    one, two = new_gateway(), new_gateway()
    assert login(home, one, one.mint("a")["token"]).returncode == 0
    done = run_program("run", "--agent", "demo", "Hi", "--url", two.url, home=home)
    assert (done.returncode, done.stdout) == (3, "") and "CLAWDFORGE_TOKEN" in done.stderr
    assert not any(line["path"] == "/run" for line in two.requests_logged())


def test_the_order_of_places(new_gateway, home):
    one, two = new_gateway(), new_gateway()
    assert login(home, one, one.mint("a")["token"]).returncode == 0
    port = lambda *arguments, env=None: run_program("whoami", *arguments, home=home, env=env).stdout
    token = {"CLAWDFORGE_TOKEN": two.mint("b")["token"]}
    assert two.url in port(env=token | {"CLAWDFORGE_URL": two.url})
    assert two.url in port("--url", two.url, env=token | {"CLAWDFORGE_URL": one.url})
    assert two.url in port("--data-dir", two.data_dir, env=token)
    assert one.url in port()


def test_no_gateway_names_the_data_directory(tmp_path):
    done = run_program("health", "--data-dir", tmp_path / "nothing", home=tmp_path)
    assert done.returncode == 1 and str(tmp_path / "nothing") in done.stderr
    assert "serve" in done.stderr


def test_a_gateway_with_tls_in_its_file_is_found(tmp_path, certificate):  # noqa: F811
    config = tmp_path / "gateway.toml"
    config.write_text("".join(f'{name[11:].lower()} = "{value}"\n'
                              for name, value in settings(certificate).items()))
    gateway = Gateway(tmp_path / "secure", flags=["--config", str(config)])
    gateway.start()
    try:
        assert gateway.scheme == "https"
        for arguments in (["token", "mint", "found"], ["health"]):
            done = run_program(*arguments, "--data-dir", gateway.data_dir, home=tmp_path)
            assert done.returncode == 0, done.stderr
        # And over TLS itself, by the certificate that the gateway has written down.
        (gateway.data_dir / "admin.sock").unlink()
        done = run_program("token", "list", "--data-dir", gateway.data_dir, home=tmp_path)
        assert done.returncode == 0 and "found" in done.stdout, done.stderr
        # From elsewhere the certificate is named at the login.
        url = gateway.url
        token = run_program("token", "rotate", "found", "--data-dir", gateway.data_dir,
                            home=tmp_path).stdout
        assert run_program("login", url, home=tmp_path, stdin=token).returncode == 1
        done = run_program("login", url, "--ca", certificate / "cert.pem", home=tmp_path, stdin=token)
        assert done.returncode == 0, done.stderr
        assert run_program("whoami", home=tmp_path).returncode == 0
    finally:
        assert gateway.stop() == 0
    assert not (gateway.data_dir / "address").exists()
