#!/usr/bin/env python3
"""Receives clawdforge's webhooks: checks each signature and prints each event once.

    WEBHOOK_SECRET=whsec_... python3 webhook_receiver.py [port]

Python's standard library is all it needs. `verify` is the part to copy.
"""
import base64
import hashlib
import hmac
import http.server
import json
import os
import sys
import time

TOLERANCE_SECONDS = 300  # an older call may be one that somebody has recorded
BODY_BYTES_MAX = 1024 * 1024


class Refused(Exception):
    """This call does not come from the gateway, or not now."""


def verify(secret, headers, body, now=None):
    """The event in `body` (bytes), if the gateway that knows `secret` has signed it."""
    event_id = headers.get("webhook-id", "")
    timestamp = headers.get("webhook-timestamp", "")
    if not event_id or not timestamp.isascii() or not timestamp.isdigit():
        raise Refused("webhook-id or webhook-timestamp is missing")
    if abs((time.time() if now is None else now) - int(timestamp)) > TOLERANCE_SECONDS:
        raise Refused("the call is too old")
    key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    signed = event_id.encode() + b"." + timestamp.encode() + b"." + body
    expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest())
    # While a secret is being replaced there may be several signatures, with blanks in between.
    for signature in headers.get("webhook-signature", "").split():
        version, _, value = signature.partition(",")
        if version == "v1" and hmac.compare_digest(value.encode(), expected):
            return json.loads(body)
    raise Refused("the signature is wrong")


class Receiver(http.server.BaseHTTPRequestHandler):
    secret = ""
    seen = {}  # an event may come more than once: its id tells

    def do_POST(self):
        length = int(self.headers.get("Content-Length", 0))
        if length > BODY_BYTES_MAX:
            self.answer(413)
            return
        body = self.rfile.read(length)
        try:
            event = verify(self.secret, self.headers, body)
        except Refused as refused:
            print(f"refused: {refused}", file=sys.stderr, flush=True)
            self.answer(401)
            return
        event_id = self.headers["webhook-id"]
        if event_id not in self.seen:
            print(json.dumps({"id": event_id, **event}), flush=True)
            self.seen[event_id] = True
            if len(self.seen) > 10_000:
                self.seen.pop(next(iter(self.seen)))
        self.answer(204)  # anything but 2xx, and it comes again

    def answer(self, status):
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def main():
    Receiver.secret = os.environ.get("WEBHOOK_SECRET", "")
    if not Receiver.secret.startswith("whsec_"):
        sys.exit("Set WEBHOOK_SECRET to the secret that the gateway has shown.")
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 9000
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Receiver)
    print(f"listening on http://127.0.0.1:{server.server_address[1]}", file=sys.stderr, flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
