"""Producers and consumers of every client library that log in, with the library's own errors."""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import aiokafka
import aiokafka.abc
import aiokafka.errors
import confluent_kafka
import kafka
import kafka.errors
import kafka.net.sasl.oauth
from tests.conformance.tls_clients import TIMEOUT_S, Connection, ConnectionFailed

import barnabas

Send = Callable[[str, bytes], None]
"""Produces a record to a topic, and waits for it. Raises ConnectionFailed."""

Producer = Callable[[Connection], AbstractContextManager[Send]]
Consumer = Callable[[Connection, str], bytes]
"""Returns the first record of a topic. Raises ConnectionFailed."""

_BOOTSTRAP_MS = 1_000
"""How long kafka-python tries to connect: it does so again after every error."""


# confluent_kafka and barnabas


@contextmanager
def _librdkafka_producer(library: Any, connection: Connection) -> Iterator[Send]:
    problems: list[str] = []
    producer = library.Producer(
        connection.librdkafka_settings
        | {"error_cb": lambda error: problems.append(str(error)), "log_level": 0}
    )

    def send(topic: str, value: bytes) -> None:
        outcomes: list[Any] = []
        producer.produce(topic, value, on_delivery=lambda error, _: outcomes.append(error))
        deadline_s = time.monotonic() + TIMEOUT_S
        while not outcomes and not problems and time.monotonic() < deadline_s:
            producer.poll(0.05)
        reasons = problems + [str(error) for error in outcomes if error is not None]
        if reasons or not outcomes:
            producer.purge()
            raise ConnectionFailed("; ".join(reasons))

    try:
        yield send
    finally:
        producer.purge()
        producer.flush(1)
        if library is barnabas:
            producer.close(1)


def _librdkafka_consumer(library: Any, connection: Connection, topic: str) -> bytes:
    problems: list[str] = []
    consumer = library.Consumer(
        connection.librdkafka_settings
        | {
            "group.id": "unused",  # librdkafka looks its coordinator up
            "error_cb": lambda error: problems.append(str(error)),
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )
    consumer.assign([library.TopicPartition(topic, 0, 0)])
    try:
        deadline_s = time.monotonic() + TIMEOUT_S
        while not problems and time.monotonic() < deadline_s:
            message = consumer.poll(0.1)
            if message is not None and message.error() is not None:
                problems.append(str(message.error()))
            elif message is not None:
                return bytes(message.value())
        raise ConnectionFailed("; ".join(problems))
    finally:
        consumer.close()


def confluent_producer(connection: Connection) -> AbstractContextManager[Send]:
    return _librdkafka_producer(confluent_kafka, connection)


def confluent_consumer(connection: Connection, topic: str) -> bytes:
    return _librdkafka_consumer(confluent_kafka, connection, topic)


def our_producer(connection: Connection) -> AbstractContextManager[Send]:
    return _librdkafka_producer(barnabas, connection)


def our_consumer(connection: Connection, topic: str) -> bytes:
    return _librdkafka_consumer(barnabas, connection, topic)


# kafka-python


class _KafkaPythonToken(kafka.net.sasl.oauth.AbstractTokenProvider):
    def __init__(self, token: str) -> None:
        super().__init__()
        self._token = token

    def token(self) -> str:
        return self._token


def _kafka_python_settings(connection: Connection) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "bootstrap_servers": connection.bootstrap,
        "security_protocol": "SSL" if connection.login is None else "SASL_SSL",
        "ssl_cafile": connection.ca,
        "ssl_certfile": connection.certificate,
        "ssl_keyfile": connection.certificate,
        "bootstrap_timeout_ms": _BOOTSTRAP_MS,
    }
    if (login := connection.login) is not None:
        settings["sasl_mechanism"] = login.mechanism
        if login.token:
            settings["sasl_oauth_token_provider"] = _KafkaPythonToken(login.token)
        elif login.user:
            settings["sasl_plain_username"] = login.user
            settings["sasl_plain_password"] = login.password
    return settings


@contextmanager
def kafka_python_producer(connection: Connection) -> Iterator[Send]:
    try:
        producer = kafka.KafkaProducer(**_kafka_python_settings(connection))
    except kafka.errors.KafkaError as error:
        raise ConnectionFailed(repr(error)) from error

    def send(topic: str, value: bytes) -> None:
        try:
            producer.send(topic, value).get(TIMEOUT_S)
        except kafka.errors.KafkaError as error:
            raise ConnectionFailed(repr(error)) from error

    try:
        yield send
    finally:
        producer.close(1)


def kafka_python_consumer(connection: Connection, topic: str) -> bytes:
    consumer = kafka.KafkaConsumer(
        **_kafka_python_settings(connection),
        auto_offset_reset="earliest",
        consumer_timeout_ms=TIMEOUT_S * 1000,
    )
    consumer.assign([kafka.TopicPartition(topic, 0)])
    try:
        return next(bytes(record.value) for record in consumer)
    except kafka.errors.KafkaError as error:
        raise ConnectionFailed(repr(error)) from error
    finally:
        consumer.close()


# aiokafka


class _AioToken(aiokafka.abc.AbstractTokenProvider):
    def __init__(self, token: str) -> None:
        self._token = token

    async def token(self) -> str:
        return self._token


def _aiokafka_settings(connection: Connection) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "bootstrap_servers": connection.bootstrap,
        "security_protocol": "SSL" if connection.login is None else "SASL_SSL",
        "ssl_context": connection.context(),
    }
    if (login := connection.login) is not None:
        settings["sasl_mechanism"] = login.mechanism
        if login.token:
            settings["sasl_oauth_token_provider"] = _AioToken(login.token)
        elif login.user:
            settings["sasl_plain_username"] = login.user
            settings["sasl_plain_password"] = login.password
    return settings


@contextmanager
def aiokafka_producer(connection: Connection) -> Iterator[Send]:
    with asyncio.Runner() as runner:

        async def start() -> aiokafka.AIOKafkaProducer:
            producer = aiokafka.AIOKafkaProducer(**_aiokafka_settings(connection))
            try:
                await producer.start()
            except aiokafka.errors.KafkaError as error:
                await producer.stop()
                raise ConnectionFailed(repr(error)) from error
            return producer

        producer = runner.run(start())

        async def send_one(topic: str, value: bytes) -> None:
            try:
                await asyncio.wait_for(producer.send_and_wait(topic, value), TIMEOUT_S)
            except aiokafka.errors.KafkaError as error:
                raise ConnectionFailed(repr(error)) from error

        try:
            yield lambda topic, value: runner.run(send_one(topic, value))
        finally:
            runner.run(producer.stop())


def aiokafka_consumer(connection: Connection, topic: str) -> bytes:
    async def consume() -> bytes:
        consumer = aiokafka.AIOKafkaConsumer(
            **_aiokafka_settings(connection), auto_offset_reset="earliest"
        )
        await consumer.start()
        try:
            consumer.assign([aiokafka.TopicPartition(topic, 0)])
            record = await asyncio.wait_for(consumer.getone(), TIMEOUT_S)
            return bytes(record.value)
        except aiokafka.errors.KafkaError as error:
            raise ConnectionFailed(repr(error)) from error
        finally:
            await consumer.stop()

    return asyncio.run(consume())


PRODUCERS: dict[str, Producer] = {
    "confluent_kafka": confluent_producer,
    "kafka-python": kafka_python_producer,
    "aiokafka": aiokafka_producer,
    "barnabas": our_producer,
}
CONSUMERS: dict[str, Consumer] = {
    "confluent_kafka": confluent_consumer,
    "kafka-python": kafka_python_consumer,
    "aiokafka": aiokafka_consumer,
    "barnabas": our_consumer,
}
