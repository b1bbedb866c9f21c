"""Every client library with every mechanism over TLS against one secured broker: right, and wrong
in every way. A wrong client gets its own clear error, the log says why, and nothing is served.

Certificates that a client does not trust, and TLS without SASL, are in test_tls.py; Kafka's own
client is in test_java_sasl.py.
"""

import asyncio
import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from tests.conformance.secured_broker import (
    ALLOWED_TOPIC,
    GROUP,
    MECHANISMS,
    PASSWORD,
    SCRAM,
    SecuredBroker,
    listener_settings,
    secured_broker,
)
from tests.conformance.secured_clients import CONSUMERS, PRODUCERS
from tests.conformance.tls_clients import TIMEOUT_S, Connection, ConnectionFailed, Login
from tests.security.authentication.kdc import REALM, a_realm, missing
from tests.tls_certificates import Authority, castle_authority
from tests.wait import wait_until

from barnabas import KafkaException, TopicPartition, aio
from barnabas.admin import AclOperation, AdminClient
from barnabas.testing import Broker

every_library = pytest.mark.parametrize("library", list(PRODUCERS))
every_mechanism = pytest.mark.parametrize("mechanism", MECHANISMS)

LOGIN_ERRORS = {
    "confluent_kafka": "_AUTHENTICATION",
    "barnabas": "_AUTHENTICATION",
    "aiokafka": "Unable to bootstrap",
    "kafka-python": "KafkaTimeoutError('Unable to bootstrap",
}
"""The last two name the reason in their logs alone. kafka-python 3.0 connects again after every
failure until its timeout, and may drop the response that arrives together with the end of the
connection. Its error is the same against the real Kafka 4.3.1."""


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    with secured_broker(tmp_path_factory.mktemp("matrix")) as running:
        yield running


# Right


@every_library
@pytest.mark.parametrize("mechanism", [*MECHANISMS, "certificate"])
def test_a_client_that_is_right_produces_and_consumes(
    library: str, mechanism: str, secured: SecuredBroker
) -> None:
    topic = secured.create_topic(f"right-{library}-{mechanism}", "alice")
    is_login = mechanism in MECHANISMS
    connection = secured.login(mechanism) if is_login else secured.tls
    with PRODUCERS[library](connection) as send:
        send(topic, b"over TLS")
    assert CONSUMERS[library](connection, topic) == b"over TLS"


@pytest.mark.parametrize("mechanism", SCRAM)
def test_our_client_uses_a_delegation_token(mechanism: str, secured: SecuredBroker) -> None:
    """The other libraries for Python cannot log in with one."""
    topic = secured.create_topic(f"token-{mechanism}", "alice")
    alice = AdminClient(secured.login(mechanism).librdkafka_settings)
    token = alice.create_delegation_token().result(30)
    login = Login(mechanism, token.token_id, token.password, is_delegation_token=True)
    connection = secured.connection.with_changes(login=login)
    with PRODUCERS["barnabas"](connection) as send:
        send(topic, b"with a token")
    assert CONSUMERS["barnabas"](connection, topic) == b"with a token"


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_our_asyncio_clients_log_in(mechanism: str, secured: SecuredBroker) -> None:
    topic = secured.create_topic(f"asyncio-{mechanism}", "alice")
    settings = secured.login(mechanism).librdkafka_settings

    async def scenario() -> bytes | None:
        async with aio.AdminClient(settings) as admin:
            assert topic in (await admin.list_topics()).topics
        async with aio.Producer(settings) as producer:
            await (await producer.produce(topic, b"from asyncio"))
        consumer = aio.Consumer({**settings, "group.id": GROUP})
        await consumer.assign([TopicPartition(topic, 0, 0)])
        try:
            message = await consumer.poll(TIMEOUT_S)
        finally:
            await consumer.close()
        assert message is not None
        return message.value()

    assert asyncio.run(scenario()) == b"from asyncio"


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_our_asyncio_clients_get_the_error_of_a_wrong_password(
    mechanism: str, secured: SecuredBroker
) -> None:
    wrong = secured.login(mechanism, password="guessed")
    settings = {**wrong.librdkafka_settings, "client.id": "asyncio"}  # is logged by itself

    async def scenario() -> None:
        async with aio.AdminClient(settings) as admin:
            await admin.list_topics(timeout=TIMEOUT_S)

    with pytest.raises(KafkaException, match="_AUTHENTICATION"):
        asyncio.run(scenario())


# Wrong credentials


def require_failure(
    library: str,
    connection: Connection,
    secured: SecuredBroker,
    *,
    line: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The client cannot log in: it says so itself, the log says why, and nothing is served."""
    logins = secured.successful_logins()
    with (
        caplog.at_level(logging.WARNING),
        pytest.raises(ConnectionFailed) as failed,
        PRODUCERS[library](connection) as send,
    ):
        send(ALLOWED_TOPIC, b"never")
    assert LOGIN_ERRORS[library] in str(failed.value)
    wait_until(lambda: line in caplog.text, line)
    assert PASSWORD not in caplog.text
    assert "Traceback" not in caplog.text
    assert secured.successful_logins() == logins
    assert secured.end_offset(ALLOWED_TOPIC) == 0


@every_library
@pytest.mark.parametrize("mechanism", ["PLAIN", *SCRAM])
@pytest.mark.parametrize(
    ("user", "problem"), [("alice", "has another password"), ("nobody", "is unknown")]
)
def test_wrong_credentials_are_an_error_that_only_the_log_explains(
    library: str,
    mechanism: str,
    user: str,
    problem: str,
    secured: SecuredBroker,
    caplog: pytest.LogCaptureFixture,
) -> None:
    connection = secured.login(mechanism, user, "guessed")
    line = f"with {mechanism} failed: user '{user}' {problem}"
    require_failure(library, connection, secured, line=line, caplog=caplog)
    assert "guessed" not in caplog.text


@every_library
@pytest.mark.parametrize(
    ("flaw", "problem"),
    [("expired", "ExpiredSignatureError"), ("signed by another", "InvalidSignatureError")],
)
def test_a_token_that_is_not_valid_is_an_error(
    library: str,
    flaw: str,
    problem: str,
    secured: SecuredBroker,
    caplog: pytest.LogCaptureFixture,
) -> None:
    issuer = secured
    if flaw == "signed by another":
        issuer = replace(secured, issuer_key=ec.generate_private_key(ec.SECP256R1()))
    token = issuer.token("alice", -3600 if flaw == "expired" else 3600)
    connection = secured.connection.with_changes(login=Login("OAUTHBEARER", "alice", "", token))
    line = f"with OAUTHBEARER failed: the token is not valid: {problem}"
    require_failure(library, connection, secured, line=line, caplog=caplog)
    assert token not in caplog.text


@every_library
def test_a_password_is_not_sent_to_a_broker_of_an_unknown_authority(
    library: str, secured: SecuredBroker, tmp_path: Path
) -> None:
    ca = Authority("CN=Other").write_pem(tmp_path, "other")
    connection = secured.login("PLAIN").with_changes(ca=ca)
    logins = secured.successful_logins()
    with pytest.raises(ConnectionFailed) as failed, PRODUCERS[library](connection) as send:
        send(ALLOWED_TOPIC, b"never")
    has_reason = library in ("confluent_kafka", "barnabas")
    assert ("certificate" if has_reason else LOGIN_ERRORS[library]) in str(failed.value)
    assert secured.successful_logins() == logins


# Permissions


@every_library
@pytest.mark.parametrize("mechanism", ["PLAIN", "OAUTHBEARER", "certificate"])
def test_a_client_without_a_permission_gets_an_error_and_no_records(
    library: str, mechanism: str, secured: SecuredBroker, caplog: pytest.LogCaptureFixture
) -> None:
    """Some clients wait forever for a topic that they may not describe."""
    topic = secured.create_topic(f"denied-{library}-{mechanism}", "bob")
    secured.allow(topic, "alice", AclOperation.DESCRIBE)
    with PRODUCERS["barnabas"](secured.login("PLAIN", "bob")) as send:
        send(topic, b"secret")
    connection = secured.tls if mechanism == "certificate" else secured.login(mechanism)
    with caplog.at_level(logging.INFO):
        with pytest.raises(ConnectionFailed) as failed, PRODUCERS[library](connection) as send:
            send(topic, b"never")
        assert is_authorization_error(failed.value)
        with pytest.raises(ConnectionFailed) as failed:
            CONSUMERS[library](connection, topic)
        assert is_authorization_error(failed.value)
    for operation in ("WRITE", "READ"):
        assert (
            f"Principal = User:alice is Denied operation = {operation} from host = 127.0.0.1 "
            f"on resource = Topic:LITERAL:{topic}" in caplog.text
        )
    assert secured.end_offset(topic) == 1


def is_authorization_error(error: Exception) -> bool:
    return "topicauthorizationfailed" in str(error).replace("_", "").lower()


@every_library
def test_a_permission_that_is_revoked_holds_no_longer_for_open_connections(
    library: str, secured: SecuredBroker
) -> None:
    topic = secured.create_topic(f"revoked-{library}", "alice")
    with PRODUCERS[library](secured.login("SCRAM-SHA-512")) as send:
        send(topic, b"allowed")
        secured.revoke(topic, "alice")
        with pytest.raises(ConnectionFailed) as failed:
            send(topic, b"denied")
    assert is_authorization_error(failed.value)
    assert secured.end_offset(topic) == 1


@every_library
def test_a_user_who_is_deleted_keeps_open_connections_and_gets_no_new_ones(
    library: str, secured: SecuredBroker, caplog: pytest.LogCaptureFixture
) -> None:
    """As in Kafka: see Sessions in docs/security.md."""
    user = f"deleted-{library}"
    secured.alter_scram_user(user)
    topic = secured.create_topic(user, user)
    connection = secured.login("SCRAM-SHA-256", user)
    with PRODUCERS[library](connection) as send:
        send(topic, b"before")
        secured.alter_scram_user(user, is_removed=True)
        send(topic, b"after")
    line = f"with SCRAM-SHA-256 failed: user '{user}' is unknown"
    require_failure(library, connection, secured, line=line, caplog=caplog)


# Kerberos


@pytest.fixture(scope="module")
def kerberos(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    """The connection of a user with a ticket, to a broker with GSSAPI over TLS."""
    if reason := missing():
        pytest.skip(f"not installed: {reason}")
    folder = tmp_path_factory.mktemp("kerberos")
    with a_realm(folder) as realm, pytest.MonkeyPatch.context() as patch:
        for name in ("KRB5_CONFIG", "KRB5CCNAME", "KRB5RCACHEDIR"):
            patch.setenv(name, realm.environment[name])
        service, alice = realm.add_key("kafka/localhost"), realm.add_key("alice")
        realm.run("kinit", "-k", "-t", str(alice), "alice")
        settings = listener_settings(folder, "SASL_SSL") | {
            "sasl.enabled.mechanisms": "GSSAPI",
            "listener.name.plaintext.gssapi.sasl.jaas.config": "com.sun.security.auth.module."
            f'Krb5LoginModule required useKeyTab=true keyTab="{service}" '
            f'principal="kafka/localhost@{REALM}" serviceName="kafka";',
            "allow.everyone.if.no.acl.found": "true",
        }
        with Broker(settings) as broker:
            broker.create_topic("tickets", 1)
            port = broker._node.listeners[0].port
            yield Connection(
                f"localhost:{port}",
                castle_authority().write_pem(folder),
                login=Login("GSSAPI", ""),
            )


@pytest.mark.parametrize("library", ["kafka-python", "aiokafka", "barnabas"])
def test_a_client_with_a_ticket_produces_and_consumes(library: str, kerberos: Connection) -> None:
    """The wheels of confluent_kafka are built without Kerberos."""
    with PRODUCERS[library](kerberos) as send:
        send("tickets", b"with a ticket")
    assert CONSUMERS[library](kerberos, "tickets") == b"with a ticket"


@pytest.mark.parametrize("library", ["kafka-python", "aiokafka", "barnabas"])
def test_a_client_without_a_ticket_gets_its_own_error(
    library: str, kerberos: Connection, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{tmp_path / 'none'}")
    reason = "Unable to bootstrap" if library == "kafka-python" else "No credentials were supplied"
    with pytest.raises(Exception, match=reason), PRODUCERS[library](kerberos) as send:
        send("tickets", b"never")
