"""Statistics have the names of librdkafka."""

import importlib
import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from tests.examples.programs import load

Topic = Callable[..., str]


def test_statistics_count_sent_records(
    servers: str, world: str, topic: Topic, capsys: pytest.CaptureFixture[str]
) -> None:
    load("watch_statistics", world).main(servers, topic(), "1000")
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == "producer watched: sent 1000, waiting 0, connected: yes"


def test_statistics_count_consumed_records_and_lag(servers: str, world: str, topic: Topic) -> None:
    orders = topic()
    assert load("produce", world).main(servers, orders, ["one", "two", "three"]) == 0
    seen: list[dict[str, Any]] = []
    consumer = importlib.import_module(world).Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": f"group-{orders}",
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": 100,  # the lag is behind what is committed
            "statistics.interval.ms": 100,
            "stats_cb": lambda text: seen.append(json.loads(text)),
        }
    )
    consumer.subscribe([orders])
    deadline_s = time.monotonic() + 30
    while time.monotonic() < deadline_s and not (seen and is_done(seen[-1], orders)):
        consumer.poll(0.1)
    last = seen[-1]
    consumer.close()
    assert last["type"] == "consumer"
    assert last["rxmsgs"] == 3
    assert last["cgrp"]["assignment_size"] == 1
    partition = last["topics"][orders]["partitions"]["0"]
    assert (partition["hi_offset"], partition["consumer_lag"]) == (3, 0)


def is_done(statistics: dict[str, Any], topic: str) -> bool:
    partitions = statistics["topics"].get(topic, {}).get("partitions", {})
    is_read = partitions.get("0", {}).get("consumer_lag") == 0 and statistics["rxmsgs"] == 3
    return bool(is_read and statistics["cgrp"]["assignment_size"] == 1)
