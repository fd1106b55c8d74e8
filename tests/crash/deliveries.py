"""A receiver of webhooks that fails now and then, and remembers what it has taken."""
import http.server
import json
import threading

FAILS_EVERY = 3


class Receiver:
    def __init__(self):
        self.lock = threading.Lock()
        self.taken = {}  # by the event's id, the question's
        self.calls = 0
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                is_taken = receiver.take(self.headers["webhook-id"], json.loads(body))
                self.send_response(204 if is_taken else 503)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass  # the gateway was killed

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def take(self, event_id, event):
        with self.lock:
            self.calls += 1
            if self.calls % FAILS_EVERY == 0:
                return False
            self.taken[event_id] = event["data"]["permission"]["id"]
            return True

    def questions(self):
        with self.lock:
            return set(self.taken.values())

    def close(self):
        self.server.shutdown()
        self.server.server_close()
