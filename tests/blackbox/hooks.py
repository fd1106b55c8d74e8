"""Receivers of webhooks on loopback, which behave and misbehave as a test likes."""
import base64
import contextlib
import hashlib
import hmac
import json
import socketserver
import ssl
import threading

NO_CONTENT = b"HTTP/1.1 204 No Content\r\n\r\n"


def status(code, more=b""):
    return b"HTTP/1.1 %d Said\r\nContent-Length: 0\r\n%s\r\n" % (code, more)


class Call:
    """One request as it came."""

    def __init__(self, path, headers, body):
        self.path = path
        self.headers = headers
        self.body = body
        self.event = json.loads(body)

    @property
    def id(self):
        return self.headers["webhook-id"]


def is_signed_by(secret, call):
    """By the description of Standard Webhooks: the secret is base64 after its prefix; signed are id,
    timestamp and body with dots between them; the header has a version, a comma and base64."""
    prefix, _, key = secret.partition("_")
    assert prefix == "whsec"
    content = b".".join([call.headers["webhook-id"].encode(),
                         call.headers["webhook-timestamp"].encode(), call.body])
    mac = hmac.new(base64.b64decode(key), content, hashlib.sha256).digest()
    return call.headers["webhook-signature"] == "v1," + base64.b64encode(mac).decode()


class Receiver:
    """`behave(call)` gives the bytes of an answer, None to close without one, or a generator of
    bytes. All that come are in `calls`."""

    def __init__(self, behave=lambda call: NO_CONTENT, tls=None):
        self.calls = []
        self.behave = behave
        self.let_go = threading.Event()  # ends what hangs
        receiver = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self):
                with contextlib.suppress(OSError):
                    receiver.serve(self.rfile, self.wfile)

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True
            request_queue_size = 64

            def get_request(self):
                connection, address = super().get_request()
                if tls is not None:
                    connection = tls.wrap_socket(connection, server_side=True,
                                                 do_handshake_on_connect=False)
                return connection, address

            def handle_error(self, *_):
                pass

        self.server = Server(("127.0.0.1", 0), Handler)
        scheme = "http" if tls is None else "https"
        self.url = f"{scheme}://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05},
                         daemon=True).start()

    def serve(self, source, target):
        line = source.readline().decode()
        headers = {}
        while (field := source.readline().decode().strip()):
            name, _, value = field.partition(":")
            headers[name.lower()] = value.strip()
        method, path, _ = line.split()
        assert method == "POST"
        call = Call(path, headers, source.read(int(headers["content-length"])))
        self.calls.append(call)
        answer = self.behave(call)
        if answer is None:
            return
        for piece in [answer] if isinstance(answer, bytes) else answer:
            target.write(piece)
            target.flush()

    def hang(self, call):
        self.let_go.wait()

    def ids(self):
        return [call.id for call in self.calls]

    def close(self):
        self.let_go.set()
        self.server.shutdown()
        self.server.server_close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def tls_context(place):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(place / "cert.pem", place / "key.pem")
    return context
