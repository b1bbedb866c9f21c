"""What a batch reads, against a broker, without Spark."""

import json
from uuid import uuid4

import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from barnabas import Producer, TopicPartition
from barnabas.admin import AdminClient
from barnabas.spark.options_parser import OptionError
from barnabas.spark.source.connection import SourceError
from barnabas.testing import Broker


def numbers(rows) -> list[int]:
    return sorted(int(value) for value in rows.column("value").to_pylist())


def test_a_batch_has_the_columns_of_sparks_own_connector(topic_of, reads) -> None:
    topic = topic_of(10)
    schema = reads.source(topic.name, {}).schema()
    assert schema.simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,"
        "timestamp:timestamp,timestampType:int>"
    )
    rows = reads.batch(topic.name)
    assert rows.schema == to_arrow_schema(schema, timezone="UTC")
    row = rows.to_pylist()[4]
    assert row.pop("timestamp").timestamp() * 1000 == topic.began_ms + 4
    assert row == {
        "key": b"k4",
        "value": b"4",
        "topic": topic.name,
        "partition": 1,
        "offset": 1,
        "timestampType": 0,
    }
    assert numbers(rows) == list(range(10))


def test_a_batch_reads_between_its_offsets(topic_of, reads) -> None:
    topic = topic_of(30, partitions=2)
    starting = json.dumps({topic.name: {"0": 5, "1": -2}})
    ending = json.dumps({topic.name: {"0": -1, "1": 3}})
    rows = reads.batch(topic.name, startingOffsets=starting, endingOffsets=ending)
    assert numbers(rows) == sorted([1, 3, 5, *range(10, 30, 2)])


def test_a_batch_reads_between_its_timestamps(topic_of, reads) -> None:
    topic = topic_of(30, partitions=2)
    times = {"startingTimestamp": topic.began_ms + 20, "endingTimestamp": topic.began_ms + 25}
    assert numbers(reads.batch(topic.name, **times)) == [20, 21, 22, 23, 24]
    late = {"startingTimestamp": topic.began_ms + 29}
    with pytest.raises(SourceError, match=r"\[0\] has no record at or after"):
        reads.batch(topic.name, **late)
    late["startingOffsetsByTimestampStrategy"] = "Latest"
    assert numbers(reads.batch(topic.name, **late)) == [29]


def test_topics_can_be_assigned_or_matched(topic_of, reads) -> None:
    topic = topic_of(9)
    assert numbers(reads.batch(assign=json.dumps({topic.name: [0, 2]}))) == [0, 2, 3, 5, 6, 8]
    assert numbers(reads.batch(subscribePattern=topic.name[:-1] + ".")) == [*range(9)]


def test_headers_are_a_column_with_include_headers(broker: Broker, topic_of, reads) -> None:
    topic = topic_of(partitions=1)
    with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
        producer.produce(topic.name, "with", headers=[("a", b"1"), ("b", None)])
        producer.produce(topic.name, "without")
    schema = reads.source(topic.name, {"includeHeaders": "true"}).schema()
    rows = reads.batch(topic.name, includeHeaders="true")
    assert rows.schema == to_arrow_schema(schema, timezone="UTC")
    headers = {row["value"]: row["headers"] for row in rows.to_pylist()}
    assert headers[b"with"] == [{"key": "a", "value": b"1"}, {"key": "b", "value": None}]
    assert headers[b"without"] is None


def test_many_partitions_are_read_by_one_task(topic_of, reads) -> None:
    topic = topic_of(400, partitions=200)
    assert len(reads.tasks(topic.name)) == 1
    assert numbers(reads.batch(topic.name)) == list(range(400))


def test_a_task_can_read_part_of_a_record_batch(topic_of, reads) -> None:
    topic = topic_of(40, partitions=2)
    assert len(reads.tasks(topic.name, minPartitions=5)) == 5
    assert numbers(reads.batch(topic.name, minPartitions=5)) == list(range(40))
    assert numbers(reads.batch(topic.name, maxRecordsPerPartition=3)) == list(range(40))


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_compressed_records_are_read(codec: str, topic_of, reads) -> None:
    topic = topic_of(partitions=1)
    topic.add(100, **{"compression.type": codec, "linger.ms": 50})
    assert numbers(reads.batch(topic.name)) == list(range(100))


def test_only_committed_records_are_read_by_default(broker: Broker, topic_of, reads) -> None:
    topic = topic_of(3, partitions=1)
    conf = {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": uuid4().hex}
    with Producer(conf) as producer:
        producer.init_transactions()
        for word, end in (("90", producer.abort_transaction), ("91", producer.commit_transaction)):
            producer.begin_transaction()
            producer.produce(topic.name, word)
            producer.flush()
            end()
    assert numbers(reads.batch(topic.name)) == [0, 1, 2, 91]
    dirty = {"kafka.isolation.level": "read_uncommitted"}
    assert numbers(reads.batch(topic.name, **dirty)) == [0, 1, 2, 90, 91]


def test_deleted_records_fail_the_read_or_are_skipped(broker: Broker, topic_of, reads) -> None:
    topic = topic_of(10, partitions=1)
    with AdminClient({"bootstrap.servers": broker.bootstrap_servers}) as admin:
        (deleted,) = admin.delete_records([TopicPartition(topic.name, 0, 4)]).values()
        deleted.result()
    starting = {"startingOffsets": json.dumps({topic.name: {"0": 1}})}
    with pytest.raises(SourceError, match=r"\[0\] begins at offset 4: those from 1 to 4 are gone"):
        reads.batch(topic.name, **starting)
    assert numbers(reads.batch(topic.name, failOnDataLoss="false", **starting)) == [*range(4, 10)]


def test_an_end_after_the_log_end_is_data_loss_or_limited(topic_of, reads) -> None:
    topic = topic_of(10, partitions=1)
    ending = {"endingOffsets": json.dumps({topic.name: {"0": 11}})}
    with pytest.raises(SourceError, match=r"has 11 for .* \[0\], which ends at offset 10"):
        reads.batch(topic.name, **ending)
    assert numbers(reads.batch(topic.name, failOnDataLoss="false", **ending)) == [*range(10)]


@pytest.mark.parametrize("ending", ["3", "-1"])
def test_an_end_before_the_start_is_an_error(topic_of, reads, ending: str) -> None:
    topic = topic_of(10, partitions=1)
    bounds = {
        "startingOffsets": f'{{"{topic.name}": {{"0": 15}}}}',
        "endingOffsets": f'{{"{topic.name}": {{"0": {ending}}}}}',
    }
    with pytest.raises(SourceError, match=r"\[0\] would be read from offset 15 to"):
        reads.batch(topic.name, **bounds)


def test_a_schema_selects_columns(topic_of, reads) -> None:
    topic = topic_of(5)
    source = reads.source(topic.name, {})
    reader = source.reader(StructType().add("offset", "long").add("value", "binary"))
    (task,) = reader.partitions()
    assert next(reader.read(task)).schema.names == ["offset", "value"]
    with pytest.raises(OptionError, match="column value of type string"):
        source.reader(StructType().add("value", "string"))


def test_a_topic_that_does_not_exist_is_named(reads) -> None:
    with pytest.raises(SourceError, match="There is no topic 'nowhere'"):
        reads.batch("nowhere")


def test_a_topic_that_some_brokers_do_not_have_yet_is_retried(
    broker: Broker, reads, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = f"late-{uuid4().hex[:8]}"

    def sleep(pause_s: float) -> None:
        if pause_s > 0:
            broker.create_topic(topic)

    monkeypatch.setattr("barnabas.spark.source.cluster_client.sleep", sleep)
    assert reads.tasks(topic) == []


def test_a_partition_that_its_leader_does_not_have_yet_is_retried(
    broker: Broker, topic_of, reads
) -> None:
    topic = topic_of(3)
    with broker.faults.fail("ListOffsets", "UNKNOWN_TOPIC_OR_PARTITION", times=2):
        assert numbers(reads.batch(topic.name)) == [0, 1, 2]


def test_an_unreachable_broker_is_named(reads) -> None:
    away = {"kafka.bootstrap.servers": "127.0.0.1:1", "kafka.default.api.timeout.ms": "3000"}
    with pytest.raises(SourceError, match=r"127\.0\.0\.1:1: .*refused"):
        reads.batch("t", **away)
