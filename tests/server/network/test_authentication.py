"""A connection with SASL: what it may send in each state, and what it gets."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from struct import Struct
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.server.harness import (
    LIST,
    Client,
    Server,
    a_list,
    frame,
    name_the_client,
    on_a_loop,
    turns,
)

from barnabas.config import SecurityProtocol
from barnabas.security.authentication.exchange import (
    ConnectionAborted,
    Login,
    LoginFailed,
    ServerExchange,
)
from barnabas.security.authentication.sasl_server import SaslMechanism, SaslServer
from barnabas.security.principal import ANONYMOUS, KafkaPrincipal
from barnabas.server.api import sasl
from barnabas.server.network.authentication import ConnectionAuthentication
from barnabas.server.network.listener_security import ListenerSecurity
from barnabas.server.network.unauthenticated import TIMEOUT_MS
from barnabas.wire.apis import ApiKey
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.sasl import SaslAuthenticateRequest, SaslHandshakeRequest

VERSIONS, HANDSHAKE = ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE
AUTHENTICATE = ApiKey.SASL_AUTHENTICATE
SECOND_NS = 1_000_000_000

_LENGTH = Struct(">i")


class EchoExchange:
    """Logs in as the client says: `user`, or `user,expiry`; `?` is challenged, `!` fails."""

    def __init__(self) -> None:
        self.login: Login | None = None

    async def evaluate(self, message: bytes) -> bytes:
        text = message.decode()
        match text[:1]:
            case "?":
                return b"who are you?"
            case "!":
                raise LoginFailed("wrong", "the reason for the log")
            case "#":
                raise LoginFailed("rejected", "the reason", response=b"json")
            case "~":
                await asyncio.sleep(0)
            case "x":
                raise ConnectionAborted("", "try again")
            case "b":
                raise RuntimeError("a bug")
        user, _, expires_ms = text.lstrip("~").partition(",")
        self.login = Login(KafkaPrincipal("User", user), int(expires_ms) if expires_ms else None)
        return b"welcome"


class SaslNode(Server):
    """A server with two mechanisms, and a clock that the test moves."""

    def __init__(self, *, max_session_ms: int = 0, failure_delay_ms: int = 0) -> None:
        self.now_ns = SECOND_NS
        handlers = {
            HANDSHAKE: sasl.handshake,
            AUTHENTICATE: sasl.authenticate,
            LIST: name_the_client,
        }
        super().__init__(
            handlers, now_ns=lambda: self.now_ns, now_ms=lambda: self.now_ns // 1_000_000
        )
        quorum = SimpleNamespace(kraft_version=1)
        self.broker.controller = cast("Any", SimpleNamespace(quorum=quorum))
        start: Callable[[], ServerExchange] = EchoExchange
        self.sasl = SaslServer(
            {"ECHO": SaslMechanism(start, max_session_ms), "OTHER": SaslMechanism(start, 5_000)},
            max_receive_bytes=1_000,
            failure_delay_ms=failure_delay_ms,
        )

    def connect_sasl(self) -> "SaslTestClient":
        security = ListenerSecurity(SecurityProtocol.SASL_PLAINTEXT, sasl=self.sasl)
        return SaslTestClient(self.connect(security=security))

    @property
    def metrics(self) -> dict[str, float]:
        prefix = "kafka_server_socket_server_metrics_"
        return {gauge.name.removeprefix(prefix): gauge.value for gauge in self.network}


@dataclass(slots=True)
class SaslTestClient:
    """Sends the requests of SASL."""

    wire: Client

    async def versions(self) -> Any:
        await self.wire.send((ApiVersionsRequest(), 0, 1))
        return (await self.wire.receive(VERSIONS, 0))[1]

    async def handshake(self, mechanism: str = "ECHO", version: int = 1) -> Any:
        await self.wire.send((SaslHandshakeRequest(mechanism=mechanism), version, 2))
        return (await self.wire.receive(HANDSHAKE, version))[1]

    async def authenticate(self, message: str, version: int = 2) -> Any:
        await self.wire.send((SaslAuthenticateRequest(auth_bytes=message.encode()), version, 3))
        return (await self.wire.receive(AUTHENTICATE, version))[1]

    async def log_in(self, message: str) -> Any:
        assert (await self.handshake()).error_code == ErrorCode.NONE
        return await self.authenticate(message)

    async def is_served(self) -> bool:
        await self.wire.send(a_list(9))
        try:
            return (await self.wire.receive(LIST, 1))[0] == 9
        except (EOFError, ConnectionResetError):
            return False


@on_a_loop
async def test_a_client_that_authenticates_is_served_with_its_principal() -> None:
    server = SaslNode()
    client = server.connect_sasl()
    await client.versions()
    response = await client.handshake()
    assert (response.error_code, response.mechanisms) == (ErrorCode.NONE, ["ECHO", "OTHER"])
    challenge = await client.authenticate("?")
    assert (challenge.error_code, challenge.auth_bytes) == (ErrorCode.NONE, b"who are you?")
    assert client.wire.connection.principal == ANONYMOUS
    done = await client.authenticate("alice")
    assert (done.error_code, done.auth_bytes) == (ErrorCode.NONE, b"welcome")
    assert done.session_lifetime_ms == 0
    assert client.wire.connection.principal == KafkaPrincipal("User", "alice")
    assert await client.is_served()
    assert server.metrics["successful_authentication_total"] == 1
    assert server.metrics["successful_authentication_no_reauth_total"] == 0
    assert len(server.network.unauthenticated) == 0


@on_a_loop
async def test_an_exchange_may_wait_for_a_thread() -> None:
    client = SaslNode().connect_sasl()
    assert (await client.log_in("~alice")).auth_bytes == b"welcome"
    assert await client.is_served()


@on_a_loop
async def test_clients_that_are_not_authenticated_do_not_use_up_a_quota() -> None:
    """They would share that of ANONYMOUS, and one could delay the logins of all others."""
    server = SaslNode()
    server.broker.quotas.update({(("user", None),): {"request_percentage": 1e-9}})
    client = server.connect_sasl()
    await client.versions()
    assert client.wire.connection.delay is None
    assert not len(server.broker.quotas.request_time.sensors)


@on_a_loop
async def test_no_other_request_is_answered_before_authentication() -> None:
    for steps in range(3):
        client = SaslNode().connect_sasl()
        if steps > 0:
            await client.versions()
        if steps > 1:
            await client.handshake()
        assert not await client.is_served()


@on_a_loop
async def test_requests_behind_the_authentication_are_served_and_behind_a_failure_ignored() -> None:
    server = SaslNode()
    for user, served in (("alice", True), ("!", False)):
        client = server.connect_sasl()
        await client.wire.send(
            (SaslHandshakeRequest(mechanism="ECHO"), 1, 1),
            (SaslAuthenticateRequest(auth_bytes=user.encode()), 2, 2),
            a_list(3),
        )
        await client.wire.receive(HANDSHAKE, 1)
        await client.wire.receive(AUTHENTICATE, 2)
        if served:
            assert (await client.wire.receive(LIST, 1))[0] == 3
        else:
            assert await client.wire.is_closed()


@on_a_loop
async def test_versions_are_requested_once_and_before_the_handshake() -> None:
    client = SaslNode().connect_sasl()
    await client.versions()
    with pytest.raises(EOFError):
        await client.versions()
    client = SaslNode().connect_sasl()
    await client.handshake()
    assert (await client.versions()).error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert await client.wire.is_closed()


@on_a_loop
async def test_an_unsupported_version_of_api_versions_may_be_retried() -> None:
    client = SaslNode().connect_sasl()
    await client.wire.send_bytes(b"\0\0\0\x0a" + b"\0\x12\0\x63" + b"\0\0\0\x07" + b"\xff\xff")
    _, response = await client.wire.receive(VERSIONS, 0)
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert (await client.versions()).error_code == ErrorCode.NONE


@on_a_loop
async def test_a_mechanism_that_is_not_enabled_is_answered_with_those_that_are() -> None:
    client = SaslNode().connect_sasl()
    response = await client.handshake("PLAIN")
    assert response.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert response.mechanisms == ["ECHO", "OTHER"]
    assert await client.wire.is_closed()


@on_a_loop
async def test_a_second_handshake_and_a_token_without_one_are_illegal() -> None:
    client = SaslNode().connect_sasl()
    await client.handshake()
    assert (await client.handshake()).error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert await client.wire.is_closed()
    client = SaslNode().connect_sasl()
    assert (await client.authenticate("alice")).error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert await client.wire.is_closed()


@on_a_loop
async def test_a_failure_is_delayed_then_sent_then_the_connection_is_closed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = SaslNode(failure_delay_ms=3_600_000)
    client = server.connect_sasl()
    await client.handshake()
    asking = asyncio.ensure_future(client.authenticate("!"))
    while not len(server.broker.timer):
        await turns(1)
    assert not asking.done()
    assert not client.wire.connection.is_closed
    (task,) = server.broker.timer._queue.pop_due(2**62)
    task.run()
    response = await asking
    assert response.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert response.error_message == "wrong"
    assert await client.wire.is_closed()
    assert server.metrics["failed_authentication_total"] == 1
    assert "with ECHO failed: the reason for the log" in caplog.text


@on_a_loop
async def test_a_failure_that_repeats_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    server = SaslNode()
    for _ in range(3):
        client = server.connect_sasl()
        await client.handshake()
        await client.authenticate("!")
        assert await client.wire.is_closed()
    assert server.metrics["failed_authentication_total"] == 3
    assert caplog.text.count("with ECHO failed: the reason for the log") == 1


@on_a_loop
async def test_a_mechanism_may_explain_itself_before_the_failure() -> None:
    server = SaslNode()
    client = server.connect_sasl()
    response = await client.log_in("#")
    assert (response.error_code, response.auth_bytes) == (ErrorCode.NONE, b"json")
    assert server.metrics["failed_authentication_total"] == 1
    response = await client.authenticate("alice")
    assert response.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert response.error_message == "rejected"
    assert await client.wire.is_closed()
    assert server.metrics["failed_authentication_total"] == 1


@on_a_loop
async def test_a_client_cannot_forge_a_log_line(caplog: pytest.LogCaptureFixture) -> None:
    client = SaslNode().connect_sasl()
    client_id = "x\nforged" + "y" * 900
    await client.wire.send_bytes(frame(SaslHandshakeRequest(mechanism="a\nb"), 1, 1, client_id))
    await client.wire.receive(HANDSHAKE, 1)
    (message,) = caplog.messages
    assert "\n" not in message
    assert len(message) < 500


@on_a_loop
async def test_a_bug_of_a_mechanism_fails_without_a_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    client = SaslNode().connect_sasl()
    response = await client.log_in("bug")
    assert response.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert "a bug" not in response.error_message
    assert await client.wire.is_closed()
    assert all(record.exc_info is None for record in caplog.records)


@on_a_loop
async def test_a_client_that_should_try_again_is_disconnected_without_a_response() -> None:
    client = SaslNode().connect_sasl()
    with pytest.raises(EOFError):
        await client.log_in("x")


@on_a_loop
async def test_a_large_frame_is_allowed_only_after_authentication(
    caplog: pytest.LogCaptureFixture,
) -> None:
    client = SaslNode().connect_sasl()
    await client.handshake()
    with pytest.raises(EOFError):
        await client.authenticate("a" * 1_001)
    assert "sasl.server.max.receive.size is 1000" in caplog.text
    client = SaslNode().connect_sasl()
    await client.log_in("alice")
    await client.wire.send_bytes(_LENGTH.pack(10_000))
    await turns()
    assert not client.wire.connection.is_closed


@on_a_loop
async def test_a_client_that_does_not_authenticate_in_time_is_disconnected() -> None:
    server = SaslNode()
    idle, slow, done = (server.connect_sasl() for _ in range(3))
    await slow.versions()
    await done.log_in("alice")
    server.now_ns += TIMEOUT_MS * 1_000_000 - 1
    server.network.unauthenticated.close_overdue()
    await slow.handshake()
    server.now_ns += 1
    server.network.unauthenticated.close_overdue()
    assert await idle.wire.is_closed()
    assert await slow.wire.is_closed()
    assert await done.is_served()


@on_a_loop
async def test_sasl_on_a_listener_without_it_and_after_it_is_illegal() -> None:
    plain = SaslTestClient(SaslNode().connect())
    assert (await plain.handshake()).error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert (await plain.authenticate("alice")).error_code == ErrorCode.ILLEGAL_SASL_STATE
    client = SaslNode().connect_sasl()
    await client.log_in("alice")
    assert (await client.handshake()).error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert (await client.authenticate("alice")).error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert await client.is_served()


# Bare tokens


async def exchange_token(client: SaslTestClient, token: bytes) -> bytes:
    await client.wire.send_bytes(_LENGTH.pack(len(token)) + token)
    return await client.wire.receive_frame()


@on_a_loop
async def test_bare_tokens_follow_the_first_version_of_the_handshake() -> None:
    for user in (b"alice", b"~alice"):
        server = SaslNode()
        client = server.connect_sasl()
        assert (await client.handshake(version=0)).error_code == ErrorCode.NONE
        assert await exchange_token(client, b"?") == b"who are you?"
        assert await exchange_token(client, user) == b"welcome"
        assert await client.is_served()
        assert client.wire.connection.principal.name == "alice"
        assert server.metrics["successful_authentication_no_reauth_total"] == 1


@on_a_loop
async def test_a_bare_token_that_fails_closes_the_connection_without_a_response() -> None:
    server = SaslNode()
    client = server.connect_sasl()
    await client.handshake(version=0)
    with pytest.raises(EOFError):
        await exchange_token(client, b"!")
    assert server.metrics["failed_authentication_total"] == 1


@on_a_loop
async def test_a_bug_of_bare_tokens_closes_the_connection(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> None:
        await asyncio.sleep(0)
        raise ZeroDivisionError

    monkeypatch.setattr(ConnectionAuthentication, "evaluate", fail)
    client = SaslNode().connect_sasl()
    await client.handshake(version=0)
    with pytest.raises(EOFError):
        await exchange_token(client, b"?")
    assert "internal error" in caplog.text


# Sessions with an end


@on_a_loop
async def test_the_lifetime_is_the_shorter_of_the_limit_and_the_credential() -> None:
    for limit_ms, message, lifetime_ms in (
        (0, "alice", 0),
        (4_000, "alice", 4_000),
        (4_000, "alice,3000", 2_000),
        (1_000, "alice,3000", 1_000),
        (0, "alice,3000", 2_000),
    ):
        client = SaslNode(max_session_ms=limit_ms).connect_sasl()
        assert (await client.log_in(message)).session_lifetime_ms == lifetime_ms
        assert await client.is_served()


@on_a_loop
async def test_a_credential_that_has_expired_serves_nothing() -> None:
    client = SaslNode().connect_sasl()
    response = await client.log_in("alice,500")
    assert (response.error_code, response.session_lifetime_ms) == (ErrorCode.NONE, 0)
    assert not await client.is_served()


@on_a_loop
async def test_a_session_that_has_expired_is_closed_at_the_next_request() -> None:
    server = SaslNode(max_session_ms=2_000)
    client = server.connect_sasl()
    await client.log_in("alice")
    server.now_ns += 2 * SECOND_NS - 1
    assert await client.is_served()
    server.now_ns += 1
    assert not await client.is_served()
    assert server.metrics["expired_connections_killed_count"] == 1


@on_a_loop
async def test_re_authentication_prolongs_the_session_even_after_its_end() -> None:
    server = SaslNode(max_session_ms=2_000)
    client = server.connect_sasl()
    await client.log_in("alice")
    for _ in range(3):
        server.now_ns += 3 * SECOND_NS
        assert (await client.log_in("alice")).session_lifetime_ms == 2_000
        assert await client.is_served()
    assert server.metrics["successful_reauthentication_total"] == 3
    assert server.metrics["successful_authentication_total"] == 1


@on_a_loop
async def test_re_authentication_is_allowed_once_a_second() -> None:
    server = SaslNode(max_session_ms=2_000)
    client = server.connect_sasl()
    await client.log_in("alice")
    server.now_ns += SECOND_NS - 1
    assert (await client.handshake()).error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert await client.is_served()
    server.now_ns += 1
    assert (await client.log_in("alice")).error_code == ErrorCode.NONE


@on_a_loop
async def test_the_principal_may_not_change() -> None:
    server = SaslNode(max_session_ms=2_000)
    client = server.connect_sasl()
    await client.log_in("alice")
    server.now_ns += SECOND_NS
    response = await client.log_in("carl")
    assert response.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert await client.wire.is_closed()
    assert server.metrics["failed_reauthentication_total"] == 1


@on_a_loop
async def test_the_mechanism_may_not_change() -> None:
    server = SaslNode(max_session_ms=2_000)
    client = server.connect_sasl()
    await client.log_in("alice")
    server.now_ns += SECOND_NS
    assert (await client.handshake("OTHER")).error_code == ErrorCode.NONE
    with pytest.raises(EOFError):
        await client.authenticate("alice")


@on_a_loop
async def test_other_requests_are_not_allowed_during_re_authentication() -> None:
    server = SaslNode(max_session_ms=2_000)
    client = server.connect_sasl()
    await client.log_in("alice")
    server.now_ns += SECOND_NS
    await client.handshake()
    assert not await client.is_served()


# Anything


def test_no_bytes_before_authentication_cause_a_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    frames = st.one_of(
        st.binary(max_size=60).map(lambda content: _LENGTH.pack(len(content)) + content),
        st.sampled_from([HANDSHAKE, AUTHENTICATE, VERSIONS]).flatmap(
            lambda key: st.binary(max_size=40).map(
                lambda rest: _LENGTH.pack(len(rest) + 4) + key.to_bytes(2, "big") + b"\0\1" + rest
            )
        ),
        st.binary(max_size=60),
    )

    @given(st.lists(frames, max_size=4))
    @settings(max_examples=200)
    @on_a_loop
    async def check(sent: list[bytes]) -> None:
        server = SaslNode()
        client = server.connect_sasl()
        await client.wire.send_bytes(b"".join(sent))
        client.wire.socket.shutdown(1)
        await client.wire.receive_rest()
        await turns()
        assert len(server.network) == len(server.network.unauthenticated) == 0
        assert server.network.unauthenticated.buffers.used_bytes == 0

    with caplog.at_level(logging.DEBUG, "barnabas"):
        check()
    assert [record for record in caplog.records if record.exc_info] == []
