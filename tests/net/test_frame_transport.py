"""Frames are sent and received whole, in order, and stay valid while a view of them exists."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.server.harness import on_a_loop

from barnabas.net.buffers import BufferPool
from barnabas.net.frame_transport import FrameTransport


@contextmanager
def a_transport(
    received: list[memoryview], errors: list[OSError]
) -> Iterator[tuple[FrameTransport, socket.socket]]:
    local, remote = socket.socketpair()
    for sock in (local, remote):
        sock.setblocking(False)
    transport = FrameTransport(
        local,
        asyncio.get_running_loop(),
        BufferPool(1 << 30),
        1 << 30,
        on_frame=received.append,
        on_error=errors.append,
    )
    with remote:
        yield transport, remote
        transport.close()


def a_frame(content: bytes) -> bytes:
    return len(content).to_bytes(4, "big") + content


async def arrive(received: list[memoryview], count: int) -> None:
    while len(received) < count:
        await asyncio.sleep(0)


@on_a_loop
async def test_a_received_frame_does_not_change_while_a_view_of_it_exists() -> None:
    received: list[memoryview] = []
    contents = [bytes([number]) * 300_000 for number in range(40)] + [b"small", b""]
    loop = asyncio.get_running_loop()
    with a_transport(received, []) as (_, remote):
        for content in contents:
            await loop.sock_sendall(remote, a_frame(content))
        await arrive(received, len(contents))
        assert [bytes(frame) for frame in received] == contents


@on_a_loop
async def test_a_small_frame_in_a_large_buffer_is_copied() -> None:
    received: list[memoryview] = []
    with a_transport(received, []) as (transport, remote):
        remote.send(a_frame(b"small"))
        await arrive(received, 1)
        assert isinstance(received[0].obj, bytes)
        assert not transport._buffers._pending_releases


@on_a_loop
async def test_bytes_that_the_socket_does_not_take_follow_in_order() -> None:
    parts = [bytes([number % 256]) * (1 + number * 37 % 9_000) for number in range(3_000)]
    sent: list[int] = []
    with a_transport([], []) as (transport, remote):
        for begin in range(0, len(parts), 600):
            transport.send(parts[begin : begin + 600], lambda begin=begin: sent.append(begin))
        assert transport.unsent_bytes > 0
        assert sent == [], "no callback is called before send returns"
        expected = b"".join(parts)
        got = bytearray()
        loop = asyncio.get_running_loop()
        while len(got) < len(expected):
            got += await loop.sock_recv(remote, 1 << 20)
        assert got == expected
        await asyncio.sleep(0)
        assert sent == list(range(0, len(parts), 600))
        assert transport.unsent_bytes == 0


@on_a_loop
async def test_a_disconnect_is_reported_once_and_never_by_send() -> None:
    errors: list[OSError] = []
    with a_transport([], errors) as (transport, remote):
        remote.close()
        transport.send([b"x"])
        transport.send([b"x"])
        assert errors == []
        while not errors:
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert len(errors) == 1


@pytest.mark.parametrize("piece", [1, 3, 7])
def test_frames_arrive_whole_in_pieces_of_any_size(piece: int) -> None:
    @on_a_loop
    async def scenario() -> None:
        received: list[memoryview] = []
        contents = [b"a", b"", b"bcd" * 5, b"e" * 40]
        stream = b"".join(map(a_frame, contents))
        with a_transport(received, []) as (_, remote):
            for begin in range(0, len(stream), piece):
                remote.send(stream[begin : begin + piece])
                await asyncio.sleep(0)
                await asyncio.sleep(0)
            await arrive(received, len(contents))
            assert [bytes(frame) for frame in received] == contents

    scenario()
