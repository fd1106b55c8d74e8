"""What the stand-ins need of Python's library, without the parts that take long to import.

The tests start some thousands of stand-ins. Importing json, hashlib, signal, socket and subprocess
takes most of the time of each: 30 of 35 ms. Here are the same functions from the C modules below
those, where this Python has them.
"""
import os
import select
import time

import _signal as signal
import _socket

__all__ = ["Child", "Expired", "accepted", "dumps", "first", "lines_of", "loads", "sha256", "signal",
           "unix_socket"]

try:
    from _json import encode_basestring, encode_basestring_ascii, make_encoder, make_scanner

    class _Reading:
        strict = True
        object_hook = object_pairs_hook = None
        parse_float = float
        parse_int = int
        parse_constant = float

    _scan = make_scanner(_Reading)

    def _refuse(value):
        raise TypeError(f"{type(value).__name__} is not JSON")

    def first(text):
        """The JSON value at the text's beginning; ValueError: there is none."""
        try:
            return _scan(text, 0)
        except StopIteration:
            raise ValueError("no JSON") from None

    def loads(text):
        if not isinstance(text, str):
            text = text.decode("utf-8", "surrogatepass")
        text = text.strip(" \t\r\n")
        value, end = first(text)
        if end != len(text):
            raise ValueError("more than one JSON value")
        return value

    def dumps(value, separators=(", ", ": "), ensure_ascii=True):
        encode = encode_basestring_ascii if ensure_ascii else encode_basestring
        return "".join(make_encoder({}, _refuse, encode, None, separators[1], separators[0], False,
                                    False, True)(value, 0))
except (ImportError, TypeError):  # another Python
    import json
    from json import dumps, loads

    def first(text):
        return json.JSONDecoder().raw_decode(text)

try:
    from _sha256 import sha256
except ImportError:
    from hashlib import sha256


def unix_socket():
    return _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)


def accepted(server):
    """The next connection of a listening socket."""
    descriptor, _ = server._accept()
    return _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0, descriptor)


def lines_of(connection):
    """A file to read lines from; the connection stays open beside it."""
    return os.fdopen(os.dup(connection.fileno()), "rb")


class Expired(Exception):
    """A child has not ended in time."""


class Child:
    """A process whose standard input is a pipe, and its output too unless it is dropped."""

    def __init__(self, argv, cwd=None, drops_output=False, has_session=False):
        theirs_in, ours_in = os.pipe()
        ours_out, theirs_out = (None, os.open(os.devnull, os.O_WRONLY)) if drops_output else os.pipe()
        here = os.getcwd()
        try:
            if cwd:
                os.chdir(cwd)
            self.pid = os.posix_spawnp(
                argv[0], argv, os.environ, setsid=has_session, setsigdef=[signal.SIGPIPE],
                file_actions=[(os.POSIX_SPAWN_DUP2, theirs_in, 0),
                              (os.POSIX_SPAWN_DUP2, theirs_out, 1)])
        except OSError:
            for descriptor in filter(None, (ours_in, ours_out)):
                os.close(descriptor)
            raise
        finally:
            os.chdir(here)
            os.close(theirs_in)
            os.close(theirs_out)
        self.stdin = os.fdopen(ours_in, "wb", buffering=0)
        self.stdout = ours_out
        self.has_ended = False

    def poll(self):
        """Whether it has ended."""
        if not self.has_ended:
            self.has_ended = os.waitpid(self.pid, os.WNOHANG)[0] != 0
        return self.has_ended

    def wait(self, seconds=None):
        end = None if seconds is None else time.monotonic() + seconds
        while not self.poll():
            if end is not None and time.monotonic() > end:
                raise Expired
            select.select([], [], [], 0.002)

    def kill(self, number=signal.SIGKILL):
        if not self.poll():
            os.kill(self.pid, number)
