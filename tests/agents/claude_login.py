"""How the stand-ins for Claude's command line deal with a login, as 2.1.325 was seen to.

The login is `.credentials.json` in CLAUDE_SECURESTORAGE_CONFIG_DIR, else in CLAUDE_CONFIG_DIR, else
in ~/.claude. A token with fewer than 300 seconds left is renewed before a request, by one process at
a time: the lock is a directory. Where the directory is read-only no lock can be made, and then the
endpoint is not called. A login that has a key "standIn" names the address of the endpoint and of the API;
without it no request is made.
"""
import os
import time

import lean
from lean import signal

KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
RENEW_BEFORE = 300
STALE_SECONDS = 60
LOCK_TRIES = 5
EXPIRED = ("Failed to authenticate: OAuth session expired and could not be refreshed")
BUSY = ("Failed to refresh OAuth token: another Claude Code process is refreshing it or exited "
        "mid-refresh")
REFUSED = "Failed to authenticate. API Error: 401 authentication_error"


class Lost(Exception):
    pass


def storage_dir():
    return (os.environ.get("CLAUDE_SECURESTORAGE_CONFIG_DIR") or os.environ.get("CLAUDE_CONFIG_DIR")
            or os.path.join(os.environ.get("HOME", "/"), ".claude"))


class Login:
    def __init__(self):
        self.dir = storage_dir()
        self.path = os.path.join(self.dir, ".credentials.json")
        self.content = {}
        self.read()

    def read(self):
        try:
            with open(self.path, encoding="utf-8") as file:
                self.content = lean.loads(file.read())
        except (OSError, ValueError):
            self.content = {}
        self.tokens = self.content.get("claudeAiOauth") or {}
        return self

    def has_tokens(self):
        return bool(self.tokens.get("accessToken"))

    def is_due(self):
        return self.has_tokens() and time.time() + RENEW_BEFORE >= self.tokens["expiresAt"] / 1000

    def save(self):
        unfinished = f"{self.path}.{os.getpid()}.tmp"
        with open(unfinished, "w", encoding="utf-8") as file:
            file.write(lean.dumps(self.content))
        os.replace(unfinished, self.path)
        os.chmod(self.path, 0o600)

    def ask(self, method, path, body=None, token=""):
        """Status and JSON of an answer; status 0: there was none."""
        import socket
        host, port = self.content["standIn"].split(":")
        text = lean.dumps(body).encode() if body is not None else b""
        head = (f"{method} {path} HTTP/1.0\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n"
                f"Content-Length: {len(text)}\r\n\r\n")
        try:
            with socket.create_connection((host, int(port)), timeout=30) as connection:
                connection.sendall(head.encode() + text)
                answer = b""
                while piece := connection.recv(65536):
                    answer += piece
        except OSError:
            return 0, {}
        head, _, rest = answer.partition(b"\r\n\r\n")
        return int(head.split()[1]), lean.loads(rest.decode()) if rest else {}

    # Renewing

    def renew(self, is_forced=False):
        """True: the tokens are others than before."""
        if "standIn" not in self.content or not (self.is_due() or is_forced and self.has_tokens()):
            return False
        before = self.tokens["accessToken"]
        lock = os.path.join(self.dir, ".oauth_refresh.lock")
        if not self.take(lock, before):
            return self.tokens.get("accessToken") != before
        asked_to_end = []
        former = signal.signal(signal.SIGTERM, lambda number, frame: asked_to_end.append(number))
        try:
            self.read()
            if self.tokens.get("accessToken") == before:
                self.exchange()
        finally:
            try:
                os.rmdir(lock)
            except OSError:
                pass
            signal.signal(signal.SIGTERM, former)
        if asked_to_end:
            os._exit(143)
        return self.tokens.get("accessToken") != before

    def take(self, lock, before):
        """False: it cannot be taken here, or is not needed any more."""
        for _ in range(LOCK_TRIES):
            try:
                os.mkdir(lock, 0o700)
                return True
            except FileExistsError:
                pass
            except OSError:
                return False
            try:
                if time.time() - os.stat(lock).st_mtime > STALE_SECONDS:
                    os.rmdir(lock)
                    continue
            except OSError:
                continue
            time.sleep(1)
            if self.read().tokens.get("accessToken") != before:
                return False
        raise Lost(BUSY)

    def exchange(self):
        status, answer = self.ask("POST", "/token", {"refresh_token": self.tokens["refreshToken"]})
        if status == 200:
            self.tokens.update(accessToken=answer["access_token"],
                               refreshToken=answer["refresh_token"],
                               expiresAt=int((time.time() + answer["expires_in"]) * 1000))
            self.save()
        elif status == 400:
            self.tokens.update(accessToken="", refreshToken="", expiresAt=0)
            self.save()
            raise Lost(EXPIRED)


def status():
    """What `auth status --json` prints, and its exit code."""
    if any(os.environ.get(key) for key in KEYS):
        return {"loggedIn": True, "authMethod": "api_key"}, 0
    login = Login()
    try:
        login.renew()
    except Lost:
        pass
    is_in = login.read().has_tokens()
    return {"loggedIn": is_in}, 0 if is_in else 1


def forced():
    """What `-p /usage` does: a request, and a renewal if it is refused."""
    login = Login()
    if not login.renew():
        login.renew(is_forced=True)


def use():
    """A request to the API with the login. Why it failed; nothing: it went well, or there is no login
    of a stand-in."""
    login = Login()
    if any(os.environ.get(key) for key in KEYS) or "standIn" not in login.content:
        return ""
    try:
        login.renew()
        for _ in range(3):
            if not login.has_tokens():
                return "Not logged in · Please run /login"
            answered, _ = login.ask("GET", "/check", token=login.tokens["accessToken"])
            if answered == 200:
                return ""
            before = login.tokens["accessToken"]
            if login.read().tokens.get("accessToken") == before and not login.renew(is_forced=True):
                time.sleep(0.5)
                login.read()
    except Lost as lost:
        return str(lost)
    return REFUSED
