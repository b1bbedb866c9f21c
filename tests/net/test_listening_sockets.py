"""A listener has a socket for each address of its host, all on one port."""

import errno
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from barnabas.net.listening_sockets import bind_sockets, is_port_free

BOTH = [(socket.AF_INET6, "::1"), (socket.AF_INET, "127.0.0.1"), (socket.AF_INET, "127.0.0.1")]
"""What `localhost` is on most machines; a resolver may name an address twice."""


@contextmanager
def bound(host: str, port: int = 0) -> Iterator[list[socket.socket]]:
    sockets = bind_sockets(host, port)
    try:
        yield sockets
    finally:
        for sock in sockets:
            sock.close()


def resolve_localhost_to(
    monkeypatch: pytest.MonkeyPatch, addresses: list[tuple[socket.AddressFamily, str]]
) -> None:
    monkeypatch.setattr(
        socket,
        "getaddrinfo",
        lambda _host, port, **_: [
            (family, socket.SOCK_STREAM, 6, "", (address, port)) for family, address in addresses
        ],
    )


def has_ipv6_loopback() -> bool:
    return is_port_free("::1", 0)


@pytest.mark.skipif(not has_ipv6_loopback(), reason="this machine has no ::1")
def test_localhost_is_bound_by_ipv6_and_ipv4_on_one_port(monkeypatch: pytest.MonkeyPatch) -> None:
    resolve_localhost_to(monkeypatch, BOTH)
    with bound("localhost") as sockets:
        assert [sock.getsockname()[0] for sock in sockets] == ["::1", "127.0.0.1"]
        assert len({sock.getsockname()[1] for sock in sockets}) == 1


@pytest.mark.skipif(not has_ipv6_loopback(), reason="this machine has no ::1")
def test_a_port_taken_on_one_of_the_addresses_is_not_free(monkeypatch: pytest.MonkeyPatch) -> None:
    with bound("127.0.0.1") as (taken,):
        taken.listen()
        resolve_localhost_to(monkeypatch, BOTH)
        port = taken.getsockname()[1]
        assert not is_port_free("localhost", port)
        with pytest.raises(OSError, match="in use") as caught:
            bind_sockets("localhost", port)
        assert caught.value.errno == errno.EADDRINUSE


def test_an_address_that_this_machine_does_not_have_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    absent = (socket.AF_INET, "192.0.2.1")  # reserved for documentation
    resolve_localhost_to(monkeypatch, [absent, (socket.AF_INET, "127.0.0.1")])
    with bound("localhost") as sockets:
        assert [sock.getsockname()[0] for sock in sockets] == ["127.0.0.1"]
    resolve_localhost_to(monkeypatch, [absent])
    with pytest.raises(OSError, match="assign") as caught:
        bind_sockets("localhost", 0)
    assert caught.value.errno == errno.EADDRNOTAVAIL


def test_an_empty_host_is_every_interface() -> None:
    with bound("") as (sock,):
        sock.listen()
        with socket.create_connection(("127.0.0.1", sock.getsockname()[1])):
            pass


def test_a_bound_port_is_taken_before_anything_is_accepted() -> None:
    with bound("127.0.0.1") as (sock,):
        port = sock.getsockname()[1]
        assert not is_port_free("127.0.0.1", port)
        with pytest.raises(OSError, match="in use"):
            bind_sockets("127.0.0.1", port)
