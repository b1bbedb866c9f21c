"""Real clients log in to a real broker over SASL_PLAINTEXT, with right and wrong credentials."""

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import Any

import aiokafka
import aiokafka.abc
import confluent_kafka
import kafka
import kafka.errors
import kafka.net.sasl.oauth
import pytest
from tests.security.authentication.brokers import (
    PASSWORD,
    USER,
    add_scram_user,
    delete_scram_user,
    sasl_broker,
)
from tests.wait import wait_until

import barnabas
import barnabas.admin
from barnabas.security.authentication.unsecured_jwt import unsecured_token
from barnabas.security.scram_credentials import ScramMechanismCode
from barnabas.testing import Broker

TIMEOUT_S = 20
TOPIC = "t"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")


class WrongCredentialsError(Exception):
    """The client's own error says that its credentials are wrong."""


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with sasl_broker() as running:
        add_scram_user(running, USER, PASSWORD)
        running.create_topic(TOPIC, 1)
        yield running


def a_token(user: str) -> tuple[str, float]:
    """Returns a token, with a claim of the wrong type unless it is for the user."""
    claim = "String" if user == USER else "List"
    return unsecured_token({f"unsecuredLogin{claim}Claim_sub": user}, time.time())


def produce_with_confluent(address: str, mechanism: str, user: str, password: str) -> None:
    errors: list[confluent_kafka.KafkaError] = []
    producer = confluent_kafka.Producer(
        confluent_settings(address, mechanism, user, password)
        | {"error_cb": errors.append, "logger": None}
    )
    produce(producer, errors, confluent_kafka.KafkaError._AUTHENTICATION)


def produce_with_ours(address: str, mechanism: str, user: str, password: str) -> None:
    errors: list[barnabas.KafkaError] = []
    producer = barnabas.Producer(
        confluent_settings(address, mechanism, user, password) | {"error_cb": errors.append}
    )
    produce(producer, errors, barnabas.KafkaError._AUTHENTICATION)


def confluent_settings(address: str, mechanism: str, user: str, password: str) -> dict[str, object]:
    login: dict[str, object] = {"sasl.username": user, "sasl.password": password}
    if mechanism == "OAUTHBEARER":
        login = {"oauth_cb": lambda _: a_token(user)}
    return {
        "bootstrap.servers": address,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        **login,
    }


def produce(producer, errors, code) -> None:  # type: ignore[no-untyped-def]
    """Produces with either of the two clients that have the API of confluent_kafka."""
    delivered: list[object] = []
    producer.produce(TOPIC, b"x", on_delivery=lambda error, _: delivered.append(error))
    deadline_s = time.monotonic() + TIMEOUT_S
    while not delivered and time.monotonic() < deadline_s:
        producer.poll(0.05)
        if any(error.code() == code for error in errors):
            producer.purge()
            raise WrongCredentialsError
    assert delivered == [None]


class KafkaPythonTokens(kafka.net.sasl.oauth.AbstractTokenProvider):
    def __init__(self, user: str) -> None:
        super().__init__()
        self._user = user

    def token(self) -> str:
        return a_token(self._user)[0]


def produce_with_kafka_python(address: str, mechanism: str, user: str, password: str) -> None:
    login = {"sasl_plain_username": user, "sasl_plain_password": password}
    producer = None
    try:
        producer = kafka.KafkaProducer(
            bootstrap_servers=address,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism=mechanism,
            bootstrap_timeout_ms=1_000,
            **(
                {"sasl_oauth_token_provider": KafkaPythonTokens(user)}
                if mechanism == "OAUTHBEARER"
                else login
            ),
        )
        producer.send(TOPIC, b"x").get(TIMEOUT_S)
    except (
        kafka.errors.SaslAuthenticationFailedError,
        kafka.errors.KafkaTimeoutError,
    ) as error:
        raise WrongCredentialsError from error
    finally:
        if producer is not None:
            producer.close(timeout=1)


class AioTokens(aiokafka.abc.AbstractTokenProvider):
    def __init__(self, user: str) -> None:
        self._user = user

    async def token(self) -> str:
        return a_token(self._user)[0]


def produce_with_aiokafka(address: str, mechanism: str, user: str, password: str) -> None:
    async def run() -> None:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=address,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism=mechanism,
            sasl_plain_username=user,
            sasl_plain_password=password,
            sasl_oauth_token_provider=AioTokens(user),
        )
        try:
            await producer.start()
            await asyncio.wait_for(producer.send_and_wait(TOPIC, b"x"), TIMEOUT_S)
        except aiokafka.errors.KafkaError as error:
            raise WrongCredentialsError from error
        finally:
            await producer.stop()

    asyncio.run(run())


CLIENTS = (
    produce_with_confluent,
    produce_with_ours,
    produce_with_kafka_python,
    produce_with_aiokafka,
)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_with_the_right_credentials_is_served(
    broker: Broker, client: Callable[[str, str, str, str], None], mechanism: str
) -> None:
    client(broker.bootstrap_servers, mechanism, USER, PASSWORD)


def test_a_client_logs_in_with_a_delegation_token_and_may_not_create_others() -> None:
    with sasl_broker(delegation_token_secret_key="of all nodes") as broker:
        broker.create_topic(TOPIC, 1)
        login = confluent_settings(broker.bootstrap_servers, "PLAIN", USER, PASSWORD)
        token = barnabas.admin.AdminClient(login).create_delegation_token().result()
        scram = "org.apache.kafka.common.security.scram.ScramLoginModule required"
        with_token = {
            "bootstrap.servers": broker.bootstrap_servers,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.jaas.config": f'{scram} username="{token.token_id}" password="{token.password}" '
            'tokenauth="true";',
        }
        producer = barnabas.Producer(with_token)
        produce(producer, [], barnabas.KafkaError._AUTHENTICATION)
        with pytest.raises(barnabas.KafkaException, match="DELEGATION_TOKEN_REQUEST_NOT_ALLOWED"):
            barnabas.admin.AdminClient(with_token).create_delegation_token().result()


def test_a_scram_user_that_is_deleted_cannot_log_in_again() -> None:
    with sasl_broker() as broker:
        broker.create_topic(TOPIC, 1)
        add_scram_user(broker, USER, PASSWORD)
        produce_with_ours(broker.bootstrap_servers, "SCRAM-SHA-256", USER, PASSWORD)
        delete_scram_user(broker, USER, ScramMechanismCode.SCRAM_SHA_256)
        with pytest.raises(WrongCredentialsError):
            produce_with_ours(broker.bootstrap_servers, "SCRAM-SHA-256", USER, PASSWORD)
        produce_with_ours(broker.bootstrap_servers, "SCRAM-SHA-512", USER, PASSWORD)


@pytest.mark.parametrize("module", [confluent_kafka, barnabas])
def test_a_client_re_authenticates_before_its_session_ends(module: Any) -> None:
    """Each re-authentication is on the same connection, and no request fails."""
    with sasl_broker(connections_max_reauth_ms="1500") as broker:
        broker.create_topic(TOPIC, 1)
        failures: list[object] = []
        producer = module.Producer(
            confluent_settings(broker.bootstrap_servers, "PLAIN", USER, PASSWORD)
        )

        def reauthentications() -> float:
            producer.produce(TOPIC, b"x", on_delivery=lambda error, _: failures.append(error))
            producer.poll(0.05)
            return authentication_metric(broker, "successful_reauthentication_total")

        wait_until(lambda: reauthentications() >= 2, timeout_s=TIMEOUT_S)
        producer.flush(TIMEOUT_S)
        assert set(failures) == {None}
        assert authentication_metric(broker, "expired_connections_killed_count") == 0


def authentication_metric(broker: Broker, name: str) -> float:
    full_name = f"kafka_server_socket_server_metrics_{name}"
    return next(
        (gauge.value for gauge in broker._node._metrics.gauges() if gauge.name == full_name), 0
    )


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_with_wrong_credentials_gets_its_own_error(
    broker: Broker,
    client: Callable[[str, str, str, str], None],
    mechanism: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    user = "nobody" if mechanism == "OAUTHBEARER" else USER
    with pytest.raises(WrongCredentialsError):
        client(broker.bootstrap_servers, mechanism, user, "guessed")
    assert f"with {mechanism} failed: " in caplog.text
    assert "guessed" not in caplog.text
    assert "Traceback" not in caplog.text
