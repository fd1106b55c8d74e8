"""The program on a real terminal: a pseudo-terminal of its own, which it controls."""
import os
import pty
import select
import signal
import struct
import fcntl
import termios
import time

from gateway import PROGRAM, SECONDS_MAX, clean_environment


class Terminal:
    """Runs the program on a terminal; `screen` is all that it wrote there."""

    def __init__(self, *arguments, home, env=None, columns=80):
        environment = clean_environment(home, {"TERM": "xterm", **(env or {})})
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.chdir(home)
            os.execve(str(PROGRAM), [str(PROGRAM), *map(str, arguments)], environment)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.screen = ""

    def send(self, text):
        os.write(self.master, text.encode())

    def await_text(self, text, seconds=SECONDS_MAX):
        end = time.monotonic() + seconds
        while text not in self.screen:
            assert time.monotonic() < end, f"{text!r} is not in {self.screen!r}"
            if not self._read(0.1):
                assert text in self.screen, f"{text!r} is not in {self.screen!r}"

    def _read(self, seconds):
        """False: the program has closed its terminal."""
        if not select.select([self.master], [], [], seconds)[0]:
            return True
        try:
            piece = os.read(self.master, 65536)
        except OSError:
            return False
        self.screen += piece.decode(errors="replace")
        return bool(piece)

    def wait(self):
        """Its exit code; all that it wrote is in `screen`."""
        end = time.monotonic() + SECONDS_MAX
        while self._read(0.1):
            assert time.monotonic() < end, f"it does not end: {self.screen!r}"
        status = os.waitpid(self.pid, 0)[1]
        self.pid = None
        return os.waitstatus_to_exitcode(status)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.master)
        if self.pid is not None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
