"""What every answer must look like."""
import json
import re

ERROR_KEYS = {"ok", "code", "detail", "request_id"}


def header_of(answer, name):
    """Works for an httpx response and for an answer off the wire."""
    return answer.header(name) if hasattr(answer, "header") else answer.headers.get(name)


def status_of(answer):
    return answer.status if hasattr(answer, "status") else answer.status_code


# Refusals that name what the app may have at once.
STANDING_LIMITS = {"too_many_runs", "too_many_sessions", "too_many_jobs", "uploads_full"}


def assert_error(answer, status, code):
    """An error of exactly the promised shape; gives its body."""
    raw = answer.body if hasattr(answer, "body") else answer.content
    assert status_of(answer) == status, raw
    assert header_of(answer, "Content-Type") == "application/json"
    body = json.loads(raw)
    keys = ERROR_KEYS | ({"errors"} if code == "validation_failed" else set())
    keys |= {"limit"} if code in STANDING_LIMITS else set()
    # An agent that was started, and failed, may have said why.
    optional = {"stderr"} if status in (502, 503, 504) else set()
    assert keys <= set(body) <= keys | optional
    assert body["ok"] is False
    assert body["code"] == code
    assert body["request_id"] == header_of(answer, "X-Request-Id")
    assert body["detail"] and "\n" not in body["detail"]
    assert not re.search(r"(^|\s)/\w", body["detail"]), "the caller is told no path"
    for error in body.get("errors", []):
        assert set(error) == {"field", "message"} and error["message"]
    return body
