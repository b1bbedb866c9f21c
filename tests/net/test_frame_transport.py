"""Frames leave and arrive whole, in order, and stay for as long as somebody looks at them."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.server.harness import on_a_loop

from barnabas.net.buffers import BufferPool
from barnabas.net.frame_transport import FrameTransport


@contextmanager
def a_link(
    received: list[memoryview], broken: list[OSError]
) -> Iterator[tuple[FrameTransport, socket.socket]]:
    ours, theirs = socket.socketpair()
    for sock in (ours, theirs):
        sock.setblocking(False)
    link = FrameTransport(
        ours,
        asyncio.get_running_loop(),
        BufferPool(1 << 30),
        1 << 30,
        on_frame=received.append,
        on_error=broken.append,
    )
    with theirs:
        yield link, theirs
        link.close()


def a_frame(content: bytes) -> bytes:
    return len(content).to_bytes(4, "big") + content


async def arrive(received: list[memoryview], count: int) -> None:
    while len(received) < count:
        await asyncio.sleep(0)


@on_a_loop
async def test_frames_stay_as_they_are_while_somebody_holds_them() -> None:
    received: list[memoryview] = []
    contents = [bytes([number]) * 300_000 for number in range(40)] + [b"small", b""]
    loop = asyncio.get_running_loop()
    with a_link(received, []) as (_, theirs):
        for content in contents:
            await loop.sock_sendall(theirs, a_frame(content))
        await arrive(received, len(contents))
        assert [bytes(frame) for frame in received] == contents


@on_a_loop
async def test_a_small_frame_in_a_large_buffer_is_a_copy() -> None:
    received: list[memoryview] = []
    with a_link(received, []) as (link, theirs):
        theirs.send(a_frame(b"small"))
        await arrive(received, 1)
        assert isinstance(received[0].obj, bytes)
        assert not link._buffers._lent


@on_a_loop
async def test_what_the_socket_does_not_take_follows_in_order() -> None:
    parts = [bytes([number % 256]) * (1 + number * 37 % 9_000) for number in range(3_000)]
    left: list[int] = []
    with a_link([], []) as (link, theirs):
        for begin in range(0, len(parts), 600):
            link.send(parts[begin : begin + 600], lambda begin=begin: left.append(begin))
        assert link.unsent_bytes > 0
        assert left == [], "nobody is told before send has returned"
        expected = b"".join(parts)
        got = bytearray()
        loop = asyncio.get_running_loop()
        while len(got) < len(expected):
            got += await loop.sock_recv(theirs, 1 << 20)
        assert got == expected
        await asyncio.sleep(0)
        assert left == list(range(0, len(parts), 600))
        assert link.unsent_bytes == 0


@on_a_loop
async def test_a_peer_that_hung_up_is_told_once_and_not_by_send() -> None:
    broken: list[OSError] = []
    with a_link([], broken) as (link, theirs):
        theirs.close()
        link.send([b"x"])
        link.send([b"x"])
        assert broken == []
        while not broken:
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert len(broken) == 1


@pytest.mark.parametrize("piece", [1, 3, 7])
def test_frames_arrive_whole_however_they_are_cut(piece: int) -> None:
    @on_a_loop
    async def scenario() -> None:
        received: list[memoryview] = []
        contents = [b"a", b"", b"bcd" * 5, b"e" * 40]
        stream = b"".join(map(a_frame, contents))
        with a_link(received, []) as (_, theirs):
            for begin in range(0, len(stream), piece):
                theirs.send(stream[begin : begin + piece])
                await asyncio.sleep(0)
                await asyncio.sleep(0)
            await arrive(received, len(contents))
            assert [bytes(frame) for frame in received] == contents

    scenario()
