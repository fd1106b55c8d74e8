"""Readers of streams that take nothing: what the kernel keeps for them, and how they end."""
import time

from gateway import wait_until
from sessions import Talker, new_forge
from streams import message_of, tail

__all__ = ["new_forge"]  # a fixture

KERNEL_BYTES_MAX = 1024 * 1024  # a piece of 512 KiB over the 256 KiB that wait unsent
FLOOD = {"flood": 2_000, "piece_bytes": 4_000}  # 8 MB: several times what may be kept


def kept_by_kernel(gateway, port):
    """Bytes that the kernel has of the gateway's for the caller on `port`; none: no such caller."""
    wanted = (f":{gateway.port:04X}", f":{port:04X}")
    with open("/proc/net/tcp", encoding="ascii") as file:
        for line in file.readlines()[1:]:
            _, ours, theirs, _, queues, *_ = line.split()
            if ours.endswith(wanted[0]) and theirs.endswith(wanted[1]):
                return int(queues.split(":")[0], 16)
    return None


def absent_reader(session):
    """A stream that is open, and the port of its reader, who will take nothing more of it."""
    stream = tail(session, buffer_bytes=4096)
    session.ask({"text": "the first"})
    assert stream.expect().name == "turn"
    assert message_of(stream.expect()) == "the first"
    return stream, stream.wire.socket.getsockname()[1]


def test_the_kernel_keeps_little_for_a_reader_who_does_not_read(new_forge):
    gateway = new_forge()
    session = Talker(gateway).session()
    stream, port = absent_reader(session)
    for _ in range(3):
        session.ask(FLOOD)
        assert 0 < kept_by_kernel(gateway, port) < KERNEL_BYTES_MAX
    stream.close()


def test_a_drain_does_not_wait_its_grace_for_a_reader_who_does_not_read(new_forge):
    gateway = new_forge(drain_grace_secs=100)
    session = Talker(gateway).session()
    stream, port = absent_reader(session)
    session.ask(FLOOD)
    wait_until(lambda: kept_by_kernel(gateway, port) > 100_000, "its stream stands still")
    begun = time.monotonic()
    assert gateway.stop() == 0
    assert time.monotonic() - begun < 30
    assert kept_by_kernel(gateway, port) is None, "what the caller does not read is dropped"
    stream.close()
