"""The same two operations over TLS by every client library, with its own settings and errors."""

import asyncio
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import aiokafka
import confluent_kafka
import kafka
import kafka.errors

import barnabas

TIMEOUT_S = 30.0
FAILURE_TIMEOUT_S = 3.0
"""How long a client that cannot connect tries."""


@dataclass(frozen=True)
class Login:
    """The login of a client over TLS: a password, or a token of OAUTHBEARER."""

    mechanism: str
    user: str
    password: str = ""
    token: str = ""
    is_delegation_token: bool = False

    @property
    def librdkafka_settings(self) -> dict[str, Any]:
        settings: dict[str, Any] = {"sasl.mechanism": self.mechanism}
        if self.token:
            # librdkafka checks the time as well, which is not what is tested.
            settings["oauth_cb"] = lambda _: (self.token, time.time() + 3600)
        elif self.is_delegation_token:
            settings["sasl.jaas.config"] = (
                "org.apache.kafka.common.security.scram.ScramLoginModule required "
                f'username="{self.user}" password="{self.password}" tokenauth="true";'
            )
        elif self.user:
            settings |= {"sasl.username": self.user, "sasl.password": self.password}
        return settings


@dataclass(frozen=True)
class Connection:
    """How a client connects: files in PEM, and whether it uses TLS and logs in."""

    bootstrap: str
    ca: str | None = None
    certificate: str | None = None
    is_plain: bool = False
    stores: tuple[tuple[str, str], ...] = ()  # settings of Java's names, for our client
    login: Login | None = None

    def with_changes(self, **changes: Any) -> "Connection":
        return replace(self, **changes)

    @property
    def librdkafka_settings(self) -> dict[str, Any]:
        settings: dict[str, Any] = {"bootstrap.servers": self.bootstrap}
        if self.is_plain:
            return settings
        settings["security.protocol"] = "SSL" if self.login is None else "SASL_SSL"
        if self.login is not None:
            settings |= self.login.librdkafka_settings
        if self.ca:
            settings["ssl.ca.location"] = self.ca
        if self.certificate:
            settings |= {
                "ssl.certificate.location": self.certificate,
                "ssl.key.location": self.certificate,
            }
        return settings

    def context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.ca)
        if self.certificate:
            context.load_cert_chain(self.certificate)
        return context


class ConnectionFailed(Exception):  # noqa: N818 - what the tests expect
    """The library's own words for why it cannot connect."""


def _librdkafka_round_trip(
    library: Any, settings: dict[str, Any], topic: str, value: bytes
) -> bytes:
    problems: list[str] = []
    own = {**settings, "error_cb": lambda error: problems.append(str(error)), "log_level": 0}
    producer = library.Producer(own)
    producer.produce(topic, value)
    deadline_s = time.monotonic() + TIMEOUT_S
    while producer.flush(0.1) and time.monotonic() < deadline_s and not problems:
        continue
    if problems:
        producer.purge()
        producer.flush(1)
        raise ConnectionFailed(problems[0])
    consumer = library.Consumer(
        {**settings, "group.id": topic, "auto.offset.reset": "earliest", "log_level": 0}
    )
    try:
        consumer.subscribe([topic])
        while time.monotonic() < deadline_s:
            message = consumer.poll(0.5)
            if message is not None and message.error() is None:
                return bytes(message.value())
    finally:
        consumer.close()
    raise TimeoutError("nothing was consumed")


def confluent_round_trip(connection: Connection, topic: str, value: bytes) -> bytes:
    return _librdkafka_round_trip(confluent_kafka, connection.librdkafka_settings, topic, value)


def our_round_trip(connection: Connection, topic: str, value: bytes) -> bytes:
    settings = connection.librdkafka_settings
    if connection.stores:
        settings = {
            "bootstrap.servers": connection.bootstrap,
            "security.protocol": "SSL",
            **dict(connection.stores),
        }
    return _librdkafka_round_trip(barnabas, settings, topic, value)


def kafka_python_round_trip(connection: Connection, topic: str, value: bytes) -> bytes:
    settings: dict[str, Any] = {"bootstrap_servers": connection.bootstrap}
    if not connection.is_plain:
        settings |= {
            "security_protocol": "SSL",
            "ssl_cafile": connection.ca,
            "ssl_certfile": connection.certificate,
            "ssl_keyfile": connection.certificate,
        }
    try:
        producer = kafka.KafkaProducer(
            **settings, max_block_ms=FAILURE_TIMEOUT_S * 1000, bootstrap_timeout_ms=3_000
        )
    except kafka.errors.KafkaError as error:
        raise ConnectionFailed(repr(error)) from error
    try:
        producer.send(topic, value).get(TIMEOUT_S)
    except kafka.errors.KafkaError as error:
        raise ConnectionFailed(repr(error)) from error
    finally:
        producer.close(1)
    consumer = kafka.KafkaConsumer(
        topic,
        **settings,
        auto_offset_reset="earliest",
        consumer_timeout_ms=TIMEOUT_S * 1000,
    )
    try:
        return next(bytes(record.value) for record in consumer)
    finally:
        consumer.close()


def aiokafka_round_trip(connection: Connection, topic: str, value: bytes) -> bytes:
    settings: dict[str, Any] = {"bootstrap_servers": connection.bootstrap}
    if not connection.is_plain:
        settings |= {"security_protocol": "SSL", "ssl_context": connection.context()}

    async def round_trip() -> bytes:
        producer = aiokafka.AIOKafkaProducer(**settings, request_timeout_ms=3_000)
        try:
            await asyncio.wait_for(producer.start(), FAILURE_TIMEOUT_S)
        except (aiokafka.errors.KafkaError, TimeoutError) as error:
            await producer.stop()
            raise ConnectionFailed(repr(error)) from error
        await producer.send_and_wait(topic, value)
        await producer.stop()
        consumer = aiokafka.AIOKafkaConsumer(topic, **settings, auto_offset_reset="earliest")
        await consumer.start()
        record = await asyncio.wait_for(consumer.getone(), TIMEOUT_S)
        await consumer.stop()
        return bytes(record.value)

    return asyncio.run(round_trip())


RoundTrip = Callable[[Connection, str, bytes], bytes]
LIBRARIES: dict[str, RoundTrip] = {
    "confluent_kafka": confluent_round_trip,
    "kafka-python": kafka_python_round_trip,
    "aiokafka": aiokafka_round_trip,
    "barnabas": our_round_trip,
}
"""Produces one record and consumes it. Raises ConnectionFailed."""
