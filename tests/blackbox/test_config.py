"""Where settings come from, what wins, and what stops the start."""
import os
import json
import re
import tomllib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway import refused_start, run_program

KEYS = """listen data_dir ledger admin_token allow_cidrs trusted_proxies allow_hosts
metrics_without_token tls_cert tls_key claude_bin
claude_owner_settings acpx_bin default_model event_format default_timeout_secs max_timeout_secs max_runs max_runs_per_app
max_queued_runs max_live_sessions max_sessions_per_app max_agents warm agent_memory_max session_sleep_secs session_ttl_secs
session_hard_ttl_secs sweep_interval_secs max_body_bytes max_file_bytes max_upload_bytes_per_app
min_free_disk_bytes max_connections
max_connections_per_app max_event_streams_per_app
cancel_grace_ms kill_grace_ms pid_namespace drain_grace_secs permission_timeout_secs permission_mode
journal_max_age_secs journal_max_bytes_per_session audit_max_age_secs webhook_timeout_secs
webhook_max_pause_secs webhook_give_up_secs delivery_ttl_secs reader_buffer_bytes log_level
log_format idempotency_secs max_keys_per_app max_key_bytes_per_app""".split()
SOURCES = ("flag", "environment", "file", "default")


def config(home, *flags, env=None):
    done = run_program("config", *flags, home=home, env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout


def lines_of(text, key):
    """A key without a value is shown as a comment, so that the text stays valid TOML."""
    return [line for line in text.splitlines() if re.match(rf"(# )?{key} *=", line)]


def shown(text, key):
    """The line of `key`, and the source of its value."""
    line, = lines_of(text, key)
    source, = [name for name in SOURCES if line.rsplit("# ", 1)[1].startswith(name)]
    return line, source


def test_every_key_of_the_contract_is_shown_once_with_its_source(tmp_path):
    text = config(tmp_path)
    for key in KEYS:
        assert len(lines_of(text, key)) == 1, key
        assert shown(text, key)[1] == "default"


def test_as_json_it_says_the_same(tmp_path):
    text = config(tmp_path)
    keys = {key["key"]: key for key in json.loads(config(tmp_path, "--json"))["keys"]}
    for key in KEYS:
        assert keys[key]["value"] in shown(text, key)[0] and keys[key]["source"] == "default"


def test_what_is_shown_is_a_file_that_says_the_same(tmp_path):
    text = config(tmp_path)
    assert tomllib.loads(text)["max_live_sessions"] == 16
    file = tmp_path / "settings.toml"
    file.write_text(text)
    again = config(tmp_path, "--config", file)
    assert tomllib.loads(again) == tomllib.loads(text)
    assert shown(again, "max_live_sessions")[1] == "file"


@pytest.mark.parametrize("key, value", [
    ("listen", "127.0.0.1:8800"), ("default_model", "sonnet"), ("event_format", "acp"),
    ("default_timeout_secs", "120"), ("max_timeout_secs", "3600"), ("max_queued_runs", "64"),
    ("max_runs", str(2 * len(os.sched_getaffinity(0)))), ("max_live_sessions", "16"),
    ("max_agents", "16"), ("session_sleep_secs", "600"), ("warm", "auto"), ("session_ttl_secs", "3600"), ("session_hard_ttl_secs", "86400"),
    ("sweep_interval_secs", "60"), ("max_body_bytes", str(16 << 20)),
    ("max_file_bytes", str(100 << 20)), ("max_connections", "10000"), ("cancel_grace_ms", "2000"),
    ("kill_grace_ms", "2000"), ("pid_namespace", "auto"), ("claude_owner_settings", "off"),
    ("drain_grace_secs", "30"), ("permission_timeout_secs", "120"),
    ("permission_mode", "approve_reads"), ("journal_max_age_secs", "86400"),
    ("journal_max_bytes_per_session", str(256 << 20)), ("reader_buffer_bytes", str(1 << 20)),
    ("webhook_timeout_secs", "10"), ("webhook_max_pause_secs", "3600"),
    ("webhook_give_up_secs", "86400"), ("delivery_ttl_secs", "259200"),
    ("log_level", "info"), ("log_format", "json"), ("idempotency_secs", "86400"),
    ("max_keys_per_app", "100000"), ("max_key_bytes_per_app", str(256 << 20))])
def test_the_defaults_are_the_promised_ones(tmp_path, key, value):
    assert re.search(rf"(?<![\w.]){re.escape(value)}(?!\w)", shown(config(tmp_path), key)[0])


def test_the_ledger_and_the_data_directory_follow_home(tmp_path):
    text = config(tmp_path)
    assert f"{tmp_path}/.local/state/clawdforge" in shown(text, "data_dir")[0]
    assert f"sqlite:{tmp_path}/.local/state/clawdforge/clawdforge.db" in shown(text, "ledger")[0]
    text = config(tmp_path, env={"XDG_STATE_HOME": str(tmp_path / "x")})
    assert f"{tmp_path}/x/clawdforge" in shown(text, "data_dir")[0]


def test_a_flag_beats_the_environment_which_beats_the_file(tmp_path):
    file = tmp_path / "settings.toml"
    file.write_text("max_runs = 11\nmax_agents = 12\nmax_live_sessions = 13\n")
    env = {"CLAWDFORGE_CONFIG": str(file), "CLAWDFORGE_MAX_RUNS": "21",
           "CLAWDFORGE_MAX_AGENTS": "22"}
    text = config(tmp_path, "--max-runs", "31", env=env)
    for key, value, source in (("max_runs", "31", "flag"), ("max_agents", "22", "environment"),
                               ("max_live_sessions", "13", "file"),
                               ("max_queued_runs", "64", "default")):
        line, found = shown(text, key)
        assert found == source and re.search(rf"\b{value}\b", line), line


def test_the_file_may_be_named_by_a_flag_and_a_flag_may_have_an_equals_sign(tmp_path):
    file = tmp_path / "settings.toml"
    file.write_text('default_model = "opus"\n[agents.other]\ncommand = ["other-agent"]\n')
    text = config(tmp_path, f"--config={file}", "--max-runs=5")
    assert "opus" in shown(text, "default_model")[0]
    assert shown(text, "max_runs")[1] == "flag"
    assert "other" in text


def test_secrets_are_masked(tmp_path):
    secret = "a-very-secret-admin-token"
    env = {"CLAWDFORGE_ADMIN_TOKEN": secret,
           "CLAWDFORGE_LEDGER": "postgresql://user:pass-word@db.test/x"}
    done = run_program("config", home=tmp_path, env=env)
    assert secret not in done.stdout + done.stderr
    assert "pass-word" not in done.stdout + done.stderr
    if done.returncode == 0:
        assert shown(done.stdout, "admin_token")[1] == "environment"


def test_config_makes_nothing(tmp_path):
    config(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_variable_warns(tmp_path):
    done = run_program("config", home=tmp_path, env={"CLAWDFORGE_MAX_RUNZ": "3"})
    assert done.returncode == 0
    assert "CLAWDFORGE_MAX_RUNZ" in done.stderr


BAD_VALUES = [
    ("listen", "nonsense"), ("listen", "127.0.0.1"), ("listen", "127.0.0.1:65536"),
    ("listen", "127.0.0.1:-1"), ("listen", "[::1:0"), ("max_runs", "0"), ("max_runs", "-1"),
    ("max_runs", "abc"), ("max_runs", "1.5"), ("max_runs", " 3"), ("max_runs", "3x"),
    ("max_runs", "99999999999999999999"), ("max_body_bytes", "0"), ("max_connections", "0"),
    ("default_timeout_secs", "0"), ("default_timeout_secs", "3601"), ("log_level", "loud"),
    ("log_format", "xml"), ("event_format", "xml"), ("permission_mode", "maybe"),
    ("allow_cidrs", "10.0.0.0/33"), ("allow_cidrs", "nonsense"), ("trusted_proxies", "10.0.0.1/8"),
    ("ledger", "mysql://x"), ("ledger", "nonsense"), ("sweep_interval_secs", "0")]


@pytest.mark.parametrize("key, value", BAD_VALUES)
def test_a_bad_value_stops_the_start_with_one_sentence_from_every_source(tmp_path, key, value):
    flag, variable = "--" + key.replace("_", "-"), "CLAWDFORGE_" + key.upper()
    listen = value if key == "listen" else "127.0.0.1:0"
    if key != "listen":
        code, sentence = refused_start(tmp_path, f"{flag}={value}", listen=listen)
        assert code == 2
        assert key in sentence.replace("-", "_").lower(), sentence
    else:
        assert refused_start(tmp_path, listen=listen)[0] == 2
    done = run_program("config", home=tmp_path, env={variable: value})
    assert (done.returncode, done.stdout) == (2, "")
    assert key in done.stderr.lower() and len(done.stderr.strip().splitlines()) == 1, done.stderr


@pytest.mark.parametrize("text", [
    "colour = 1\n", "max_runs = \n", "max_runs = 'x'\n", "max_runs = 1\nmax_runs = 2\n",
    "[agents]\nx = 1\n", "[agents.x]\nprotocol = 'smoke'\n", "[agents.x]\ncolour = 1\n",
    "[agents.x]\ncommand = 'x'\n",
    "[nonsense]\n", "admin_token = 'a-token-of-enough-length'\n", "\x00", "a" * 100000, "[[[[",
    "listen = 8800\n", "max_runs = 1.5\n", "max_runs = true\n"])
def test_a_bad_file_stops_the_start_with_one_sentence(tmp_path, text):
    file = tmp_path / "settings.toml"
    file.write_text(text)
    code, sentence = refused_start(tmp_path, "--config", file)
    assert code == 2
    assert len(sentence) < 1000
    assert "a-token-of-enough-length" not in sentence


@pytest.mark.parametrize("flags", [
    ["--colour", "red"], ["--max-runs"], ["stray"], ["--max_runs", "3"],
    ["--config", "/nonexistent"], ["--admin-token", "a-token-of-enough-length"], ["-x"]])
def test_a_bad_flag_is_exit_2(tmp_path, flags):
    code, sentence = refused_start(tmp_path, *flags)
    assert code == 2
    assert "a-token-of-enough-length" not in sentence


@pytest.mark.parametrize("token", ["short", "x" * 19, "with spaces in the token", "x" * 30 + "\n"])
def test_a_bad_admin_token_is_exit_2_and_not_shown(tmp_path, token):
    code, sentence = refused_start(tmp_path, env={"CLAWDFORGE_ADMIN_TOKEN": token})
    assert code == 2
    assert token.strip() not in sentence


@settings(max_examples=25, deadline=None, database=None,
          suppress_health_check=list(HealthCheck))
@given(st.sampled_from(KEYS), st.text(st.characters(blacklist_characters="\x00",
                                                    blacklist_categories=["Cs"]), max_size=40))
def test_no_value_of_any_key_crashes_it(tmp_path, key, value):
    done = run_program("config", home=tmp_path, env={"CLAWDFORGE_" + key.upper(): value})
    assert done.returncode in (0, 2), done.stderr
    if done.returncode == 2:
        assert len(done.stderr.strip("\n").split("\n")) == 1
