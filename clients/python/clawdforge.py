"""A client of the clawdforge gateway: one module, Python 3.9 or newer, standard library only.

    import clawdforge

    forge = clawdforge.Client("http://127.0.0.1:8800", "cf_...")
    print(forge.run("Hello", agent="demo")["result"])
    with forge.create_session(agent="demo") as session:
        for event in session.stream("Tell me a story"):
            print(event.text, end="", flush=True)

Without arguments `Client()` takes CLAWDFORGE_URL and CLAWDFORGE_TOKEN of the environment. A client holds no
connection and no lock: threads may share it. The types below have the names and the fields of the schemas in the
gateway's API description (/openapi.json); a test compares them.
"""
from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import json
import os
import socket
import ssl
import time
import urllib.parse
import uuid
from typing import (IO, Any, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Tuple, Type, TypedDict,
                    Union)

__all__ = ["Client", "Session", "Event", "Error", "ConnectionFailed", "ApiError", "InvalidRequest", "Unauthorized",
           "NotAllowed", "NotFound", "Conflict", "Gone", "TooMany", "Unavailable", "AgentFailed", "TurnFailed",
           "WebhookRefused", "new_key", "verify_webhook"]

CONNECT_SECS_MAX = 10.0
ANSWER_SECS_MAX = 3700.0  # a run may take an hour
STREAM_SILENCE_SECS_MAX = 45.0  # the gateway writes at least a comment every 15 seconds
RETRY_SECS_MAX = 30.0  # a longer Retry-After is the caller's to wait for
PIECE_BYTES = 64 * 1024
WEBHOOK_AGE_SECS_MAX = 300.0  # an older call may be one that was recorded

Json = Dict[str, Any]


# What the gateway answers

class Usage(TypedDict):
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int


class Denial(TypedDict):
    tool: str
    input: str


class _RunAnswer(TypedDict):
    ok: bool
    result: Any
    duration_ms: int
    stop_reason: Optional[str]


class RunResult(_RunAnswer, total=False):
    run_id: str
    cost_usd: Optional[float]
    usage: Optional[Usage]
    denials: List[Denial]
    model: Optional[str]


class _RunRow(TypedDict):
    run_id: str
    app_name: str
    agent: str
    model: Optional[str]
    state: str
    started_at: int
    ended_at: Optional[int]
    prompt_bytes: int
    result_bytes: Optional[int]
    duration_ms: Optional[int]
    outcome: Optional[str]
    error: Optional[str]
    stop_reason: Optional[str]
    exit_code: Optional[int]
    exit_signal: Optional[int]
    cost_usd: Optional[float]
    usage: Optional[Usage]
    prompt: Optional[str]


class RunRecord(_RunRow, total=False):
    prompt_truncated: bool
    instance_id: Optional[str]


class Cancelled(TypedDict):
    ok: bool
    cancelled: bool


class SessionState(TypedDict):
    session_id: str
    agent: str
    model: Optional[str]
    app_name: str
    created_at: int
    last_turn_at: Optional[int]
    closed_at: Optional[int]
    close_reason: Optional[str]
    turn_count: int
    live: bool
    busy: bool
    meta: Json
    usage: Usage
    cost_usd: Optional[float]
    last_event_id: int
    title: Optional[str]
    permission_mode: str
    effort: Optional[str]
    turns_waiting: int
    questions_open: int
    turn_started_at: Optional[int]
    context: Optional[Dict[str, int]]
    agent_version: Optional[str]
    delete_at: Optional[int]


class _Turn(TypedDict):
    turn_index: int
    state: str
    code: Optional[str]
    error: Optional[str]
    stop_reason: Optional[str]
    started_at: int
    ended_at: Optional[int]
    duration_ms: Optional[int]
    usage: Optional[Usage]
    cost_usd: Optional[float]
    first_event_id: Optional[int]
    last_event_id: Optional[int]
    prompt: Optional[str]
    files: List[str]


class Turn(_Turn, total=False):
    prompt_truncated: bool


class _TurnAnswer(TypedDict):
    ok: bool
    session_id: str
    turn_index: int
    events: List[Json]
    text: str
    stop_reason: Optional[str]
    duration_ms: int
    usage: Optional[Usage]
    cost_usd: Optional[float]


class TurnResult(_TurnAnswer, total=False):
    result: Json
    text_truncated: bool
    events_truncated: bool
    resumed: bool


class Permission(TypedDict):
    id: str
    turn_index: int
    title: str
    kind: str
    options: List[Json]
    asked_at: int
    expires_at: Optional[int]


class AskedPermission(Permission):
    session_id: str
    app_name: str
    session_title: Optional[str]
    agent: str
    tool: Optional[Json]
    truncated: bool


class SessionChanges(TypedDict):
    files: List[Json]
    added: int
    removed: int


class SessionFile(TypedDict):
    path: str
    size: int
    modified_at: int


class UploadedFile(TypedDict):
    file_token: str
    ttl_secs: int
    size: int


class Job(TypedDict):
    job_id: str
    kind: str
    state: str
    created_at: int
    run_at: Optional[int]
    started_at: Optional[int]
    ended_at: Optional[int]
    attempts: int
    max_attempts: int
    session_id: Optional[str]
    turn_index: Optional[int]
    status: Optional[int]
    meta: Json


class ShownJob(Job):
    answer: Optional[Json]


class CancelledJob(TypedDict, total=False):
    ok: bool
    state: str
    already_ended: bool


class Health(TypedDict):
    ok: bool
    version: str
    claude_present: bool
    claude_version: str
    acpx_present: bool
    acpx_version: str
    claude_login: Dict[str, Any]
    open_sessions: int
    jail: str
    limits: str


class Event(NamedTuple):
    """Of a stream. `id` is None where the event cannot be come back to (`gap`, `state`)."""
    id: Optional[int]
    event: str
    data: Any

    @property
    def text(self) -> str:
        """What the agent says with it; empty for everything else."""
        update = self.data.get("params", {}).get("update", {}) if isinstance(self.data, dict) else {}
        if self.event != "update" or update.get("sessionUpdate") != "agent_message_chunk":
            return ""
        return update.get("content", {}).get("text", "")


# What can go wrong

class Error(Exception):
    """All that this module raises by itself."""


class ConnectionFailed(Error):
    """The gateway was not reached, or the connection broke. What was asked may have been done."""


class WebhookRefused(Error):
    """This call was not signed by the gateway, or not now."""


class ApiError(Error):
    """The gateway's refusal. Match on `code`; `retry_after` are seconds, where waiting helps."""

    def __init__(self, status: int, body: Json, retry_after: Optional[float] = None):
        self.status = status
        self.body = body
        self.code = str(body.get("code", ""))
        self.detail = str(body.get("detail", ""))
        self.request_id = str(body.get("request_id", ""))
        self.retry_after = retry_after
        super().__init__(f"{self.code or status}: {self.detail}")


class InvalidRequest(ApiError):
    """400, 413, 415, 422 and the like: the request has to be another one. `body["errors"]` may name fields."""


class Unauthorized(ApiError):
    """401: the token is not known."""


class NotAllowed(ApiError):
    """403: this token, or this address, may not do that."""


class NotFound(ApiError):
    """404: it is not there, or another app's."""


class Conflict(ApiError):
    """409: not in this state."""


class Gone(ApiError):
    """410: the session is closed, or the run was cancelled."""


class TooMany(ApiError):
    """429: a limit, a rate or a budget."""


class Unavailable(ApiError):
    """503: not now."""


class AgentFailed(ApiError):
    """502 and 504: the agent did not answer, or not in time."""


class TurnFailed(ApiError):
    """The turn of a stream has failed. `status` is 0, since a stream has its status before it begins."""


_BY_STATUS: Dict[int, Type[ApiError]] = {
    401: Unauthorized, 403: NotAllowed, 404: NotFound, 409: Conflict, 410: Gone, 429: TooMany, 502: AgentFailed,
    503: Unavailable, 504: AgentFailed}


def _error_of(status: int, text: bytes, retry_after: Optional[str]) -> ApiError:
    try:
        body = json.loads(text)
    except ValueError:
        body = None
    if not isinstance(body, dict):  # not the gateway's: a proxy's page
        body = {"detail": text[:200].decode("utf-8", "replace")}
    kind = _BY_STATUS.get(status, InvalidRequest if status < 500 else ApiError)
    seconds = float(retry_after) if retry_after and retry_after.isdigit() else None
    return kind(status, body, seconds)


def new_key() -> str:
    """An idempotency key that was never used."""
    return str(uuid.uuid4())


def verify_webhook(secret: str, headers: Mapping[str, str], body: bytes, now: Optional[float] = None) -> Json:
    """The event in `body`, if the gateway that knows `secret` (whsec_...) has signed it; else WebhookRefused.

    A webhook may come more than once: `webhook-id` of the headers tells.
    """
    given = {name.lower(): value for name, value in headers.items()}
    event_id, timestamp = given.get("webhook-id", ""), given.get("webhook-timestamp", "")
    if not event_id or not timestamp.isascii() or not timestamp.isdigit():
        raise WebhookRefused("webhook-id or webhook-timestamp is missing")
    if abs((time.time() if now is None else now) - int(timestamp)) > WEBHOOK_AGE_SECS_MAX:
        raise WebhookRefused("the call is too old")
    key = base64.b64decode(secret[len("whsec_"):] if secret.startswith("whsec_") else secret, validate=True)
    signed = event_id.encode() + b"." + timestamp.encode() + b"." + body
    expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest())
    # While a secret is being replaced there may be several signatures, with blanks in between.
    for signature in given.get("webhook-signature", "").split():
        version, _, value = signature.partition(",")
        if version == "v1" and hmac.compare_digest(value.encode(), expected):
            return json.loads(body)
    raise WebhookRefused("the signature is wrong")


def _present(**fields: Any) -> Json:
    return {name: value for name, value in fields.items() if value is not None}


def _segments(path: str) -> str:
    return "/".join(urllib.parse.quote(part, safe="") for part in path.split("/"))


class _Answer:
    """An answer whose body is still to be read."""

    def __init__(self, connection: http.client.HTTPConnection, response: http.client.HTTPResponse):
        self.connection = connection
        self.response = response
        self.status = response.status

    def read(self) -> bytes:
        try:
            return self.response.read()
        except (OSError, http.client.HTTPException) as lost:
            raise ConnectionFailed(f"the answer broke off: {lost}") from lost
        finally:
            self.close()

    def close(self) -> None:
        self.connection.close()

    def pieces(self) -> Iterator[bytes]:
        """What arrives, as it arrives."""
        try:
            while True:
                piece = self.response.read1(PIECE_BYTES)
                if not piece:
                    return
                yield piece
        except (OSError, http.client.HTTPException, ValueError) as lost:
            raise ConnectionFailed(f"the stream broke off: {lost}") from lost
        finally:
            self.close()


def _write_out(answer: _Answer, to: IO[bytes]) -> int:
    if answer.status != 200:
        raise _error_of(answer.status, answer.read(), answer.response.getheader("Retry-After"))
    return sum(to.write(piece) for piece in answer.pieces())


def _events(answer: _Answer) -> Iterator[Event]:
    """Server-sent events. Only whole ones count: what is cut off comes again."""
    rest = b""
    name, data, event_id = "message", [], None  # type: Tuple[str, List[str], Optional[int]]
    for piece in answer.pieces():
        *lines, rest = (rest + piece).split(b"\n")
        for raw in lines:
            line = raw.rstrip(b"\r").decode("utf-8", "replace")
            if not line:
                if data:
                    yield Event(event_id, name, json.loads("\n".join(data)))
                name, data, event_id = "message", [], None
                continue
            field, _, value = line.partition(":")
            value = value[1:] if value.startswith(" ") else value
            if field == "event":
                name = value
            elif field == "data":
                data.append(value)
            elif field == "id" and value.isdigit():
                event_id = int(value)


class Client:
    """Calls one gateway with one app's token."""

    def __init__(self, url: Optional[str] = None, token: Optional[str] = None, *, retries: int = 2,
                 timeout: float = ANSWER_SECS_MAX, context: Optional[ssl.SSLContext] = None):
        """`retries`: how often a request that is safe to repeat (GET, or with an idempotency key) is repeated after
        a lost connection, 429 or 503, and how often a stream comes back without having got anything. `context` is
        for https with a certificate of your own."""
        address = urllib.parse.urlsplit(url or os.environ.get("CLAWDFORGE_URL", "http://127.0.0.1:8800"))
        if address.scheme not in ("http", "https") or not address.hostname:
            raise ValueError("the address of the gateway must be http://HOST:PORT or https://HOST:PORT")
        self._is_tls = address.scheme == "https"
        self._host = address.hostname
        self._port = address.port or (443 if self._is_tls else 80)
        self._base = address.path.rstrip("/")  # where a proxy has it below a path
        self._token = token or os.environ.get("CLAWDFORGE_TOKEN", "")
        self._retries = retries
        self._timeout = timeout
        self._context = context

    # The gateway and the app

    def health(self) -> Health:
        return self._json("GET", "/healthz")

    def is_ready(self) -> bool:
        try:
            return bool(self._json("GET", "/readyz", retries=0)["ok"])
        except (Unavailable, ConnectionFailed):
            return False

    def whoami(self) -> Json:
        return self._json("GET", "/whoami")

    def agents(self) -> List[Json]:
        return self._json("GET", "/agents")["agents"]

    def open_permissions(self) -> List[AskedPermission]:
        """The questions that are open in all sessions of the app."""
        return self._json("GET", "/permissions")["permissions"]

    def workspaces(self) -> List[Json]:
        """The owner's directories that the app may use."""
        return self._json("GET", "/workspaces")["workspaces"]

    def usage(self, *, start: Optional[int] = None, end: Optional[int] = None, by: Iterable[str] = (),
              step: Optional[int] = None) -> Json:
        """What the app's asks have used: rows, or with `step` series."""
        return self._json("GET", "/usage", query={"from": start, "to": end, "by": ",".join(by) or None, "step": step})

    # Runs

    def run(self, prompt: str, *, agent: Optional[str] = None, model: Optional[str] = None,
            system: Optional[str] = None, system_mode: Optional[str] = None, effort: Optional[str] = None,
            permission_mode: Optional[str] = None, files: Optional[List[str]] = None,
            timeout_secs: Optional[int] = None, include: Optional[List[str]] = None, wait: Optional[bool] = None,
            schema: Optional[Json] = None, tools: Union[str, List[str], None] = None, max_turns: Optional[int] = None,
            extra: Optional[Json] = None, idempotency_key: Optional[str] = None) -> RunResult:
        """One prompt, one answer. `schema`: a JSON Schema that the result meets. `extra`: fields that this module does
        not know yet."""
        body = _present(prompt=prompt, agent=agent, model=model, system=system, system_mode=system_mode,
                        effort=effort, permission_mode=permission_mode, files=files, timeout_secs=timeout_secs,
                        include=include, wait=wait, schema=schema, tools=tools, max_turns=max_turns)
        return self._json("POST", "/run", body={**body, **(extra or {})}, key=idempotency_key,
                          timeout=timeout_secs and timeout_secs + 30.0)

    def runs(self, *, since: Optional[int] = None, until: Optional[int] = None) -> Iterator[RunRecord]:
        """The app's runs, newest first; pages are fetched as they are needed."""
        return self._pages("GET", "/runs", "runs", {"since": since, "until": until})

    def get_run(self, run_id: str) -> RunRecord:
        return self._json("GET", "/runs/{id}", id=run_id)

    def cancel_run(self, run_id: str) -> bool:
        """False: it had ended before."""
        answer: Cancelled = self._json("POST", "/runs/{id}/cancel", id=run_id)
        return answer["cancelled"]

    # Jobs

    def submit_job(self, *, run: Optional[Json] = None, turn: Optional[Json] = None, webhook: Optional[str] = None,
                   run_at: Optional[int] = None, attempts: Optional[int] = None, meta: Optional[Json] = None,
                   idempotency_key: Optional[str] = None) -> str:
        """Hands over the body of a run, or of a turn with its `session_id`; gives the job's id."""
        body = _present(run=run, turn=turn, webhook=webhook, run_at=run_at, attempts=attempts, meta=meta)
        return self._json("POST", "/jobs", body=body, key=idempotency_key)["job_id"]

    def jobs(self, *, state: Optional[str] = None) -> Iterator[Job]:
        """The app's jobs, newest first."""
        return self._pages("GET", "/jobs", "jobs", {"state": state})

    def get_job(self, job_id: str, *, wait_secs: int = 0) -> ShownJob:
        """As it is when it has ended, or after `wait_secs` (at most 60)."""
        headers = {"Prefer": f"wait={wait_secs}"} if wait_secs else {}
        return self._json("GET", "/jobs/{id}", id=job_id, headers=headers, timeout=wait_secs + 30.0)

    def wait_for_job(self, job_id: str, *, timeout: float = ANSWER_SECS_MAX) -> ShownJob:
        """The ended job; TimeoutError after `timeout` seconds."""
        end = time.monotonic() + timeout
        while True:
            left = end - time.monotonic()
            job = self.get_job(job_id, wait_secs=max(1, min(60, int(left))))
            if job["state"] not in ("queued", "running"):
                return job
            if left <= 0:
                raise TimeoutError(f"the job {job_id} is {job['state']}")

    def cancel_job(self, job_id: str) -> bool:
        """False: it had ended before."""
        answer: CancelledJob = self._json("DELETE", "/jobs/{id}", id=job_id)
        return not answer.get("already_ended", False)

    def job_events(self, job_id: str, *, last_id: Optional[int] = None) -> Iterator[Event]:
        """The job's `state` at each change, and the events of a turn, until the job has ended."""
        def is_last(event: Event) -> bool:
            return event.event == "state" and event.data["state"] not in ("queued", "running")
        return self._follow("GET", "/jobs/{id}/events", {"id": job_id}, last_id, is_last)

    # Files

    def upload(self, file: Union[str, "os.PathLike[str]", bytes, IO[bytes]], *, name: Optional[str] = None,
               ttl_secs: Optional[int] = None, idempotency_key: Optional[str] = None) -> UploadedFile:
        """Brings a file (a path, bytes, or an open file); its `file_token` goes into `files` of a run or turn."""
        if isinstance(file, (str, os.PathLike)):
            with open(file, "rb") as opened:
                return self.upload(opened, name=name or os.path.basename(file), ttl_secs=ttl_secs,
                                   idempotency_key=idempotency_key)
        boundary = uuid.uuid4().hex
        shown = (name or "file").replace("\\", "_").replace('"', "_").replace("\r", "_").replace("\n", "_")
        head = (f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{shown}"\r\n'
                "Content-Type: application/octet-stream\r\n\r\n").encode()
        tail = f"\r\n--{boundary}--\r\n".encode()

        def form() -> Iterator[bytes]:
            yield head
            if isinstance(file, bytes):
                yield file
            else:
                while piece := file.read(PIECE_BYTES):
                    yield piece
            yield tail
        # A file that was read once cannot be sent again.
        can_repeat = isinstance(file, bytes)
        return self._json("POST", "/files", query={"ttl_secs": ttl_secs}, stream=form, key=idempotency_key,
                          headers={"Content-Type": f"multipart/form-data; boundary={boundary}"},
                          retries=None if can_repeat else 0)

    # Sessions

    def create_session(self, *, agent: Optional[str] = None, model: Optional[str] = None,
                       system: Optional[str] = None, system_mode: Optional[str] = None,
                       effort: Optional[str] = None,
                       permission_mode: Optional[str] = None, mcp_servers: Optional[List[Any]] = None,
                       meta: Optional[Json] = None, webhook: Optional[str] = None,
                       webhook_events: Optional[List[str]] = None, extra: Optional[Json] = None,
                       idempotency_key: Optional[str] = None) -> "Session":
        body = _present(agent=agent, model=model, system=system, system_mode=system_mode, effort=effort,
                        permission_mode=permission_mode, mcp_servers=mcp_servers, meta=meta, webhook=webhook, webhook_events=webhook_events)
        made = self._json("POST", "/sessions", body={**body, **(extra or {})}, key=idempotency_key)
        return Session(self, made["session_id"], 0)

    def session(self, session_id: str) -> "Session":
        """A session that was made before."""
        state: SessionState = self._json("GET", "/sessions/{id}", id=session_id)
        return Session(self, session_id, state["turn_count"])

    def sessions(self, *, include_closed: bool = False) -> Iterator[SessionState]:
        """The app's sessions, newest first."""
        return self._pages("GET", "/sessions", "sessions", {"include_closed": "true" if include_closed else None})

    # How it is asked

    def _target(self, route: str, query: Mapping[str, Any], parts: Mapping[str, str]) -> str:
        for name, value in parts.items():
            route = route.replace("{" + name + "}", _segments(value) if name == "path" else
                                urllib.parse.quote(value, safe=""))
        text = urllib.parse.urlencode({name: value for name, value in query.items() if value is not None})
        return self._base + route + ("?" + text if text else "")

    def _open(self, method: str, route: str, *, query: Mapping[str, Any] = {}, body: Optional[Json] = None,
              stream: Any = None, headers: Mapping[str, str] = {}, key: Optional[str] = None,
              timeout: Optional[float] = None, **parts: str) -> _Answer:
        """Sends one request and gives its answer, whatever its status."""
        if self._is_tls:
            connection: http.client.HTTPConnection = http.client.HTTPSConnection(
                self._host, self._port, timeout=CONNECT_SECS_MAX, context=self._context)
        else:
            connection = http.client.HTTPConnection(self._host, self._port, timeout=CONNECT_SECS_MAX)
        sent = {"Authorization": f"Bearer {self._token}", "Accept": "application/json", **headers}
        if not self._token:
            del sent["Authorization"]
        if key is not None:
            sent["Idempotency-Key"] = key
        content: Any = None
        if body is not None:
            content = json.dumps(body).encode()
            sent["Content-Type"] = "application/json"
        elif stream is not None:
            content = stream()
        try:
            connection.connect()
            connection.sock.settimeout(timeout or self._timeout)
            connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            try:
                connection.request(method, self._target(route, query, parts), content, sent,
                                   encode_chunked=stream is not None)
            except (BrokenPipeError, ConnectionResetError):
                pass  # refused in the middle of its body: the answer says why
            response = connection.getresponse()
            # Python takes a head that breaks off for a whole one; of a whole one the length of the body is known.
            if response.length is None and not response.chunked:
                raise http.client.HTTPException("the head of the answer broke off")
            return _Answer(connection, response)
        except (OSError, http.client.HTTPException) as lost:
            connection.close()
            raise ConnectionFailed(f"the gateway does not answer: {lost}") from lost

    def _json(self, method: str, route: str, *, retries: Optional[int] = None, key: Optional[str] = None,
              **options: Any) -> Any:
        """The JSON of a success; raises ApiError. Repeats what is safe to repeat."""
        left = self._retries if retries is None else retries
        if method != "GET" and key is None:
            left = 0
        while True:
            try:
                answer = self._open(method, route, key=key, **options)
                text = answer.read()
                if answer.status < 300:
                    return json.loads(text)
                error = _error_of(answer.status, text, answer.response.getheader("Retry-After"))
                pause = error.retry_after if answer.status in (429, 503) else None
                if left <= 0 or pause is None or pause > RETRY_SECS_MAX:
                    raise error
            except ConnectionFailed:
                if left <= 0:
                    raise
                pause = 0.5
            left -= 1
            time.sleep(pause)

    def _pages(self, method: str, route: str, name: str, query: Json) -> Iterator[Any]:
        cursor: Optional[str] = None
        while True:
            page = self._json(method, route, query={**query, "cursor": cursor})
            yield from page[name]
            cursor = page["next_cursor"]
            if cursor is None:
                return

    def _stream(self, method: str, route: str, *, last_id: Optional[int] = None, **options: Any) -> Iterator[Event]:
        """The events of one connection."""
        headers = {"Accept": "text/event-stream"}
        if last_id is not None:
            headers["Last-Event-ID"] = str(last_id)
        answer = self._open(method, route, headers=headers, timeout=STREAM_SILENCE_SECS_MAX, **options)
        if answer.status == 204:  # the session is closed, and all of it was told
            answer.read()
            return iter(())
        if answer.status != 200:
            raise _error_of(answer.status, answer.read(), answer.response.getheader("Retry-After"))
        return _events(answer)

    def _follow(self, method: str, route: str, parts: Mapping[str, str], last_id: Optional[int],
                is_last: Any) -> Iterator[Event]:
        """Events after `last_id`, over as many connections as it takes, up to one that `is_last`, or until the
        gateway ends the stream because there will be nothing more."""
        tries = 0
        while True:
            has_more = False
            try:
                for event in self._stream(method, route, last_id=last_id, **parts):
                    if event.event in ("lagged", "shutdown"):
                        has_more = True
                        continue
                    if event.id is not None:
                        last_id = event.id
                    tries = 0
                    yield event
                    if is_last(event):
                        return
                if not has_more:
                    return
            except ConnectionFailed:
                if tries >= self._retries:
                    raise
            except Unavailable:
                if tries >= self._retries:
                    raise
            tries += 1
            time.sleep(min(0.5 * 2 ** tries, RETRY_SECS_MAX))


class Session:
    """A conversation. Use it with `with`, which closes it, or call `close()`.

    Threads may share it, but two that call `stream()` at the same time could each get the other's events after a lost
    connection."""

    def __init__(self, client: Client, session_id: str, turn_count: int):
        self.id = session_id
        self._client = client
        self._turns = turn_count  # given so far, as far as we know
        self._last = (0, 0)  # the id of the last closing event that we saw, and its turn

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def state(self) -> SessionState:
        return self._client._json("GET", "/sessions/{id}", id=self.id)

    def close(self) -> bool:
        """False: it was closed before."""
        return not self._client._json("DELETE", "/sessions/{id}", id=self.id).get("already_closed", False)

    def turn(self, prompt: str, *, files: Optional[List[str]] = None, timeout_secs: Optional[int] = None,
             event_format: Optional[str] = None, schema: Optional[Json] = None, wait: Optional[bool] = None,
             extra: Optional[Json] = None, idempotency_key: Optional[str] = None) -> TurnResult:
        """One prompt, and its whole answer. With a schema the answer has `result`."""
        body = _present(prompt=prompt, files=files, timeout_secs=timeout_secs, event_format=event_format,
                        schema=schema, wait=wait)
        done: TurnResult = self._client._json(
            "POST", "/sessions/{id}/turn", id=self.id, body={**body, **(extra or {})}, key=idempotency_key,
            timeout=timeout_secs and timeout_secs + 30.0)
        self._turns = max(self._turns, done["turn_index"])
        return done

    def stream(self, prompt: str, *, files: Optional[List[str]] = None, timeout_secs: Optional[int] = None,
               schema: Optional[Json] = None, wait: Optional[bool] = None,
               extra: Optional[Json] = None) -> Iterator[Event]:
        """The same as it happens, up to the event `done`; TurnFailed if the turn fails. A lost connection, and a
        restart of the gateway, are healed: no event is missed, and none comes twice."""
        body = {**_present(prompt=prompt, files=files, timeout_secs=timeout_secs, schema=schema, wait=wait, stream=True),
                **(extra or {})}
        before, last_id = self._turns, 0
        ours: Optional[Iterator[Event]] = None
        for attempt in range(self._client._retries + 1):
            try:
                ours = self._client._stream("POST", "/sessions/{id}/turn", id=self.id, body=body)
                for event in ours:
                    last_id = event.id or last_id
                    yield self._seen(event)
                    if event.event == "done":
                        return
                break  # it ended without a closing event
            except ConnectionFailed:
                # Was it accepted? The count of turns tells, for a caller that is alone in its session.
                if ours is not None or self.state()["turn_count"] > before:
                    break
                if attempt == self._client._retries:
                    raise
        for event in self._rest_of_turn(before, last_id):
            yield self._seen(event)

    def _rest_of_turn(self, before: int, last_id: int) -> Iterator[Event]:
        # Turns of a session run one after another. If we have no event of ours yet, those of turns that we did
        # not read come first: up to the closing event of the turn before.
        is_ours = last_id > 0 or self._last[1] >= before

        def is_last(event: Event) -> bool:
            return event.event in ("done", "failed") and event.data["turn_index"] > before
        for event in self._client._follow("GET", "/sessions/{id}/events", {"id": self.id},
                                          last_id or self._last[0], is_last):
            if is_ours or is_last(event):
                yield event
            elif event.event in ("done", "failed"):
                is_ours = event.data["turn_index"] >= before

    def _seen(self, event: Event) -> Event:
        if event.event in ("done", "failed"):
            self._last = (event.id or 0, event.data["turn_index"])
            self._turns = max(self._turns, event.data["turn_index"])
            if event.event == "failed":
                raise TurnFailed(0, event.data)
        return event

    def events(self, *, after: int = 0) -> Iterator[Event]:
        """All that was told in the session after the event `after`, and what comes, until it is closed."""
        return self._client._follow("GET", "/sessions/{id}/events", {"id": self.id}, after, lambda event: False)

    def past_events(self, *, after: int = 0) -> Iterator[Json]:
        """What was told so far, each with its `turn_index`."""
        while True:
            page = self._client._json("GET", "/sessions/{id}/events", id=self.id, query={"after": after})
            if not page["events"]:
                return
            yield from page["events"]
            after = page["next_after"]

    def turns(self, *, after: int = 0) -> Iterator[Turn]:
        """The session's turns after the one of index `after`: how each ended, and what it was asked."""
        next_after: Optional[int] = after
        while next_after is not None:
            page = self._client._json("GET", "/sessions/{id}/turns", id=self.id, query={"after": next_after})
            yield from page["turns"]
            next_after = page["next_after"]

    def cancel(self) -> bool:
        """Ends the turn that runs; False: none ran."""
        answer: Cancelled = self._client._json("POST", "/sessions/{id}/cancel", id=self.id)
        return answer["cancelled"]

    def permissions(self) -> List[Permission]:
        """What the agent asks and is not decided yet."""
        return self._client._json("GET", "/sessions/{id}/permissions", id=self.id)["permissions"]

    def answer_permission(self, permission_id: str, *, decision: Optional[str] = None,
                          option_id: Optional[str] = None) -> None:
        """`decision` is `allow` or `deny`; or one of the question's options."""
        self._client._json("POST", "/sessions/{id}/permissions/{permission}", id=self.id, permission=permission_id,
                           body=_present(decision=decision, option_id=option_id))

    def files(self) -> List[SessionFile]:
        return self._client._json("GET", "/sessions/{id}/files", id=self.id)["files"]

    def download(self, path: str, to: IO[bytes]) -> int:
        """Writes a file of the session into `to`; gives its size."""
        return _write_out(self._client._open("GET", "/sessions/{id}/files/{path}", id=self.id, path=path,
                                             headers={"Accept": "*/*"}), to)

    def put_file(self, path: str, content: bytes) -> bool:
        """Puts a file into the session's directory; True: one of that name was replaced."""
        return self._client._json("PUT", "/sessions/{id}/files/{path}", id=self.id, path=path,
                                  stream=lambda: iter([content]),
                                  headers={"Content-Type": "application/octet-stream"})["replaced"]

    def changes(self) -> SessionChanges:
        """Which files have changed since the session began, and by how many lines."""
        return self._client._json("GET", "/sessions/{id}/diff", id=self.id, query={"stat": "1"})

    def diff(self, to: IO[bytes]) -> int:
        """Writes what has changed into `to`, as a unified diff; gives its size."""
        return _write_out(self._client._open("GET", "/sessions/{id}/diff", id=self.id,
                                             headers={"Accept": "*/*"}), to)

    def archive(self, to: IO[bytes]) -> int:
        """Writes the session's directory into `to`, as a tar; gives its size."""
        return _write_out(self._client._open("GET", "/sessions/{id}/archive", id=self.id,
                                             headers={"Accept": "*/*"}), to)

    def commit(self, message: str) -> str:
        """Commits what is in the session's worktree on its branch; gives the commit's id."""
        return self._client._json("POST", "/sessions/{id}/commit", id=self.id, body={"message": message})["commit"]
