"""Encrypted sockets: bytes arrive whole and in order, whatever the sockets take at a time."""

import asyncio
import os
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.net.tls_pair import socket_pair, tls_pair, tls_settings
from tests.server.harness import on_a_loop

from barnabas.net.tls_errors import explain_to_client
from barnabas.net.tls_socket import CHUNK_BYTES, TlsHandshake, TlsSocket

VERSIONS = ("TLSv1.2", "TLSv1.3")
SIZES = (1, 100, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 5 * CHUNK_BYTES + 17)


def exchange(send: Callable[[int], int], receiver: TlsSocket, size: int) -> bytes:
    """Sends `size` bytes by calls of `send` with the count so far; returns what arrives."""
    received = bytearray()
    view = memoryview(bytearray(50_000))
    sent = 0
    while sent < size or len(received) < size:
        if sent < size:
            with suppress(BlockingIOError):
                sent += send(sent)
        try:
            received += view[: receiver.recv_into(view)]
        except BlockingIOError:
            continue
    return bytes(received)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("size", SIZES)
def test_bytes_arrive_in_order(version: str, size: int) -> None:
    @on_a_loop
    async def scenario() -> None:
        client, server = await tls_pair(version)
        content = Random(size).randbytes(size)
        assert exchange(lambda sent: client.send(content[sent:]), server, size) == content
        assert exchange(lambda sent: server.send(content[sent:]), client, size) == content

    scenario()


@on_a_loop
async def test_a_chunk_is_not_encrypted_again_when_it_is_repeated() -> None:
    client, server = await tls_pair()
    content = Random(1).randbytes(CHUNK_BYTES)
    with pytest.raises(BlockingIOError):
        client.send(content)

    def repeat(_: int) -> int:
        return client.send(bytes(len(content)))  # would arrive as zeros if it were encrypted

    assert exchange(repeat, server, len(content)) == content


@on_a_loop
async def test_a_file_is_sent_from_a_position(tmp_path: Path) -> None:
    client, server = await tls_pair()
    content = Random(2).randbytes(3 * CHUNK_BYTES)
    path = tmp_path / "segment"
    path.write_bytes(b"before" + content)
    fd = os.open(path, os.O_RDONLY)
    size = len(content)
    received = exchange(lambda sent: server.send_file(fd, 6 + sent, size - sent), client, size)
    os.close(fd)
    assert received == content


@on_a_loop
async def test_bytes_with_more_to_come_are_sent_with_the_next_ones() -> None:
    client, server = await tls_pair()
    drain(client)
    assert server.send(b"head", socket.MSG_MORE) == 4
    view = memoryview(bytearray(100))
    with pytest.raises(BlockingIOError):
        client.recv_into(view)
    assert server.send(b"body") == 4
    assert client.recv_into(view) == 8
    assert view[:8] == b"headbody"


@on_a_loop
async def test_parts_of_any_sizes_are_sent_in_order() -> None:
    random = Random(3)
    client, server = await tls_pair()
    parts = [random.randbytes(random.choice((0, 1, 50, 20_000, 200_000))) for _ in range(40)]
    whole = b"".join(parts)

    def send(sent: int) -> int:
        rest, skipped = [], sent
        for part in parts:
            rest.append(part[skipped:])
            skipped = max(skipped - len(part), 0)
        return client.sendmsg([part for part in rest if part])

    assert exchange(send, server, len(whole)) == whole


@on_a_loop
async def test_bytes_that_did_not_fit_are_pending_and_no_others() -> None:
    client, server = await tls_pair()
    client.send(b"x" * 1000)
    view = memoryview(bytearray(600))
    assert server.recv_into(view) == 600
    assert server.has_pending
    assert server.recv_into(view) == 400
    assert not server.has_pending
    with pytest.raises(BlockingIOError):
        server.recv_into(view)
    assert not server.has_pending


@on_a_loop
async def test_a_partial_record_is_not_pending() -> None:
    client, server = await tls_pair()
    with pytest.raises(BlockingIOError):
        client.send(bytes(CHUNK_BYTES))  # the socket takes a part of a record
    view = memoryview(bytearray(CHUNK_BYTES))
    while True:
        try:
            server.recv_into(view)
        except BlockingIOError:
            break
    assert not server.has_pending


@on_a_loop
async def test_two_views_are_filled_in_turn() -> None:
    client, server = await tls_pair()
    client.send(b"frame" + b"next")
    first, second = memoryview(bytearray(5)), memoryview(bytearray(100))
    assert server.recvmsg_into((first, second))[0] == 9
    assert (first, second[:4]) == (b"frame", b"next")


@pytest.mark.parametrize("version", VERSIONS)
def test_a_closed_end_is_the_end_of_the_stream(version: str) -> None:
    @on_a_loop
    async def scenario() -> None:
        client, server = await tls_pair(version)
        client.send(b"last")
        client.close()
        view = memoryview(bytearray(100))
        assert server.recv_into(view) == 4
        assert server.recv_into(view) == 0
        assert server.recv_into(view) == 0

    scenario()


@pytest.mark.parametrize("version", VERSIONS)
def test_the_end_of_the_stream_does_not_need_the_end_of_the_connection(version: str) -> None:
    @on_a_loop
    async def scenario() -> None:
        client, server = await tls_pair(version)
        drain(client)
        kept_open = os.dup(client.fileno())
        client.close()
        view = memoryview(bytearray(100))
        assert server.recv_into(view) == 0
        server.close()
        answer = os.read(kept_open, 100)
        assert answer[0] in (0x15, 0x17), "an alert, which TLS 1.3 encrypts"
        os.close(kept_open)

    scenario()


@on_a_loop
async def test_bytes_that_are_not_of_the_connection_are_an_error() -> None:
    client, server = await tls_pair()
    raw = socket.socket(fileno=os.dup(client.fileno()))
    raw.send(b"\x17\x03\x03\0\x20" + bytes(32))
    with pytest.raises(ssl.SSLError):
        server.recv_into(memoryview(bytearray(100)))
    raw.close()


@on_a_loop
async def test_bytes_that_come_with_the_end_of_the_handshake_are_pending() -> None:
    loop = asyncio.get_running_loop()
    settings = tls_settings("TLSv1.3")
    near, far = socket_pair()
    done: asyncio.Future[TlsSocket] = loop.create_future()
    TlsHandshake(loop, far, settings.server_context(), None, done.set_result, done.set_exception)

    def send_at_once(client: TlsSocket) -> None:
        client.send(b"early")

    # The client's last message and its first bytes leave before the server reads either.
    TlsHandshake(
        loop, near, settings.client_context(), "localhost", send_at_once, done.set_exception
    )
    server = await done
    view = memoryview(bytearray(100))
    while True:
        try:
            assert server.recv_into(view) == 5
            break
        except BlockingIOError:
            await asyncio.sleep(0)
    assert view[:5] == b"early"


@on_a_loop
async def test_a_server_that_speaks_plain_text_is_named_as_the_reason() -> None:
    loop = asyncio.get_running_loop()
    near, far = socket_pair()
    far.send(b"\0\0\0\x10plain text here")
    failed: asyncio.Future[OSError] = loop.create_future()
    context = tls_settings().client_context()
    TlsHandshake(loop, near, context, "localhost", failed.set_exception, failed.set_result)
    assert "answered in plain text" in str(explain_to_client(await failed))
    assert near.fileno() >= 0  # its owner closes it


def drain(end: TlsSocket) -> None:
    """Reads what the handshake has left, such as session tickets."""
    with pytest.raises(BlockingIOError):
        end.recv_into(memoryview(bytearray(100)))


class EndlessUpdates:
    """A peer that sends nothing but records without data, faster than they are read."""

    def __init__(self) -> None:
        self.received_bytes = 0

    def recv(self, size: int) -> bytes:
        self.received_bytes += size
        assert self.received_bytes < 100 * CHUNK_BYTES, "it is never the turn of others"
        return bytes(size)

    def read(self, *_: object) -> int:
        raise ssl.SSLWantReadError

    def write(self, *_: object) -> int:
        raise AssertionError

    def pending(self) -> int:
        return 0


def test_records_without_data_do_not_keep_the_loop() -> None:
    peer: Any = EndlessUpdates()
    sock = TlsSocket(peer, peer, ssl.MemoryBIO(), ssl.MemoryBIO())
    with pytest.raises(BlockingIOError):
        sock.recv_into(memoryview(bytearray(CHUNK_BYTES)))
