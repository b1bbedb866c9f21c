"""Spark formats as connectors, on a real Spark."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from tests.connect.execution.instance import RecordingListener, consume, produce
from tests.wait import async_wait_until

from barnabas.client.admin.model import ConsumerGroupTopicPartitions
from barnabas.client.values import TopicPartition
from barnabas.connect.connectors.spark_format import SparkSink, SparkSource
from barnabas.connect.execution.engine import SparkConnectorEngine
from barnabas.connect.model import State, StoredOffset, TargetState
from barnabas.connect.storage.offset_topic import OffsetTopic
from barnabas.connect.worker_config import WorkerConfig
from barnabas.spark.prerequisites import PrerequisiteError, require_java
from barnabas.spark.runtime.session import ServiceSession
from barnabas.testing import Broker

pytestmark = pytest.mark.timeout(600)

DATA_SOURCES = "tests.connect.connectors.spark_format.data_sources"
TEXT = "org.apache.kafka.connect.storage.StringConverter"
TRANSFORMS = "org.apache.kafka.connect.transforms"
SOON_S = 120.0


@pytest.fixture(scope="module")
def session(module_patch: pytest.MonkeyPatch) -> Iterator[ServiceSession]:
    try:
        require_java()
    except PrerequisiteError as error:
        pytest.fail(str(error))
    root = Path(__file__).parents[4]
    module_patch.syspath_prepend(str(root))
    settings = {"spark.master": "local[2, 3]", "spark.executorEnv.PYTHONPATH": str(root)}
    session = ServiceSession(settings, app_name="tests of Spark formats")
    yield session
    session.close()


@pytest.fixture(scope="module")
def module_patch() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@dataclass
class RunningEngine:
    engine: SparkConnectorEngine
    listener: RecordingListener
    servers: str

    async def run(
        self, name: str, config: Mapping[str, str], target: TargetState = TargetState.STARTED
    ) -> None:
        await self.engine.run_connector(name, {"name": name, **config}, target)

    async def until(self, condition: Callable[[], Any]) -> None:
        try:
            await async_wait_until(condition, "", SOON_S, poll_s=0.2)
        except TimeoutError:
            raise AssertionError(f"{self.listener.connectors}") from None

    def records(self, topic: str) -> list[tuple[bytes | None, bytes | None]]:
        return [(each.key(), each.value()) for each in consume(self.servers, topic)]


def run(
    broker: Broker,
    session: ServiceSession,
    directory: Path,
    scenario: Callable[[RunningEngine], Any],
    **settings: str,
) -> None:
    cluster = f"cluster-{uuid4().hex[:8]}"
    worker = WorkerConfig.parse(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": cluster,
            "offset.storage.topic": f"{cluster}-offsets",
            "key.converter": TEXT,
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter.schemas.enable": "false",
            "barnabas.checkpoint.dir": str(directory / "checkpoints"),
            **settings,
        }
    )
    listener = RecordingListener()

    async def main() -> None:
        positions = OffsetTopic(
            worker.offset_topic, worker.worker_client, partitions=1, replication_factor=1
        )
        await positions.start()
        engine = SparkConnectorEngine(worker, positions, listener, session)
        await engine.start()
        try:
            await scenario(RunningEngine(engine, listener, broker.bootstrap_servers))
        finally:
            await engine.stop()
            await positions.stop()

    asyncio.run(main())


def unique(name: str) -> str:
    return f"{name}-{uuid4().hex[:8]}"


def test_a_python_data_source_is_read_once_into_a_topic_across_restarts(
    kafka_broker: Broker, session: ServiceSession, tmp_path: Path
) -> None:
    topic = unique("letters")
    config = {
        "connector.class": "spark",
        "format": f"{DATA_SOURCES}:Letters",
        "option.letters": "abcdefgh",
        "topic": topic,
        "key.column": "letter",
        "trigger.interval.ms": "0",
        "transforms": "rename,insert",
        "transforms.rename.type": f"{TRANSFORMS}.ReplaceField$Value",
        "transforms.rename.renames": "letter:name",
        "transforms.insert.type": f"{TRANSFORMS}.InsertField$Value",
        "transforms.insert.static.field": "from",
        "transforms.insert.static.value": "test",
    }

    async def scenario(engine: RunningEngine) -> None:
        kafka_broker.create_topic(topic)
        await engine.run(topic, config)
        await engine.until(lambda: len(engine.records(topic)) >= 8)
        assert engine.listener.state(topic) is State.RUNNING
        await engine.run(topic, config, TargetState.PAUSED)
        assert engine.listener.state(topic) is State.PAUSED
        await engine.run(topic, {**config, "option.letters": "abcdefghij"})
        await engine.until(lambda: len(engine.records(topic)) >= 10)
        records = sorted(engine.records(topic))
        assert [key for key, _ in records] == [bytes([97 + number]) for number in range(10)]
        assert json.loads(records[3][1] or b"") == {"position": 3, "name": "d", "from": "test"}

    run(kafka_broker, session, tmp_path, scenario)


def test_a_format_of_spark_is_read_into_a_topic(
    kafka_broker: Broker, session: ServiceSession, tmp_path: Path
) -> None:
    topic = unique("ticks")
    config = {
        "connector.class": "spark",
        "format": "rate",
        "option.rowsPerSecond": "50",
        "topic": topic,
        "trigger.interval.ms": "100",
        "checkpoint.location": str(tmp_path / "checkpoint of ticks"),
    }

    async def scenario(engine: RunningEngine) -> None:
        kafka_broker.create_topic(topic)
        await engine.run(topic, config)
        await engine.until(lambda: len(engine.records(topic)) > 100)
        await engine.engine.release_connector(topic)
        numbers = [json.loads(value or b"")["value"] for _, value in engine.records(topic)]
        assert sorted(numbers) == list(range(len(numbers)))

    run(kafka_broker, session, tmp_path, scenario)
    assert (tmp_path / "checkpoint of ticks" / "offsets").is_dir()


def test_a_topic_is_written_to_parquet_files_by_typed_columns(
    kafka_broker: Broker, session: ServiceSession, tmp_path: Path
) -> None:
    topic, letters, out = unique("orders"), unique("dead-letters"), tmp_path / "out"
    config = {
        "connector.class": "spark",
        "format": "parquet",
        "option.path": str(out),
        "topics": topic,
        "key.column": "customer",
        "schema": "customer STRING, id BIGINT, price DOUBLE, at STRUCT<shop: STRING>",
        "trigger.interval.ms": "0",
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": letters,
        "errors.deadletterqueue.topic.replication.factor": "1",
        "errors.deadletterqueue.context.headers.enable": "true",
    }
    servers = kafka_broker.bootstrap_servers

    def rows() -> list[dict[str, Any]]:
        if not (out / "_spark_metadata").exists():
            return []
        try:
            return ds.dataset(out, format="parquet").to_table().to_pylist()
        except pa.ArrowInvalid:  # a file is being written
            return []

    async def scenario(engine: RunningEngine) -> None:
        kafka_broker.create_topic(letters)
        good = {"id": 1, "price": 2.5, "at": {"town": "Rye", "shop": "tea"}, "more": True}
        produce(servers, topic, json.dumps(good), key="ada")
        produce(servers, topic, '{"id": "many"}', "not json", '{"id": 2}')
        await engine.run(topic, config)
        await engine.until(lambda: len(rows()) >= 2 and len(engine.records(letters)) >= 2)
        produce(servers, topic, '{"id": 3}', key="bob")
        await engine.until(lambda: len(rows()) >= 3)
        await engine.until(lambda: offsets(kafka_broker, f"connect-{topic}") == {(topic, 0): 5})
        stored = await engine.engine.offsets(topic, {**config, "name": topic})
        assert stored == [
            StoredOffset({"kafka_topic": topic, "kafka_partition": 0}, {"kafka_offset": 5})
        ]
        assert sorted(rows(), key=lambda row: row["id"]) == [
            {"customer": "ada", "id": 1, "price": 2.5, "at": {"shop": "tea"}},
            {"customer": None, "id": 2, "price": None, "at": None},
            {"customer": "bob", "id": 3, "price": None, "at": None},
        ]
        dead = await asyncio.to_thread(consume, servers, letters)
        stages = {each.value(): dict(each.headers())["__connect.errors.stage"] for each in dead}
        assert stages == {b'{"id": "many"}': b"TASK_PUT", b"not json": b"VALUE_CONVERTER"}

    run(kafka_broker, session, tmp_path, scenario)


def offsets(broker: Broker, group: str) -> dict[tuple[str, int], int]:
    from barnabas.admin import AdminClient

    with AdminClient({"bootstrap.servers": broker.bootstrap_servers}) as admin:
        request = [ConsumerGroupTopicPartitions(group)]
        found = admin.list_consumer_group_offsets(request)[group].result()
    partitions: list[TopicPartition] = found.topic_partitions
    return {(each.topic, each.partition): each.offset for each in partitions}


def test_the_columns_of_a_sink_are_those_of_its_first_records(
    kafka_broker: Broker, session: ServiceSession, tmp_path: Path
) -> None:
    topic, out = unique("inferred"), tmp_path / "out"
    config = {
        "connector.class": "SparkSink",
        "format": "json",
        "option.path": str(out),
        "topics": topic,
        "trigger.interval.ms": "0",
    }
    servers = kafka_broker.bootstrap_servers

    def rows() -> list[Any]:
        files = out.glob("*.json")
        return sorted(json.loads(line)["id"] for file in files for line in file.open())

    async def scenario(engine: RunningEngine) -> None:
        produce(servers, topic, *(json.dumps({"id": id_, "name": "x"}) for id_ in range(4)))
        await engine.run(topic, config)
        await engine.until(lambda: rows() == [0, 1, 2, 3])
        text = next(out.glob("*.json")).read_text()
        assert json.loads(text.splitlines()[0])["name"] == "x"

    run(kafka_broker, session, tmp_path, scenario)


def test_a_record_that_does_not_fit_fails_the_query_unless_it_is_tolerated(
    kafka_broker: Broker, session: ServiceSession, tmp_path: Path
) -> None:
    topic = unique("strict")
    config = {
        "connector.class": "spark",
        "format": "parquet",
        "option.path": str(tmp_path / "out"),
        "topics": topic,
        "schema": "id BIGINT",
    }

    async def scenario(engine: RunningEngine) -> None:
        produce(kafka_broker.bootstrap_servers, topic, '{"id": "many"}')
        await engine.run(topic, config)
        await engine.until(lambda: engine.listener.state(topic) is State.FAILED)
        assert "does not fit the columns" in engine.listener.trace(topic)

    run(kafka_broker, session, tmp_path, scenario)


SOURCE = {"connector.class": "spark", "name": "s", "topic": "t"}
SINK = {"connector.class": "spark", "name": "s", "topics": "t"}


@pytest.mark.parametrize(
    ("kind", "config", "setting", "message"),
    [
        (SparkSource, {**SOURCE, "format": "rat"}, "format", "DATA_SOURCE_NOT_FOUND"),
        (SparkSource, {**SOURCE, "format": "csv"}, "format", "'path' is not specified"),
        (SparkSource, {**SOURCE, "format": "csv", "schema": "a BIG"}, "schema", "BIG"),
        (SparkSource, {**SOURCE, "format": "rate", "key.column": "k"}, "key.column", "timestamp"),
        (
            SparkSource,
            {**SOURCE, "format": f"{DATA_SOURCES}:Letters"},
            "format",
            "the option letters is missing",
        ),
        (SparkSource, {**SOURCE, "format": f"{DATA_SOURCES}:No"}, "format", "no attribute 'No'"),
        (SparkSource, {**SOURCE, "format": f"{DATA_SOURCES}:NoDataSource"}, "format", "subclass"),
        (SparkSink, {**SINK, "format": "parkett"}, "format", "DATA_SOURCE_NOT_FOUND"),
        (SparkSink, {**SINK, "format": "parquet", "schema": "a BIG"}, "schema", "BIG"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_errors_of_options_are_errors_of_settings(
    session: ServiceSession,
    kind: type[SparkSource] | type[SparkSink],
    config: dict[str, str],
    setting: str,
    message: str,
) -> None:
    session()
    errors = {value.name: value.errors for value in kind.validate(config) if value.errors}
    assert list(errors) == [setting]
    assert message in errors[setting][0]
    assert "Traceback" not in errors[setting][0]


def test_valid_options_are_valid(session: ServiceSession) -> None:
    session()
    for kind, config in (
        (SparkSource, {**SOURCE, "format": f"{DATA_SOURCES}:Letters", "option.letters": "a"}),
        (SparkSink, {**SINK, "format": "parquet", "schema": "a INT"}),
        (SparkSink, {**SINK, "format": "barnabas"}),
    ):
        assert [value.errors for value in kind.validate(config) if value.errors] == []


def test_settings_that_are_nearly_options_are_errors() -> None:
    values = SparkSink.validate({**SINK, "format": "parquet", "options.path": "/tmp/out"})
    assert [error for value in values for error in value.errors] == [
        "options.path is not a setting. Did you mean option.path?"
    ]
