"""Dead letters that are sent back to their topics."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.connect.execution.instance import consume

from barnabas import Producer
from barnabas.connect.execution import replay as replay_module
from barnabas.connect.execution.replay import ReplayProgress, replay
from barnabas.testing import Broker

PREFIX = "__connect.errors."


def put_letters(broker: Broker, dlq: str, topic: str | None, *values: str, by: str = "s") -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    headers: list[tuple[str, bytes]] = [("own", b"1"), (f"{PREFIX}connector.name", by.encode())]
    if topic is not None:
        headers.append((f"{PREFIX}topic", topic.encode()))
    for value in values:
        producer.produce(dlq, value=value, key="k", headers=headers, timestamp=77)
    assert producer.flush(60) == 0


def values(broker: Broker, topic: str) -> list[str]:
    return [message.value().decode() for message in consume(broker.bootstrap_servers, topic)]


def replayed(broker: Broker, dlq: str, **options: object) -> ReplayProgress:
    conf = {"bootstrap.servers": broker.bootstrap_servers}
    progress: Sequence[ReplayProgress] = [ReplayProgress(), *replay(conf, dlq, **options)]  # type: ignore[arg-type]
    return progress[-1]


def test_dead_letters_are_sent_back_once_without_the_headers_of_errors(
    kafka_broker: Broker, kafka_topic: str
) -> None:
    dlq = f"{kafka_topic}-dlq"
    put_letters(kafka_broker, dlq, kafka_topic, "a", "b")
    assert replayed(kafka_broker, dlq) == ReplayProgress(2, 2, topics={kafka_topic: 2}, total=2)
    assert replayed(kafka_broker, dlq) == ReplayProgress()
    put_letters(kafka_broker, dlq, kafka_topic, "c")
    assert replayed(kafka_broker, dlq).replayed == 1
    messages = consume(kafka_broker.bootstrap_servers, kafka_topic)
    assert [message.value() for message in messages] == [b"a", b"b", b"c"]
    assert messages[0].headers() == [("own", b"1")]
    assert (messages[0].key(), messages[0].timestamp()[1]) == (b"k", 77)


def test_a_dry_run_changes_nothing(kafka_broker: Broker, kafka_topic: str) -> None:
    dlq = f"{kafka_topic}-dlq"
    put_letters(kafka_broker, dlq, kafka_topic, "a")
    for _ in range(2):
        assert replayed(kafka_broker, dlq, is_dry_run=True).replayed == 1
    assert values(kafka_broker, kafka_topic) == []


def test_letters_of_other_connectors_and_without_a_topic_are_left(
    kafka_broker: Broker, kafka_topic: str
) -> None:
    dlq = f"{kafka_topic}-dlq"
    put_letters(kafka_broker, dlq, kafka_topic, "a", by="one")
    put_letters(kafka_broker, dlq, kafka_topic, "b", by="two")
    put_letters(kafka_broker, dlq, None, "c", by="two")
    progress = replayed(kafka_broker, dlq, connector="two")
    assert (progress.read, progress.replayed) == (3, 1)
    assert (progress.of_others, progress.without_origin) == (1, 1)
    assert values(kafka_broker, kafka_topic) == ["b"]


def test_a_replay_that_is_interrupted_continues(
    kafka_broker: Broker, kafka_topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay_module, "BATCH_RECORDS", 2)
    dlq = f"{kafka_topic}-dlq"
    expected = [str(number) for number in range(7)]
    put_letters(kafka_broker, dlq, kafka_topic, *expected)
    conf = {"bootstrap.servers": kafka_broker.bootstrap_servers}
    while True:
        running = replay(conf, dlq)
        progress = next(running, None)
        running.close()  # type: ignore[attr-defined]
        if progress is None:
            break
    assert values(kafka_broker, kafka_topic) == expected
