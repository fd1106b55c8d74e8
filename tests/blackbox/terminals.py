"""Drives the program through a real terminal: a tmux server of its own for each terminal, whose
screen is read as text. Tests wait for what a screen shows."""
import os
import pathlib
import re
import shlex
import subprocess
import tempfile
import time

from gateway import PROGRAM, SANITIZER_OPTIONS, wait_until

SCREENS = pathlib.Path(__file__).resolve().parent / "screens"
SESSION_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


class Terminal:
    def __init__(self, home, *arguments, env=None, columns=80, rows=24):
        self.place = tempfile.TemporaryDirectory(prefix="tmux-")
        self.socket = f"{self.place.name}/socket"
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(home), "TERM": "screen-256color"}
        environment |= {k: os.environ[k] for k in SANITIZER_OPTIONS if k in os.environ}
        # The leak sanitizer traces the program at its end, and hangs for ever where a SIGHUP of the
        # closed terminal waits. The program itself has ended by then: all its files are closed.
        environment["ASAN_OPTIONS"] = environment.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
        environment |= env or {}
        pairs = [f"{name}={value}" for name, value in environment.items()]
        command = shlex.join(["env", "-i", *pairs, str(PROGRAM), *map(str, arguments)])
        # The shell's last word shows that the program has left the terminal as it was.
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(rows),
                  f"cd {shlex.quote(str(home))}; echo before; {command}; echo left with $?; cat")

    def tmux(self, *arguments):
        done = subprocess.run(["tmux", "-u", "-S", self.socket, *arguments], capture_output=True,
                              text=True, timeout=20, check=False,
                              env={"PATH": "/usr/bin:/bin", "TERM": "screen-256color",
                                   "LC_ALL": "C.UTF-8"})
        assert done.returncode == 0, done.stderr
        return done.stdout

    def screen(self):
        """What is on the screen, without blanks at the ends of lines and empty lines at its end."""
        lines = [line.rstrip() for line in self.tmux("capture-pane", "-p").split("\n")]
        return "\n".join(lines).rstrip("\n") + "\n"

    def coloured(self):
        return self.tmux("capture-pane", "-p", "-e")

    def type(self, text):
        self.tmux("send-keys", "-l", text)

    def key(self, *names):
        self.tmux("send-keys", *names)

    def ask(self, prompt):
        self.wait_for("›")
        self.type(prompt)
        self.wait_for(prompt[:10])
        self.key("Enter")

    def resize(self, columns, rows):
        self.tmux("resize-window", "-x", str(columns), "-y", str(rows))

    def wait_for(self, text, count=1):
        """The screen, once it shows the text so often."""
        seen = [""]

        def shows():
            seen[0] = self.screen()
            return seen[0].count(text) >= count
        try:
            wait_until(shows, f"the screen shows {text!r}")
        except AssertionError as late:
            raise AssertionError(f"{late}; it shows:\n{seen[0]}") from None
        return seen[0]

    def close(self):
        subprocess.run(["tmux", "-S", self.socket, "kill-server"], capture_output=True, check=False)
        self.place.cleanup()


def steady(screen, *secrets):
    """The screen without what differs from run to run: ids, times, addresses."""
    screen = SESSION_ID.sub("SESSION-ID", screen)
    screen = re.sub(r"\b\d+(\.\d)? s\b", "N s", screen)
    screen = re.sub(r"http://127\.0\.0\.1:\d+", "http://ADDRESS", screen)
    for secret in secrets:
        screen = screen.replace(str(secret), "…")
    return screen


def assert_screen(name, terminal, start="", without=steady):
    """Waits until the screen, from `start` on, is the kept one: what is drawn last may come late.
    CLAWDFORGE_KEEP_SCREENS=1 keeps what is shown two seconds later instead."""
    kept = SCREENS / f"{name}.txt"

    def shown():
        screen = terminal.screen()
        begins = screen.rfind(start) if start else 0
        return without(screen[max(begins, 0):])
    if os.environ.get("CLAWDFORGE_KEEP_SCREENS"):
        time.sleep(2)
        SCREENS.mkdir(exist_ok=True)
        kept.write_text(shown())
    expected = kept.read_text()
    try:
        wait_until(lambda: shown() == expected, f"the screen is {kept.name}")
    except AssertionError:
        assert shown() == expected
        raise
