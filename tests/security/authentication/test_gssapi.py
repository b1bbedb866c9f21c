"""GSSAPI with a real realm: a server and clients of the test, then a broker and our client."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.security.authentication.kdc import REALM, Realm, a_realm, missing

import barnabas
from barnabas.net.gssapi_login import KerberosLogin
from barnabas.net.sasl import AuthenticationFailed
from barnabas.security.authentication.errors import SaslConfigError
from barnabas.security.authentication.exchange import Login, LoginFailed
from barnabas.security.authentication.gssapi_exchange import KerberosAcceptor
from barnabas.testing import Broker
from barnabas.testing.ports import free_port

pytestmark = pytest.mark.skipif(missing() is not None, reason=f"not installed: {missing()}")

SERVICE = f"kafka/localhost@{REALM}"
KRB5 = "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true "


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Realm]:
    with (
        a_realm(tmp_path_factory.mktemp("realm")) as running,
        pytest.MonkeyPatch.context() as patch,
    ):
        for name in ("KRB5_CONFIG", "KRB5CCNAME", "KRB5RCACHEDIR"):
            patch.setenv(name, running.environment[name])
        yield running


@pytest.fixture(scope="module")
def service_key(realm: Realm) -> Path:
    return realm.add_key("kafka/localhost")


@pytest.fixture(scope="module")
def alice_key(realm: Realm) -> Path:
    return realm.add_key("alice")


async def log_in(acceptor: KerberosAcceptor, login: KerberosLogin) -> Login | None:
    client, server = await login.exchange("localhost"), acceptor.start()
    message = next(client)
    while True:
        response = await server.evaluate(message)
        try:
            message = client.send(response)
        except StopIteration:
            return server.login


def test_a_client_with_a_ticket_is_authenticated(service_key: Path, alice_key: Path) -> None:
    acceptor = KerberosAcceptor(SERVICE, str(service_key), ["DEFAULT"])
    for principal in (f"alice@{REALM}", None):
        login = asyncio.run(log_in(acceptor, KerberosLogin("kafka", principal, str(alice_key))))
        assert login is not None
        assert str(login.principal) == "User:alice"


def test_a_principal_without_a_rule_fails(service_key: Path, alice_key: Path) -> None:
    acceptor = KerberosAcceptor(SERVICE, str(service_key), ["RULE:[2:$1]"])
    with pytest.raises(LoginFailed) as failed:
        asyncio.run(log_in(acceptor, KerberosLogin("kafka", "alice", str(alice_key))))
    assert "no rule" in failed.value.reason
    assert "alice" not in failed.value.message


def test_a_service_that_the_realm_does_not_have_is_an_error_of_the_client(
    realm: Realm, alice_key: Path
) -> None:
    with pytest.raises(AuthenticationFailed, match="no Kerberos ticket"):
        asyncio.run(KerberosLogin("unknown", "alice", str(alice_key)).exchange("localhost"))


@pytest.mark.parametrize("messages", [[b""], [b"x" * 100], [b"`\x82\x01\x00" + bytes(260)]])
def test_malformed_tokens_only_fail(service_key: Path, messages: list[bytes]) -> None:
    exchange = KerberosAcceptor(SERVICE, str(service_key), ["DEFAULT"]).start()
    for message in messages:
        with pytest.raises(LoginFailed):
            asyncio.run(exchange.evaluate(message))
        with pytest.raises(LoginFailed):
            asyncio.run(exchange.evaluate(message))
    assert exchange.login is None


@pytest.fixture(scope="module")
def recorded_token(service_key: Path, alice_key: Path) -> bytes:
    """The first token of a client, which proves who it is."""
    login = KerberosLogin("kafka", "alice", str(alice_key))
    return bytes(next(asyncio.run(login.exchange("localhost"))))


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_changed_token_only_fails(
    data: st.DataObject, service_key: Path, recorded_token: bytes
) -> None:
    acceptor = KerberosAcceptor(SERVICE, str(service_key), ["DEFAULT"])
    token = bytearray(recorded_token)
    for position in data.draw(st.lists(st.integers(0, len(token) - 1), max_size=4)):
        token[position] ^= data.draw(st.integers(1, 255))
    token = token[: data.draw(st.integers(0, len(token) - 1))]
    exchange = acceptor.start()
    with pytest.raises(LoginFailed):
        asyncio.run(exchange.evaluate(bytes(token)))
    assert exchange.login is None


@settings(deadline=None)
@given(choice=st.binary(max_size=100))
def test_an_arbitrary_choice_of_a_security_layer_only_fails(
    choice: bytes, service_key: Path, alice_key: Path
) -> None:
    acceptor = KerberosAcceptor(SERVICE, str(service_key), ["DEFAULT"])

    async def scenario() -> None:
        client = await KerberosLogin("kafka", "alice", str(alice_key)).exchange("localhost")
        exchange = acceptor.start()
        client.send(await exchange.evaluate(next(client)))
        await exchange.evaluate(b"")
        with pytest.raises(LoginFailed):
            await exchange.evaluate(choice)
        assert exchange.login is None

    asyncio.run(scenario())


def test_a_recorded_token_cannot_be_replayed(service_key: Path, alice_key: Path) -> None:
    acceptor = KerberosAcceptor(SERVICE, str(service_key), ["DEFAULT"])

    async def replay() -> None:
        client = await KerberosLogin("kafka", "alice", str(alice_key)).exchange("localhost")
        token = next(client)
        await acceptor.start().evaluate(token)
        await acceptor.start().evaluate(token)

    with pytest.raises(LoginFailed):
        asyncio.run(replay())


def test_a_server_without_its_key_is_an_error(service_key: Path, tmp_path: Path) -> None:
    with pytest.raises(SaslConfigError, match="does not exist"):
        KerberosAcceptor(SERVICE, str(tmp_path / "none"), ["DEFAULT"])
    with pytest.raises(SaslConfigError, match="cannot be used"):
        KerberosAcceptor(f"other/localhost@{REALM}", str(service_key), ["DEFAULT"])
    with pytest.raises(SaslConfigError, match="neither DEFAULT nor RULE"):
        KerberosAcceptor(SERVICE, str(service_key), ["nonexistent"])


def test_a_broker_serves_a_client_with_a_ticket(service_key: Path, alice_key: Path) -> None:
    jaas = f'{KRB5}keyTab="{service_key}" principal="{SERVICE}" serviceName="kafka";'
    port = free_port()
    with Broker(
        {
            "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
            "advertised.listeners": f"PLAINTEXT://localhost:{port}",
            "sasl.enabled.mechanisms": "GSSAPI",
            "listener.name.plaintext.gssapi.sasl.jaas.config": jaas,
        },
        port=port,
    ) as broker:
        broker.create_topic("t", 1)
        failures: list[object] = []
        producer = barnabas.Producer(
            {
                "bootstrap.servers": f"localhost:{port}",
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "GSSAPI",
                "sasl.kerberos.principal": "alice",
                "sasl.kerberos.keytab": str(alice_key),
            }
        )
        producer.produce("t", b"x", on_delivery=lambda error, _: failures.append(error))
        producer.flush(30)
        assert failures == [None]
