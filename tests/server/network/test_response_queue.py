"""Responses and their file regions reach the socket in order, however little it accepts."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.log.segments.log_slice import SendFile
from barnabas.server.metrics.registry import RequestMetrics
from barnabas.server.network._response_queue import ResponseQueue
from barnabas.wire.outgoing import Outgoing


class FileRegion:
    """Part of a file, as a log slice is; sends no more than `at_most` bytes at a time."""

    def __init__(self, fd: int, position: int, size_bytes: int, at_most: int = 1 << 30) -> None:
        self._fd = fd
        self._position = position
        self._at_most = at_most
        self.size_bytes = size_bytes

    def read_cached(self) -> bytes:
        content = os.pread(self._fd, self.size_bytes, self._position)
        if len(content) < self.size_bytes:
            raise EOFError
        return content

    def send(self, send_file: SendFile, sent: int, count: int) -> int:
        return send_file(self._fd, self._position + sent, min(count, self._at_most))


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.setblocking(False)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    yield ours, theirs
    ours.close()
    theirs.close()


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("segment") / "00.log"
    path.write_bytes(bytes(range(256)) * 4096)
    return path


def pump(queue: ResponseQueue, theirs: socket.socket) -> bytes:
    """Send until all has gone, with the other end reading whenever the socket is full."""
    received = bytearray()
    done = False
    while not done:
        done = queue.send()
        while True:
            try:
                received += theirs.recv(1 << 16)
            except BlockingIOError:
                break
    return bytes(received)


def reserve(queue: ResponseQueue):  # type: ignore[no-untyped-def]
    return queue.reserve(RequestMetrics(), 1)


def put(queue: ResponseQueue, content: bytes, *regions: tuple[int, FileRegion]) -> None:
    outgoing = Outgoing(content)
    outgoing.regions.extend(regions)
    queue.complete(reserve(queue), outgoing, 2)


def test_regions_are_sent_between_the_bytes_around_them(
    pair: tuple[socket.socket, socket.socket], content: Path
) -> None:
    queue = ResponseQueue(pair[0])
    with content.open("rb") as file:
        first = FileRegion(file.fileno(), 1, 300_000)
        second = FileRegion(file.fileno(), 77, 5)
        put(queue, b"headmiddletail", (4, first), (10, second))
        put(queue, b"next")
        sent = pump(queue, pair[1])
    bytes_in_file = content.read_bytes()
    expected = b"head" + bytes_in_file[1:300_001] + b"middle" + bytes_in_file[77:82] + b"tailnext"
    assert sent == expected
    assert queue.is_empty


@st.composite
def queued_responses(draw: st.DrawFn) -> list[tuple[bytes, list[tuple[int, int, int]]]]:
    """Bytes and their regions: position in the bytes, position in the file, size."""
    drawn = []
    for size in draw(st.lists(st.sampled_from([1, 14, 9000]), min_size=1, max_size=5)):
        positions = sorted(draw(st.lists(st.integers(0, size), max_size=3)))
        sizes = st.sampled_from([0, 1, 500, 60_000])
        drawn.append(
            (
                draw(st.binary(min_size=size, max_size=size)) if size < 20 else os.urandom(size),
                [
                    (topic_partition, draw(st.integers(0, 1000)), draw(sizes))
                    for topic_partition in positions
                ],
            )
        )
    return drawn


@settings(max_examples=60, deadline=None)
@given(queued_responses(), st.sampled_from([7, 1000, 1 << 30]), st.booleans())
def test_the_socket_receives_what_was_queued_however_it_is_split(
    content: Path, drawn: list[tuple[bytes, list[tuple[int, int, int]]]], at_most: int, slow: bool
) -> None:
    ours, theirs = socket.socketpair()
    in_file = content.read_bytes()
    with ours, theirs, content.open("rb") as file:
        ours.setblocking(False)
        theirs.setblocking(False)
        queue = ResponseQueue(ours)
        expected = b""
        for response, regions in drawn:
            put(
                queue,
                response,
                *((p, FileRegion(file.fileno(), at, n, at_most)) for p, at, n in regions),
            )
            start = 0
            for topic_partition, at, size in regions:
                expected += response[start:topic_partition] + in_file[at : at + size]
                start = topic_partition
            expected += response[start:]
            if slow:
                queue.send()  # perhaps in part, with more to be put behind
        assert pump(queue, theirs) == expected
        assert queue.is_empty
        assert queue.unsent_bytes == 0


def test_a_region_of_a_truncated_file_closes_the_connection(
    pair: tuple[socket.socket, socket.socket], tmp_path: Path
) -> None:
    path = tmp_path / "short"
    path.write_bytes(b"only this")
    queue = ResponseQueue(pair[0])
    with path.open("rb") as file:
        put(queue, b"head", (4, FileRegion(file.fileno(), 0, 100)))
        with pytest.raises(OSError, match="no longer exist"):
            pump(queue, pair[1])


def test_a_response_waits_for_earlier_ones(pair: tuple[socket.socket, socket.socket]) -> None:
    queue = ResponseQueue(pair[0])
    first, second, third = (reserve(queue) for _ in range(3))
    queue.complete(third, Outgoing(b"3"), 5)
    queue.complete(second, None, 5)
    assert pump(queue, pair[1]) == b""
    assert queue.buffer() is None
    queue.complete(first, Outgoing(b"1"), 5)
    assert pump(queue, pair[1]) == b"13"
    assert queue.buffer() is not None


def test_a_client_that_never_drains_keeps_only_what_is_unsent(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    queue = ResponseQueue(pair[0])
    received = 0
    for round_ in range(1, 41):
        put(queue, b"x" * 100_000)
        while received < round_ * 90_000:
            queue.send()
            received += len(pair[1].recv(90_000))
    assert len(queue.ready) < 2 << 20
    assert received + len(pump(queue, pair[1])) == 4_000_000


def test_times_are_recorded_when_a_response_is_sent(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    queue = ResponseQueue(pair[0])
    metrics = RequestMetrics()
    early = queue.reserve(metrics, 1)
    late = queue.reserve(metrics, 1)
    queue.complete(late, Outgoing(b"late"), 10)
    queue.complete(early, Outgoing(b"early"), 30)
    assert metrics.response_queue_ns.total == 20
    assert queue.send()
    queue.record_sent(40, 50)
    assert metrics.total_ns.total == 2 * 49
    assert metrics.response_send_ns.total == 2 * 10
    assert not queue.has_unsent
