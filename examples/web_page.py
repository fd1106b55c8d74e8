#!/usr/bin/env python3
"""A web page that asks an agent and shows its answer as it comes.

  web_page.py [--agent NAME] [--port PORT]

The page talks to this program alone, which holds the token: a token in a page is known to all its readers. Made for
your own machine: it listens on loopback, and asks nothing of who calls.
"""
import argparse
import http.server
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "clients/python"))
import clawdforge  # noqa: E402

PROMPT_BYTES_MAX = 64 * 1024
PAGE = b"""<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Ask</title>
<form id="form"><textarea id="prompt" rows="4" cols="60" required></textarea><br><button>Ask</button></form>
<pre id="answer"></pre>
<script>
form.onsubmit = async (event) => {
  event.preventDefault()
  answer.textContent = ''
  const reply = await fetch('/ask', { method: 'POST', body: prompt.value, headers: { 'X-Ask': '1' } })
  const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader()
  for (let piece; !(piece = await reader.read()).done;) answer.textContent += piece.value
}
</script></html>
"""


class Page(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    forge = None
    agent = ""

    def do_GET(self):
        if self.path != "/":
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(PAGE)))
        self.end_headers()
        self.wfile.write(PAGE)

    def do_POST(self):
        length = int(self.headers.get("Content-Length", 0))
        # Other pages in the same browser cannot send this header without being asked first.
        if self.path != "/ask" or "X-Ask" not in self.headers or not 0 < length <= PROMPT_BYTES_MAX:
            self.send_error(400)
            self.close_connection = True
            return
        prompt = self.rfile.read(length).decode("utf-8", "replace")
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            with self.forge.create_session(agent=self.agent) as session:
                for event in session.stream(prompt):
                    self.piece(event.text)
        except clawdforge.Error as error:
            self.piece(f"\n({error})")
        self.wfile.write(b"0\r\n\r\n")

    def piece(self, text):
        if text:
            data = text.encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def log_message(self, *_):
        pass


def main():
    parser = argparse.ArgumentParser(description="Serves a page that asks an agent.")
    parser.add_argument("--agent", default="claude")
    parser.add_argument("--port", type=int, default=8000)
    arguments = parser.parse_args()
    Page.forge, Page.agent = clawdforge.Client(), arguments.agent
    server = http.server.ThreadingHTTPServer(("127.0.0.1", arguments.port), Page)
    print(f"the page is at http://127.0.0.1:{server.server_address[1]}/", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass


main()
