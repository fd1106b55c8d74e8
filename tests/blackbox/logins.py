"""A stand-in for the endpoint at which logins are renewed, and for the API that takes their tokens.

A refresh token is good for one use. Used a second time, it ends the login for good, as the real
endpoint does. An access token is good until a moment after the next one was handed out.
"""
import http.server
import itertools
import json
import os
import threading
import time

OLD_TOKEN_SECONDS = 2.0  # for the new one to be saved and read


class TokenService:
    def __init__(self, lifetimes=(), default_lifetime=8 * 3600):
        """`lifetimes`: seconds that the next tokens are good for, as they say."""
        self.lock = threading.Lock()
        self.numbers = itertools.count(1)
        self.lifetimes = list(lifetimes)
        self.default_lifetime = default_lifetime
        self.delay = lambda: 0  # seconds between the exchange and its answer
        self.status = 200       # another one: nothing is exchanged
        self.is_revoked = False
        self.is_refusing = False  # the API: every token, until the next exchange
        self.refreshes = 0
        self.reuses = 0
        self.refused = 0
        self.accepted = 0
        self.access = self.refresh = None
        self.old = {}  # access tokens, and until when they are good
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self.handler())
        self.server.daemon_threads = True
        self.address = f"127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def next_tokens(self):
        number = next(self.numbers)
        if self.access:
            self.old[self.access] = time.monotonic() + OLD_TOKEN_SECONDS + 30
        self.access, self.refresh = f"access-{number}", f"refresh-{number}"

    def exchange(self, token):
        """Status and body."""
        with self.lock:
            if self.status != 200:
                return self.status, {"error": "server_error"}
            if self.is_revoked or token != self.refresh:
                self.reuses += 1
                self.is_revoked = True
                return 400, {"error": "invalid_grant"}
            former = self.access
            self.next_tokens()
            self.refreshes += 1
            self.is_refusing = False
            lifetime = self.lifetimes.pop(0) if self.lifetimes else self.default_lifetime
            answer = {"access_token": self.access, "refresh_token": self.refresh,
                      "expires_in": lifetime}
        time.sleep(self.delay())
        with self.lock:
            self.old[former] = time.monotonic() + OLD_TOKEN_SECONDS
        return 200, answer

    def check(self, token):
        with self.lock:
            is_good = not self.is_revoked and not self.is_refusing and (
                token == self.access or time.monotonic() < self.old.get(token, 0))
            self.accepted += is_good
            self.refused += not is_good
        return (200 if is_good else 401), {}

    def handler(service):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                self.answer(*service.exchange(body["refresh_token"]))

            def do_GET(self):
                self.answer(*service.check(self.headers["Authorization"].removeprefix("Bearer ")))

            def answer(self, status, body):
                text = json.dumps(body).encode()
                try:
                    self.send_response(status)
                    self.send_header("Content-Length", str(len(text)))
                    self.end_headers()
                    self.wfile.write(text)
                except OSError:
                    pass  # it was killed

            def log_message(self, *_):
                pass
        return Handler

    # The login

    def log_in(self, directory, seconds=8 * 3600, owner=None, is_revoked=False, **more):
        """Puts a new login into a directory, as `claude auth login` does."""
        with self.lock:
            self.next_tokens()
            self.is_revoked = is_revoked
            content = {"claudeAiOauth": {
                "accessToken": self.access, "refreshToken": self.refresh,
                "expiresAt": int((time.time() + seconds) * 1000), "scopes": ["user:inference"],
                **more}, "standIn": self.address}
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        unfinished = directory / ".credentials.json.new"
        unfinished.write_text(json.dumps(content))
        unfinished.chmod(0o600)
        if owner is not None:
            os.chown(unfinished, owner, -1)
            os.chown(directory, owner, -1)
        unfinished.rename(directory / ".credentials.json")
        return self


def tokens_in(directory):
    return json.loads((directory / ".credentials.json").read_text())["claudeAiOauth"]
