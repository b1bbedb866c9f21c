"""Dead letter queues: topics with the records that a connector could not handle.

A dead letter has the key, value, headers and timestamp of the record, and with
`errors.deadletterqueue.context.headers.enable` headers that describe the error, as Connect's have.
Unlike in Kafka, sources may have a queue, too. Their records have no bytes before they are
converted, so their dead letters are JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from barnabas.admin import AdminClient, NewTopic
from barnabas.client.errors import KafkaError, KafkaException, error_in
from barnabas.client.producer import Producer
from barnabas.client.producer.delivery_reports import OnDelivery
from barnabas.connect.errors import ConnectError
from barnabas.connect.execution.record_errors import FailedRecord, exception_class, stack_trace
from barnabas.connect.execution.settings import ErrorSettings

PREFIX: Final = "__connect.errors."
"""Of the headers that describe an error."""

TOPIC: Final = f"{PREFIX}topic"
PARTITION: Final = f"{PREFIX}partition"
OFFSET: Final = f"{PREFIX}offset"
CONNECTOR: Final = f"{PREFIX}connector.name"

_REQUEST_TIMEOUT_S = 60.0

Header = tuple[str, bytes | None]


def ensure_dead_letter_topic(conf: Mapping[str, str], settings: ErrorSettings) -> None:
    """Creates the topic with one partition unless it exists. Raises ConnectError."""
    topic = settings.dead_letter_topic
    with AdminClient(dict(conf)) as admin:
        try:
            if admin.list_topics(topic, _REQUEST_TIMEOUT_S).topics[topic].error is None:
                return
            new = NewTopic(topic, 1, settings.dead_letter_replication_factor)
            admin.create_topics([new], request_timeout=_REQUEST_TIMEOUT_S)[topic].result()
        except KafkaException as error:
            if error_in(error) == KafkaError.TOPIC_ALREADY_EXISTS:
                return
            raise ConnectError(
                f"Could not initialize dead letter queue with topic={topic}: "
                f"{error_in(error).str()}"
            ) from error


def produce_dead_letters(
    producer: Producer,
    settings: ErrorSettings,
    connector: str,
    task: int,
    failed: Iterable[FailedRecord],
    on_delivery: OnDelivery | None = None,
) -> None:
    """Produces a dead letter for each record; the caller waits for their acknowledgement."""
    for record in failed:
        headers = list(record.headers)
        if settings.has_context_headers:
            headers += context_headers(connector, task, record)
        producer.produce(
            settings.dead_letter_topic,
            value=record.value,
            key=record.key,
            timestamp=max(record.timestamp_ms or 0, 0),
            headers=headers,
            on_delivery=on_delivery,
        )


def context_headers(connector: str, task: int, failed: FailedRecord) -> list[Header]:
    """Returns the headers that Connect adds, in its order."""
    error = failed.error
    origin = [("topic", failed.topic), ("partition", failed.partition), ("offset", failed.offset)]
    described = [
        ("connector.name", connector),
        ("task.id", task),
        ("stage", failed.stage),
        ("class.name", failed.class_name),
        ("exception.class.name", exception_class(error)),
        ("exception.message", str(error) or None),
        ("exception.stacktrace", stack_trace(error)),
    ]
    return [
        *((PREFIX + name, str(value).encode()) for name, value in origin if value is not None),
        *((PREFIX + name, _bytes(value)) for name, value in described),
    ]


def without_context_headers(headers: Sequence[Header]) -> list[Header]:
    """Returns the headers that the record had originally."""
    return [header for header in headers if not header[0].startswith(PREFIX)]


def _bytes(value: object) -> bytes | None:
    return None if value is None else str(value).encode()
