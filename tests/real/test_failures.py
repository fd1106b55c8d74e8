"""How the real command line fails, and what callers of the gateway are told."""
import socket
import time

import pytest

from conftest import API_KEY
from model_api import scripted

KEYS = {"ok", "error", "stderr", "duration_ms", "stop_reason", "code", "detail", "request_id"}
LOGIN_HINT = "The agent claude is not logged in: run `clawdforge agent login claude` on the gateway's machine."


def failed(answer, status, code):
    assert answer.status_code == status, answer.text
    body = answer.json()
    assert set(body) == KEYS
    assert body["ok"] is False
    assert body["code"] == code, body
    assert body["stop_reason"] == "error"
    assert body["detail"] == body["error"]
    assert 0 < len(body["error"]) <= 500
    assert API_KEY not in answer.text
    return body


@pytest.mark.parametrize("api_status,status,code,words", [
    (400, 502, "api_error", "API Error: 400"),
    (401, 503, "agent_not_logged_in", LOGIN_HINT),
    (403, 503, "agent_not_logged_in", LOGIN_HINT),
    (404, 422, "unknown_model", "There's an issue with the selected model"),
    (413, 413, "prompt_too_long", "Request too large"),
    (429, 429, "account_limit", "Request rejected (429)"),
    (500, 502, "api_error", "API Error: 500"),
    (529, 502, "api_overloaded", "529 Overloaded"),
])
def test_an_error_of_the_api(house, api_status, status, code, words):
    begun = time.monotonic()
    answer = house.run(scripted("hello", {"status": api_status}))
    body = failed(answer, status, code)
    assert words in body["error"]
    # The command line's own default is three minutes of retries.
    assert time.monotonic() - begun < 60
    assert 1 <= house.api.calls() <= 6
    assert ("Retry-After" in answer.headers) == (status in (429, 503))


@pytest.mark.parametrize("claim,seconds,words", [
    ("five_hour", 7200, "5-hour limit"), ("seven_day", 300_000, "weekly limit")])
def test_the_end_of_an_accounts_limit(new_house, claim, seconds, words):
    house = new_house(ANTHROPIC_API_KEY=None, CLAUDE_CODE_OAUTH_TOKEN="sk-ant-oat01-not-real",
                      TZ="Europe/Berlin")
    headers = {"anthropic-ratelimit-unified-status": "rejected",
               "anthropic-ratelimit-unified-reset": str(int(time.time()) + seconds),
               "anthropic-ratelimit-unified-representative-claim": claim}
    answer = house.run(scripted("hello", {"status": 429, "headers": headers}))
    body = failed(answer, 429, "account_limit")
    assert words in body["error"]
    # The sentence has minutes, and for a week perhaps only hours.
    assert abs(int(answer.headers["Retry-After"]) - seconds) <= 3700


@pytest.mark.parametrize("trouble", [{"status": 401}, {"status": 429}])
def test_the_door_closes(house, trouble):
    first = house.run(scripted("hello", trouble))
    calls = house.api.calls()
    second = house.run("hello")
    assert second.status_code == first.status_code in (429, 503)
    assert second.json()["error"] == first.json()["error"]
    assert int(second.headers["Retry-After"]) > 0
    assert house.api.calls() == calls  # the model was not asked


def test_not_logged_in(new_house):
    house = new_house(ANTHROPIC_API_KEY=None)
    answer = house.run("hello")
    body = failed(answer, 503, "agent_not_logged_in")
    assert body["error"] == LOGIN_HINT
    assert house.api.calls() == 0


def test_no_api_at_all(new_house):
    with socket.socket() as taken:  # bound but not listening: refuses, and stays ours
        taken.bind(("127.0.0.1", 0))
        house = new_house(ANTHROPIC_BASE_URL=f"http://127.0.0.1:{taken.getsockname()[1]}")
        body = failed(house.run("hello"), 502, "api_unreachable")
    assert "Connection" in body["error"]


@pytest.mark.parametrize("size", [5_000_000, 11_000_000])
def test_a_prompt_that_is_too_long(house, size):
    body = failed(house.run("a" * size), 413, "prompt_too_long")
    assert body["error"] in ("Prompt is too long", "claude exit 1")
    assert house.api.calls() == 0


def test_a_prompt_that_the_model_finds_too_long(house):
    trouble = {"status": 400, "message": "prompt is too long: 250000 tokens > 200000 maximum"}
    body = failed(house.run(scripted("hello", trouble)), 413, "prompt_too_long")
    assert body["error"].startswith("Prompt is too long")


def test_an_account_without_credit(house):
    trouble = {"status": 400, "message": "Your credit balance is too low to access the API."}
    body = failed(house.run(scripted("hello", trouble)), 429, "account_limit")
    assert body["error"] == "Credit balance is too low"


def test_a_model_name_cannot_pretend_to_be_another_failure(house):
    """The sentence repeats the name; the door must stay open for others."""
    answer = house.run(scripted("hello", {"status": 404}), model="Not/logged/in")
    body = failed(answer, 422, "unknown_model")
    assert "Not/logged/in" in body["error"]
    assert house.run("hello").status_code == 200


def test_a_short_trouble_is_overcome(house):
    answer = house.run(scripted("hello", {"status": 529, "times": 1, "text": "in the end"}))
    assert answer.status_code == 200, answer.text
    assert answer.json()["result"] == "in the end"
    assert house.api.calls() == 2


def test_a_key_in_an_error_is_masked(house):
    trouble = {"status": 400, "message": f"the key {API_KEY} is odd"}
    body = failed(house.run(scripted("hello", trouble)), 502, "api_error")
    assert "the key *** is odd" in body["error"]
