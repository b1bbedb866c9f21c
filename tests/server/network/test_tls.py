"""Listeners with TLS: handshakes of good, bad, slow and many clients, and requests after them."""

import asyncio
import logging
import socket
import ssl
import threading
from pathlib import Path
from random import Random

import pytest
from tests.security.tls.listener_settings import listener_tls, pem_settings, typed
from tests.server.harness import LIST, Server, a_list, frame, name_the_client, on_a_loop
from tests.tls_certificates import Authority, Issued, castle_authority
from tests.wait import async_wait_until

from barnabas.config import SecurityProtocol
from barnabas.log.segments.log_slice import SendFile
from barnabas.net.tls import TlsSettings
from barnabas.server.network import tls_handshakes
from barnabas.server.network.listener_security import ListenerSecurity
from barnabas.server.request_context import RequestContext
from barnabas.wire.apis import ApiKey
from barnabas.wire.messages.configs import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from barnabas.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)

FETCH_VERSION = 12
HOST = "127.0.0.1"


class TlsServer(Server):
    """A server with one TLS listener."""

    def __init__(self, folder: Path, **settings: str) -> None:
        super().__init__(
            {LIST: name_the_principal, ApiKey.FETCH: self._fetch},
            failed_authentication_delay_ms=0,
        )
        self.region: FileRegion | None = None
        issued = castle_authority().issue("CN=server")
        named = {name.replace("_", "."): value for name, value in settings.items()}
        self.tls = listener_tls(pem_settings(folder, issued) | named)
        security = ListenerSecurity(SecurityProtocol.SSL, self.tls)
        self.port = self.network.listen("SECURE", HOST, 0, security).port
        self.network.open()

    async def _fetch(self, _: FetchRequest, __: RequestContext) -> FetchResponse:
        result = PartitionData(records=self.region)
        return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[result])])

    def gauge(self, name: str) -> float:
        gauges = {gauge.name: gauge.value for gauge in self.network}
        return gauges.get(f"kafka_server_socket_server_metrics_{name}", 0)


class FileRegion:
    """Bytes of a file that are in memory."""

    def __init__(self, path: Path, size_bytes: int) -> None:
        self.size_bytes = size_bytes
        self.content = Random(size_bytes).randbytes(size_bytes)
        path.write_bytes(self.content)
        self._file = path.open("rb")

    def __len__(self) -> int:
        return self.size_bytes

    def read_cached(self) -> bytes:
        return self.content

    def send(self, send_file: SendFile, sent: int, count: int) -> int:
        return send_file(self._file.fileno(), sent, count)


async def name_the_principal(
    _: ListConfigResourcesRequest, context: RequestContext
) -> ListConfigResourcesResponse:
    name = str(context.connection.principal)
    return ListConfigResourcesResponse(config_resources=[ConfigResource(resource_name=name)])


class TlsClient:
    """A client by asyncio's TLS."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self.writer = writer

    @classmethod
    async def connect(
        cls, port: int, issued: Issued | None = None, **settings: object
    ) -> "TlsClient":
        context = TlsSettings(
            ca_pem=castle_authority().pem,
            certificate_pem=issued.certificate_pem if issued else None,
            key_pem=issued.key_pem if issued else None,
            **settings,  # type: ignore[arg-type]
        ).client_context()
        return cls(*await asyncio.open_connection(HOST, port, ssl=context))

    async def receive_frame(self) -> bytes:
        length = int.from_bytes(await self._reader.readexactly(4))
        return await self._reader.readexactly(length)

    async def request(self) -> str:
        """Returns the principal that the server sees."""
        self.writer.write(frame(*a_list(1)))
        response, _ = ListConfigResourcesResponse.read(await self.receive_frame(), 1, 5)
        return str(response.config_resources[0].resource_name)

    async def is_closed(self) -> bool:
        try:
            return await self._reader.read(1) == b""
        except (ConnectionError, ssl.SSLError):
            return True


async def plain_socket(port: int) -> socket.socket:
    sock = socket.socket()
    sock.setblocking(False)
    await asyncio.get_running_loop().sock_connect(sock, (HOST, port))
    return sock


async def receive_rest(sock: socket.socket) -> bytes:
    """Returns everything until the server closes the connection."""
    received = b""
    loop = asyncio.get_running_loop()
    try:
        while more := await loop.sock_recv(sock, 65_536):
            received += more
    except ConnectionResetError:
        pass
    return received


# Requests


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_requests_are_served(version: str, tmp_path: Path) -> None:
    @on_a_loop
    async def scenario() -> None:
        server = TlsServer(tmp_path)
        client = await TlsClient.connect(server.port, versions=(version,))
        for _ in range(3):
            assert await client.request() == "User:ANONYMOUS"
        assert server.gauge("successful_authentication_total") == 1
        client.writer.close()
        await server.network.drain(0)

    scenario()


@on_a_loop
async def test_a_client_is_the_user_of_its_certificate(tmp_path: Path) -> None:
    server = TlsServer(tmp_path, ssl_client_auth="required")
    issued = castle_authority().issue("CN=Alice,O=Castle", ())
    client = await TlsClient.connect(server.port, issued)
    assert await client.request() == "User:CN=Alice,O=Castle"
    await server.network.drain(0)


@on_a_loop
async def test_many_requests_in_one_write_are_all_answered(tmp_path: Path) -> None:
    server = TlsServer(tmp_path)
    client = await TlsClient.connect(server.port)
    client.writer.write(b"".join(frame(*a_list(number)) for number in range(5_000)))
    for number in range(5_000):
        response = await client.receive_frame()
        assert int.from_bytes(response[:4]) == number
    await server.network.drain(0)


@pytest.mark.parametrize("size", [10, 60_000, 70_000, 3_000_000])
def test_records_of_files_are_encrypted(size: int, tmp_path: Path) -> None:
    @on_a_loop
    async def scenario() -> None:
        server = TlsServer(tmp_path)
        server.region = FileRegion(tmp_path / "segment", size)
        client = await TlsClient.connect(server.port)
        client.writer.write(frame(FetchRequest(), FETCH_VERSION, 1) * 3)
        for _ in range(3):
            response, _ = FetchResponse.read(await client.receive_frame(), FETCH_VERSION, 5)
            (partition,) = response.responses[0].partitions
            assert bytes(partition.records) == server.region.content
        await server.network.drain(0)

    scenario()


@on_a_loop
async def test_a_large_request_in_pieces_is_served(tmp_path: Path) -> None:
    server = TlsServer(tmp_path)
    client = await TlsClient.connect(server.port)
    request = frame(FetchRequest(rack_id="r" * 20_000), FETCH_VERSION, 7) * 100
    server.region = FileRegion(tmp_path / "segment", 10)
    for begin in range(0, len(request), 33_333):
        client.writer.write(request[begin : begin + 33_333])
        await client.writer.drain()
    for _ in range(100):
        assert (await client.receive_frame())[:4] == (7).to_bytes(4)
    await server.network.drain(0)


@on_a_loop
async def test_a_client_that_does_not_read_gets_its_responses_later(tmp_path: Path) -> None:
    server = TlsServer(tmp_path)
    server.region = FileRegion(tmp_path / "segment", 5_000_000)
    stalled, other = await TlsClient.connect(server.port), await TlsClient.connect(server.port)
    stalled.writer.transport.pause_reading()  # type: ignore[attr-defined]
    stalled.writer.write(frame(FetchRequest(), FETCH_VERSION, 1) * 4)
    for _ in range(10):
        assert await other.request() == "User:ANONYMOUS"
    stalled.writer.transport.resume_reading()  # type: ignore[attr-defined]
    for _ in range(4):
        assert len(await stalled.receive_frame()) > 5_000_000
    await server.network.drain(0)


@on_a_loop
async def test_existing_connections_stay_when_the_certificate_changes(tmp_path: Path) -> None:
    server = TlsServer(tmp_path)
    before = await TlsClient.connect(server.port)
    renewed = castle_authority().issue("CN=server")
    settings = pem_settings(tmp_path, renewed, "renewed")
    server.tls.apply(server.tls.load(typed(settings)))
    after = await TlsClient.connect(server.port)
    certificate = after.writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    assert ssl.DER_cert_to_PEM_cert(certificate) == renewed.certificate_pem
    assert await before.request() == await after.request() == "User:ANONYMOUS"
    await server.network.drain(0)


# Clients that fail


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: None, "it sent no certificate, and ssl.client.auth is required"),
        (lambda: Authority().issue("CN=x"), "its certificate is signed by an unknown authority"),
        (lambda: castle_authority().issue("CN=x", days=-1), "its certificate has expired"),
        (lambda: castle_authority().issue("CN=y"), "no rule of ssl.principal.mapping.rules"),
    ],
)
def test_a_rejected_client_is_logged_with_the_reason(
    make: object, reason: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    @on_a_loop
    async def scenario() -> None:
        server = TlsServer(
            tmp_path,
            ssl_client_auth="required",
            ssl_principal_mapping_rules="RULE:CN=(x)/$1/",
        )
        client = await TlsClient.connect(server.port, make())  # type: ignore[operator]
        assert await client.is_closed()
        await async_wait_until(lambda: not len(server.network))
        assert server.gauge("failed_authentication_total") == 1
        await server.network.drain(0)

    scenario()
    (line,) = caplog.messages
    assert line.startswith("Closed the connection of 127.0.0.1 to listener SECURE: ")
    assert reason in line


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"ca_pem": Authority().pem}, "it does not trust the certificate of this listener"),
        ({"versions": ("TLSv1.2",)}, "none of the protocol versions in ssl.enabled.protocols"),
    ],
)
def test_a_client_that_rejects_the_server_is_logged_with_the_reason(
    settings: dict[str, object],
    reason: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    @on_a_loop
    async def scenario() -> None:
        server = TlsServer(tmp_path, ssl_enabled_protocols="TLSv1.3")
        context = TlsSettings(**{"ca_pem": castle_authority().pem, **settings}).client_context()
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await asyncio.open_connection(HOST, server.port, ssl=context)
        await async_wait_until(lambda: not len(server.network))
        await server.network.drain(0)

    scenario()
    (line,) = caplog.messages
    assert reason in line


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (frame(*a_list(1)), "it sent plain text, and the listener expects TLS"),
        (b"GET / HTTP/1.1\r\n\r\n", "it speaks HTTP, and this port is for Kafka clients with TLS"),
    ],
)
def test_a_client_without_tls_gets_an_alert(
    content: bytes, reason: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    @on_a_loop
    async def scenario() -> None:
        server = TlsServer(tmp_path)
        sock = await plain_socket(server.port)
        sock.send(content)
        assert (await receive_rest(sock))[:2] == b"\x15\x03"
        sock.close()
        await server.network.drain(0)

    scenario()
    (line,) = caplog.messages
    assert reason in line


@on_a_loop
async def test_a_client_that_only_connects_is_not_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server = TlsServer(tmp_path)
    sock = await plain_socket(server.port)
    await async_wait_until(lambda: len(server.network) == 1)
    sock.close()
    await async_wait_until(lambda: not len(server.network))
    assert caplog.messages == []
    await server.network.drain(0)


@on_a_loop
async def test_a_certificate_with_a_damaged_subject_is_rejected(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server = TlsServer(tmp_path, ssl_client_auth="required")

    def principal_of(_: object) -> None:
        raise ValueError("error parsing asn1 value")

    server.tls.principal_of = principal_of  # type: ignore[assignment, method-assign]
    issued = castle_authority().issue("CN=Alice", ())
    client = await TlsClient.connect(server.port, issued)
    assert await client.is_closed()
    assert not len(server.network.handshakes)
    (message,) = caplog.messages
    assert "the subject of its certificate cannot be read" in message
    await server.network.drain(0)


@on_a_loop
async def test_a_failure_that_repeats_is_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server = TlsServer(tmp_path)
    for _ in range(20):
        sock = await plain_socket(server.port)
        sock.send(frame(*a_list(1)))
        await receive_rest(sock)
        sock.close()
    assert len(caplog.messages) == 1
    assert server.gauge("failed_authentication_total") == 20
    await server.network.drain(0)


# Slow clients, and many


@on_a_loop
async def test_a_handshake_has_a_deadline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tls_handshakes, "TIMEOUT_MS", 50)
    server = TlsServer(tmp_path)
    silent, slow = await plain_socket(server.port), await plain_socket(server.port)
    slow.send(b"\x16\x03\x01\x02\x00")
    assert await receive_rest(silent) == await receive_rest(slow) == b""
    assert sorted(line.partition("SECURE: ")[2] for line in caplog.messages) == [
        "no TLS handshake within 50 ms",
        "no TLS handshake within 50 ms: it sent nothing",
    ]
    silent.close()
    slow.close()
    await server.network.drain(0)


@on_a_loop
async def test_a_thousand_half_open_connections_keep_no_one_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server = TlsServer(tmp_path)
    threads = threading.active_count()
    half_open = [await plain_socket(server.port) for _ in range(1_000)]
    for sock in half_open[::2]:
        sock.send(b"\x16\x03\x01\x02\x00\x01")
    await async_wait_until(lambda: len(server.network.handshakes) == 1_000)
    client = await TlsClient.connect(server.port)
    assert await client.request() == "User:ANONYMOUS"
    assert threading.active_count() <= threads + tls_handshakes.THREADS
    for sock in half_open:
        sock.close()
    await async_wait_until(lambda: len(server.network) == 1)
    assert len(caplog.messages) <= 1
    await server.network.drain(0)


@on_a_loop
async def test_the_oldest_handshake_gives_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tls_handshakes, "MAX_HANDSHAKES", 3)
    server = TlsServer(tmp_path)
    half_open = [await plain_socket(server.port) for _ in range(3)]
    await async_wait_until(lambda: len(server.network.handshakes) == 3)
    client = await TlsClient.connect(server.port)
    assert await client.request() == "User:ANONYMOUS"
    assert await receive_rest(half_open[0]) == b""
    assert len(server.network.handshakes) == 2
    assert "more than 3 TLS handshakes are in progress" in caplog.text
    await server.network.drain(0)
    for sock in half_open:
        assert await receive_rest(sock) == b""
        sock.close()


@on_a_loop
async def test_connections_in_a_handshake_count_as_connections(tmp_path: Path) -> None:
    server = TlsServer(tmp_path)
    server.network.settings = type(server.network.settings)(max_connections_per_ip=2)
    first = [await plain_socket(server.port) for _ in range(2)]
    await async_wait_until(lambda: len(server.network) == 2)
    third = await plain_socket(server.port)
    assert await receive_rest(third) == b""
    for sock in (*first, third):
        sock.close()
    await server.network.drain(0)


@on_a_loop
async def test_a_connection_may_close_during_a_step_of_its_handshake(tmp_path: Path) -> None:
    server = TlsServer(tmp_path)
    hello = client_hello()
    for _ in range(50):
        sock = await plain_socket(server.port)
        sock.send(hello)
        await async_wait_until(lambda: len(server.network) > 0)
        for connection in list(server.network._connections):
            connection.close()
        sock.close()
    client = await TlsClient.connect(server.port)
    assert await client.request() == "User:ANONYMOUS"
    await server.network.drain(0)


def client_hello() -> bytes:
    outgoing = ssl.MemoryBIO()
    context = TlsSettings(ca_pem=castle_authority().pem).client_context()
    end = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        end.do_handshake()
    return outgoing.read()


@on_a_loop
async def test_malformed_handshakes_close_the_connection_and_nothing_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server = TlsServer(tmp_path, ssl_client_auth="requested")
    random = Random(20)
    hello = client_hello()
    for number in range(300):
        sock = await plain_socket(server.port)
        content = bytearray(hello)
        match number % 4:
            case 0:
                content = bytearray(random.randbytes(random.randrange(1, 2_000)))
            case 1:
                for _ in range(random.randrange(1, 20)):
                    content[random.randrange(len(content))] = random.randrange(256)
            case 2:
                content = bytearray(b"\x16\x03\x01" + random.randbytes(random.randrange(40_000)))
            case 3:
                content = content[: random.randrange(1, len(content))] + random.randbytes(300)
        await asyncio.get_running_loop().sock_sendall(sock, content)
        sock.shutdown(socket.SHUT_WR)
        await receive_rest(sock)
        sock.close()
    await async_wait_until(lambda: not len(server.network))
    client = await TlsClient.connect(server.port)
    assert await client.request() == "User:ANONYMOUS"
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []
    assert all(record.exc_info is None for record in caplog.records)
    assert len(server.network.handshakes) == 0
    await server.network.drain(0)


@on_a_loop
async def test_an_endless_handshake_is_bounded_in_bytes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server = TlsServer(tmp_path)
    sock = await plain_socket(server.port)
    hello = client_hello()
    loop = asyncio.get_running_loop()
    # A first message that claims to be long arrives in many records.
    message = b"\x01\x01\x00\x00" + bytes(65_536)
    try:
        await loop.sock_sendall(sock, hello[:3] + b"\x40\x00" + message[:16_384])
        for _ in range(20):
            await loop.sock_sendall(sock, hello[:3] + b"\x40\x00" + bytes(16_384))
    except ConnectionError:
        pass
    await receive_rest(sock)
    await async_wait_until(lambda: not len(server.network))
    assert len(caplog.messages) == 1
    sock.close()
    await server.network.drain(0)


@on_a_loop
async def test_a_tls_client_of_a_plain_listener_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = Server({LIST: name_the_client})
    port = server.network.listen("PLAINTEXT", HOST, 0).port
    server.network.open()
    with pytest.raises((ssl.SSLError, ConnectionError)):
        await TlsClient.connect(port)
    assert "the client speaks TLS, and the listener is PLAINTEXT" in caplog.text
    await server.network.drain(0)
