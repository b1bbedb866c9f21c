"""Connections are encrypted and authenticated as the settings say, and errors say what is wrong."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.client.cluster.harness import CA, CERTIFICATES, OURS, code_of, request_error
from tests.client.scripted import ScriptedBroker
from tests.net.harness import scram_broker
from tests.server.harness import on_a_loop
from tests.wait import async_wait_until

from barnabas.client.cluster import ClusterClient
from barnabas.client.errors import KafkaError, KafkaException
from barnabas.client.settings import Security
from barnabas.net import peer as peer_module
from barnabas.wire.apis import ApiKey
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from barnabas.wire.messages.groups import ListGroupsRequest, ListGroupsResponse
from barnabas.wire.messages.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

Answers = dict[ApiKey, Callable[[Any], Any]]
LIST: Answers = {ApiKey.LIST_GROUPS: lambda _: ListGroupsResponse()}


@asynccontextmanager
async def a_client(
    broker: ScriptedBroker, host: str = "127.0.0.1", **security: Any
) -> AsyncIterator[ClusterClient]:
    async with broker:
        settings = broker.settings(security=Security(**security))
        cluster = ClusterClient(settings)
        try:
            yield cluster
        finally:
            await cluster.close()


def tls_broker(answers: Answers = LIST, *, requires_certificate: bool = False) -> ScriptedBroker:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATES / "server.pem")
    if requires_certificate:
        context.load_verify_locations(CA)
        context.verify_mode = ssl.CERT_REQUIRED
    return ScriptedBroker(answers, tls=context)


async def raised_error(cluster: ClusterClient) -> tuple[int, str]:
    """The code and text of the error that a request ends with, long before its time is over."""
    with pytest.raises(KafkaException) as caught:
        await cluster.send_request(ListGroupsRequest(), timeout_ms=60_000)
    return code_of(caught), caught.value.args[0].str()


# TLS


@on_a_loop
async def test_requests_go_over_tls() -> None:
    async with a_client(tls_broker(), protocol="SSL", ca_location=CA) as cluster:
        assert isinstance(await cluster.send_request(ListGroupsRequest()), ListGroupsResponse)


@on_a_loop
async def test_large_responses_arrive_complete_over_tls() -> None:
    async def fetch(request: FetchRequest) -> FetchResponse:
        records = bytes([request.max_bytes % 251]) * request.max_bytes
        partition = PartitionData(partition_index=0, records=records, aborted_transactions=None)
        topic = FetchableTopicResponse(topic="t", partitions=[partition])
        return FetchResponse(responses=[topic], throttle_time_ms=0)

    broker = tls_broker({ApiKey.FETCH: fetch})
    async with a_client(broker, protocol="SSL", ca_location=CA) as cluster:
        for size in (0, 10, 70_000, 1 << 20, 3 << 20):
            future = asyncio.get_running_loop().create_future()
            await cluster.describe([], timeout_ms=30_000)
            cluster.refresh()
            await async_wait_until(lambda: cluster.metadata.brokers)
            cluster.send(1, FetchRequest(max_bytes=size), 30_000, future.set_result)
            response = await future
            assert response.responses[0].partitions[0].records == bytes([size % 251]) * size


@on_a_loop
async def test_certificates_may_be_given_as_text() -> None:
    async with a_client(
        tls_broker(requires_certificate=True),
        protocol="SSL",
        ca_pem=Path(CA).read_text(),
        certificate_pem=Path(OURS).read_text(),
        key_pem=Path(OURS).read_text(),
    ) as cluster:
        await cluster.send_request(ListGroupsRequest())


@on_a_loop
async def test_a_broker_may_require_a_client_certificate() -> None:
    broker = tls_broker(requires_certificate=True)
    async with a_client(
        broker, protocol="SSL", ca_location=CA, certificate_location=OURS, key_location=OURS
    ) as cluster:
        await cluster.send_request(ListGroupsRequest())
    async with a_client(
        tls_broker(requires_certificate=True), protocol="SSL", ca_location=CA
    ) as cluster:
        with pytest.raises(KafkaException):
            await cluster.send_request(ListGroupsRequest(), timeout_ms=300)


@on_a_loop
async def test_a_certificate_of_an_unknown_authority_is_rejected() -> None:
    async with a_client(tls_broker(), protocol="SSL") as cluster:
        code, text = await raised_error(cluster)
        assert code == KafkaError._SSL
        assert "127.0.0.1:" in text
        assert "certificate" in text


@on_a_loop
async def test_certificates_are_ignored_without_verification() -> None:
    async with a_client(tls_broker(), protocol="SSL", verify_certificates=False) as cluster:
        await cluster.send_request(ListGroupsRequest())


@on_a_loop
async def test_a_broker_that_expects_plaintext_is_reported() -> None:
    async with a_client(ScriptedBroker(LIST), protocol="SSL", ca_location=CA) as cluster:
        code, text = await raised_error(cluster)
        assert code == KafkaError._SSL
        assert "TLS" in text


@on_a_loop
async def test_a_broker_that_expects_tls_is_reported() -> None:
    async with a_client(tls_broker()) as cluster:
        error = await request_error(cluster, r"is security\.protocol right")
        assert error == KafkaError._ALL_BROKERS_DOWN


@on_a_loop
async def test_missing_files_are_reported_at_once() -> None:
    for settings in ({"ca_location": "/no/such/file"}, {"certificate_location": "/no/such/file"}):
        with pytest.raises(KafkaException, match="ssl") as caught:
            async with a_client(ScriptedBroker(), protocol="SSL", **settings):
                pass
        assert code_of(caught) == KafkaError._SSL


# SASL


class Guard:
    """The broker's side of SASL."""

    def __init__(self, *mechanisms: str, lifetime_ms: int = 0) -> None:
        self._mechanisms = list(mechanisms)
        self._lifetime_ms = lifetime_ms
        self.entered = 0
        self.secret = "secret"
        self._scram: Any = None

    @property
    def answers(self) -> Answers:
        return {
            **LIST,
            ApiKey.SASL_HANDSHAKE: self._handshake,
            ApiKey.SASL_AUTHENTICATE: self._authenticate,
        }

    def _handshake(self, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
        if request.mechanism not in self._mechanisms:
            code = ErrorCode.UNSUPPORTED_SASL_MECHANISM
            return SaslHandshakeResponse(error_code=code, mechanisms=self._mechanisms)
        self._scram = None
        if request.mechanism.startswith("SCRAM"):
            digest = request.mechanism.removeprefix("SCRAM-").replace("-", "").lower()
            self._scram = scram_broker(digest, self.secret)
            next(self._scram)
        return SaslHandshakeResponse(error_code=0, mechanisms=self._mechanisms)

    def _authenticate(self, request: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
        if self._scram is not None:
            word = self._scram.send(request.auth_bytes)
            self.entered += word.startswith(b"v=")
            return self._welcome(word)
        if request.auth_bytes not in (
            f"\0user\0{self.secret}".encode(),
            f"n,,\x01auth=Bearer {self.secret}\x01\x01".encode(),
        ):
            return SaslAuthenticateResponse(
                error_code=ErrorCode.SASL_AUTHENTICATION_FAILED,
                error_message="Authentication failed: Invalid username or password",
                auth_bytes=b"",
            )
        self.entered += 1
        return self._welcome(b"")

    def _welcome(self, word: bytes) -> SaslAuthenticateResponse:
        return SaslAuthenticateResponse(
            error_code=0,
            error_message=None,
            auth_bytes=word,
            session_lifetime_ms=self._lifetime_ms,
        )


def as_user(mechanism: str = "PLAIN", password: str = "secret") -> dict[str, Any]:
    return {
        "protocol": "SASL_PLAINTEXT",
        "mechanism": mechanism,
        "username": "user",
        "password": password,
    }


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_sasl_authenticates_with_name_and_password(mechanism: str) -> None:
    @on_a_loop
    async def scenario() -> None:
        guard = Guard(mechanism)
        broker = ScriptedBroker(guard.answers)
        async with a_client(broker, **as_user(mechanism)) as cluster:
            await cluster.send_request(ListGroupsRequest())
            assert guard.entered == 1
            assert [each.key for each in broker.received[:3]] == [
                ApiKey.API_VERSIONS,
                ApiKey.SASL_HANDSHAKE,
                ApiKey.SASL_AUTHENTICATE,
            ]

    scenario()


@on_a_loop
async def test_sasl_goes_over_tls_too() -> None:
    guard = Guard("PLAIN")
    security = {**as_user(), "protocol": "SASL_SSL", "ca_location": CA}
    async with a_client(tls_broker(guard.answers), **security) as cluster:
        await cluster.send_request(ListGroupsRequest())
        assert guard.entered == 1


@on_a_loop
async def test_the_token_of_the_oauth_callback_is_sent() -> None:
    guard = Guard("OAUTHBEARER")
    configs: list[str] = []

    def fetch(config: str) -> tuple[str, float]:
        configs.append(config)
        return "secret", 4e9

    security = {
        "protocol": "SASL_PLAINTEXT",
        "mechanism": "OAUTHBEARER",
        "oauth_cb": fetch,
        "oauthbearer_config": "scope=a",
    }
    async with a_client(ScriptedBroker(guard.answers), **security) as cluster:
        await cluster.send_request(ListGroupsRequest())
        assert guard.entered == 1
        assert configs == ["scope=a"]


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_a_wrong_password_is_reported_at_once(mechanism: str) -> None:
    @on_a_loop
    async def scenario() -> None:
        broker = ScriptedBroker(Guard(mechanism).answers)
        async with a_client(broker, **as_user(mechanism, "wrong")) as cluster:
            code, text = await raised_error(cluster)
            assert code == KafkaError._AUTHENTICATION
            assert f"127.0.0.1:{broker.port}: " in text

    scenario()


@on_a_loop
async def test_a_disabled_mechanism_is_reported_with_the_enabled_ones() -> None:
    broker = ScriptedBroker(Guard("SCRAM-SHA-512", "OAUTHBEARER").answers)
    async with a_client(broker, **as_user()) as cluster:
        code, text = await raised_error(cluster)
        assert code == KafkaError._AUTHENTICATION
        assert "PLAIN is not enabled there; enabled are SCRAM-SHA-512, OAUTHBEARER" in text


@on_a_loop
async def test_a_broker_without_sasl_is_reported() -> None:
    async with a_client(ScriptedBroker(LIST), **as_user()) as cluster:
        _, text = await raised_error(cluster)
        assert "does not serve SaslHandshake" in text


@on_a_loop
async def test_new_credentials_are_used_for_new_connections() -> None:
    guard = Guard("PLAIN")
    broker = ScriptedBroker(guard.answers)
    async with a_client(broker, **as_user()) as cluster:
        await cluster.send_request(ListGroupsRequest())
        guard.secret = "other"
        cluster.set_sasl_credentials("user", "other")
        broker.hang_up()
        await cluster.send_request(ListGroupsRequest())
        assert guard.entered == 2


@on_a_loop
async def test_a_session_is_reauthenticated_before_it_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(peer_module, "_REAUTHENTICATION_WINDOW", (0.1, 0.1))
    guard = Guard("SCRAM-SHA-256", lifetime_ms=200)
    broker = ScriptedBroker(guard.answers)
    async with a_client(broker, **as_user("SCRAM-SHA-256")) as cluster:
        while guard.entered < 4:
            await cluster.send_request(ListGroupsRequest())
        assert broker.connects == 1
