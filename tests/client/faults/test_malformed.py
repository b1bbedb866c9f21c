"""Peers that are no Kafka brokers, or broken ones: clients say so, and do not fall over."""

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from tests.client.expected_errors import expect_error
from tests.client.scripted import ScriptedBroker

from barnabas import Consumer, KafkaError, Producer, TopicPartition
from barnabas.client.loop_thread import LoopThread
from barnabas.wire.apis import ApiKey
from barnabas.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from barnabas.wire.messages.list_offsets import ListOffsetsResponse
from barnabas.wire.messages.metadata import MetadataResponse
from barnabas.wire.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from barnabas.wire.messages.producer_ids import InitProducerIdResponse

DEADLINE_S = 30.0

NOBODY_KNOWS = 9999
"""An error code of a protocol that is yet to come."""

API_VERSIONS_V0 = struct.pack(">hihhh", 0, 1, 3, 0, 12)
"""Without an error, and only Metadata in versions 0 to 12."""


def http(_: bytes) -> bytes:
    return b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"


def framed(content: bytes) -> bytes:
    return struct.pack(">i", len(content)) + content


def correlation_of(request: bytes) -> bytes:
    return request[8:12]


ANSWERS: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "an HTTP server": (http, "1213486160|Kafka"),
    "a negative length": (lambda _: struct.pack(">i", -1), "-1"),
    "a length of two gigabytes": (lambda _: struct.pack(">i", 0x7FFFFFFF), "2147483647"),
    "half a frame": (lambda _: struct.pack(">i", 100) + b"half", "disconnected|closed|reset"),
    "nothing": (lambda _: b"", "disconnected"),
    "another's answer": (lambda _: framed(struct.pack(">i", 77) + bytes(20)), "77"),
    "an answer without an end": (
        lambda request: framed(correlation_of(request) + b"\0\0\xff\xff\xff\x7f" + bytes(30)),
        "ApiVersions",
    ),
    "an empty answer": (lambda request: framed(b""), "127.0.0.1"),
}


@contextmanager
def a_peer(answer: Callable[[bytes], bytes]) -> Iterator[str]:
    """A peer that sends this to the first request of a connection, and closes it."""
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            with connection, suppress(OSError):  # the client has hung up
                if request := connection.recv(65_536):
                    connection.sendall(answer(request))
                    connection.shutdown(socket.SHUT_WR)

    server = threading.Thread(target=serve, daemon=True)
    server.start()
    try:
        yield f"127.0.0.1:{listening.getsockname()[1]}"
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        server.join()


@pytest.mark.parametrize("kind", ANSWERS)
def test_a_peer_with_another_protocol_is_named_with_the_cause(kind: str) -> None:
    answer, words = ANSWERS[kind]
    with a_peer(answer) as address:
        producer = Producer({"bootstrap.servers": address})
        failure = expect_error(lambda timeout_s: producer.list_topics(timeout=timeout_s), words)
        assert address in failure.args[0].str()
        producer.close(0)


@contextmanager
def scripted(**answers: Callable[[Any], Any]) -> Iterator[ScriptedBroker]:
    """A broker with answers by the names of `ApiKey`, for plain clients; it has a topic "t"."""
    thread = LoopThread()
    broker = ScriptedBroker(
        {ApiKey[name.upper()]: answer for name, answer in answers.items()}, topics={"t": 1}
    )
    thread.run(broker.start())
    try:
        yield broker
    finally:
        thread.run(broker.stop())
        thread._users = 1
        thread.release()


def settings_of(broker: ScriptedBroker, **more: Any) -> dict[str, Any]:
    names = {name.replace("_", "."): value for name, value in more.items()}
    return {"bootstrap.servers": f"127.0.0.1:{broker.port}", "retry.backoff.ms": 5, **names}


def produced(error_code: int) -> Callable[[ProduceRequest], ProduceResponse]:
    def answer(request: ProduceRequest) -> ProduceResponse:
        return ProduceResponse(
            responses=[
                TopicProduceResponse(
                    name=topic.name,
                    topic_id=topic.topic_id,
                    partition_responses=[
                        PartitionProduceResponse(
                            index=each.index, error_code=error_code, base_offset=0
                        )
                        for each in topic.partition_data
                    ],
                )
                for topic in request.topic_data
            ]
        )

    return answer


def delivered_by(broker: ScriptedBroker, **more: Any) -> list[KafkaError | None]:
    reports: list[KafkaError | None] = []
    producer = Producer(settings_of(broker, **more))
    producer.produce("t", b"x", on_delivery=lambda error, _: reports.append(error))
    producer.flush(DEADLINE_S)
    producer.close(0)
    return reports


def identified(_: object) -> InitProducerIdResponse:
    return InitProducerIdResponse(producer_id=1, producer_epoch=0)


def test_an_unknown_produce_error_is_reported_by_its_code() -> None:
    with scripted(init_producer_id=identified, produce=produced(NOBODY_KNOWS)) as broker:
        (error,) = delivered_by(broker)
        assert error is not None
        assert error.code() == NOBODY_KNOWS
        assert str(NOBODY_KNOWS) in str(error)


def test_records_that_a_response_lacks_are_not_delivered() -> None:
    with scripted(init_producer_id=identified, produce=lambda _: ProduceResponse()) as broker:
        (error,) = delivered_by(broker)
        assert error is not None


def test_metadata_without_brokers_is_retried_until_the_records_time_out() -> None:
    empty = MetadataResponse(brokers=[], topics=[])
    with scripted(init_producer_id=identified, metadata=lambda _: empty) as broker:
        (error,) = delivered_by(broker, message_timeout_ms=300)
        assert error == KafkaError._MSG_TIMED_OUT


def test_a_malformed_response_only_breaks_the_connection() -> None:
    calls = []

    def once_broken(request: ProduceRequest) -> Any:
        calls.append(request)
        # It has no field for records, so it ends where the real one goes on.
        return ListOffsetsResponse() if len(calls) < 3 else produced(0)(request)

    with scripted(init_producer_id=identified, produce=once_broken) as broker:
        assert delivered_by(broker) == [None]
        assert len(calls) >= 3


@pytest.mark.parametrize(
    "records",
    [b"\xff" * 200, b"\0" * 61, b"\0" * 10, bytes(8) + b"\x7f\xff\xff\xff" + bytes(100)],
    ids=["garbage", "zeros", "too short", "hostile length"],
)
def test_malformed_records_are_an_error_of_their_partition(records: bytes) -> None:
    error = polled(fetched(0, records))
    assert error == KafkaError._BAD_MSG
    assert "offset 0" in error.str()


def test_an_unknown_fetch_error_is_reported_by_its_code() -> None:
    error = polled(fetched(NOBODY_KNOWS, b""))
    assert error.code() == NOBODY_KNOWS
    assert str(NOBODY_KNOWS) in str(error)


def fetched(error_code: int, records: bytes) -> Callable[[FetchRequest], FetchResponse]:
    def answer(request: FetchRequest) -> FetchResponse:
        return FetchResponse(
            responses=[
                FetchableTopicResponse(
                    topic=topic.topic,
                    topic_id=topic.topic_id,
                    partitions=[
                        PartitionData(
                            partition_index=each.partition,
                            error_code=error_code,
                            high_watermark=5,
                            last_stable_offset=5,
                            records=records,
                        )
                        for each in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    return answer


def polled(answer: Callable[[FetchRequest], FetchResponse]) -> KafkaError:
    with scripted(fetch=answer) as broker:
        consumer = Consumer(settings_of(broker, group_id="g"))
        consumer.assign([TopicPartition("t", 0, 0)])
        message = consumer.poll(DEADLINE_S)
        consumer.close()
    assert message is not None
    error = message.error()
    assert error is not None
    return error
