"""The engine on a real Spark, with Kafka's file connectors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from tests.connect.execution.instance import RecordingListener, values_of
from tests.wait import async_wait_until

from barnabas.connect.execution.engine import SparkConnectorEngine
from barnabas.connect.model import State, TargetState
from barnabas.connect.storage.offset_topic import OffsetTopic
from barnabas.connect.worker_config import WorkerConfig
from barnabas.spark.prerequisites import PrerequisiteError, require_java
from barnabas.spark.runtime.session import ServiceSession
from barnabas.testing import Broker

pytestmark = pytest.mark.timeout(600)

LINES = [f"line {number}" for number in range(5_000)]
TEXT = "org.apache.kafka.connect.storage.StringConverter"


@pytest.fixture(scope="module")
def session() -> Iterator[ServiceSession]:
    try:
        require_java()
    except PrerequisiteError as error:
        pytest.fail(str(error))
    session = ServiceSession({"spark.master": "local[2, 3]"}, app_name="tests of Connect")
    yield session
    session.close()


def test_lines_of_a_file_pass_through_a_topic_once(
    kafka_broker: Broker, session: ServiceSession, tmp_path: Path
) -> None:
    import asyncio

    topic = f"lines-{uuid4().hex[:8]}"
    read, written = tmp_path / "read.txt", tmp_path / "written.txt"
    read.write_text("".join(f"{line}\n" for line in LINES[:-1]))
    worker = WorkerConfig.parse(
        {
            "bootstrap.servers": kafka_broker.bootstrap_servers,
            "group.id": topic,
            "offset.storage.topic": f"{topic}-offsets",
            "exactly.once.source.support": "enabled",
            "key.converter": TEXT,
            "value.converter": TEXT,
        }
    )
    source = {"connector.class": "FileStreamSource", "file": str(read), "topic": topic}
    sink = {"connector.class": "FileStreamSink", "file": str(written), "topics": topic}
    listener = RecordingListener()

    def lines() -> list[str]:
        return written.read_text().splitlines() if written.exists() else []

    async def scenario() -> None:
        positions = OffsetTopic(
            worker.offset_topic, worker.worker_client, partitions=1, replication_factor=1
        )
        await positions.start()
        engine = SparkConnectorEngine(worker, positions, listener, session)
        await engine.start()
        try:
            for name, config in (("source", source), ("sink", sink)):
                await engine.run_connector(name, {"name": name, **config}, TargetState.STARTED)
            await async_wait_until(
                lambda: lines() == LINES[:-1], f"{listener.connectors} {listener.tasks}", 120
            )
            with read.open("a") as file:
                file.write(f"{LINES[-1]}\n")
            await async_wait_until(lambda: lines() == LINES, "the last line", 60)
            assert {listener.state("source"), listener.state("sink")} == {State.RUNNING}
        finally:
            await engine.stop()
            await positions.stop()
        assert await values_of(kafka_broker.bootstrap_servers, topic) == LINES

    asyncio.run(scenario())
