"""The object store sink, driven as the engine drives it, on a directory and on an S3 server."""

import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from barnabas.connect.config_def import errors_of
from barnabas.connect.connector import AvailableRecords, WriteContext, WriteReport
from barnabas.connect.connectors.object_store import ObjectStoreSink, S3Sink
from barnabas.connect.connectors.object_store.partitioners import path_pattern
from barnabas.connect.connectors.object_store.stores import open_store
from barnabas.connect.data.batch import ConnectBatch, headers_type
from barnabas.connect.data.schema import ConnectSchema, SchemaField, Type
from barnabas.connect.errors import ConnectError, InvalidConfigError

ORDERS = "orders"
CONFLUENT = "io.confluent.connect.s3"

ROW = ConnectSchema(
    Type.STRUCT,
    name="order",
    fields=(
        SchemaField("id", ConnectSchema(Type.INT32)),
        SchemaField("city", ConnectSchema(Type.STRING, is_optional=True)),
        SchemaField("at", ConnectSchema(Type.INT64)),
    ),
)


class Reporter:
    """Takes failed records, or raises."""

    def __init__(self, *, tolerates_errors: bool = False) -> None:
        self.tolerates_errors = tolerates_errors
        self.failed: list[tuple[int, str]] = []

    def report(self, records: ConnectBatch, error: Exception) -> None:
        if not self.tolerates_errors:
            raise error
        self.failed += [(offset, str(error)) for offset in records.offset.to_pylist()]


def batch_of(
    rows: Sequence[Mapping[str, Any] | None],
    *,
    start: int = 0,
    partition: int = 0,
    topic: str = ORDERS,
    schema: ConnectSchema | None = ROW,
    values: pa.Array | None = None,
) -> ConnectBatch:
    count = len(rows)
    value = pa.array(rows, ROW.arrow_type()) if values is None else values
    return ConnectBatch(
        topic=pa.array([topic] * count),
        partition=pa.array([partition] * count, pa.int32()),
        offset=pa.array(range(start, start + count), pa.int64()),
        timestamp=pa.array([(start + index) * 1000 for index in range(count)], pa.int64()).cast(
            pa.timestamp("ms", "UTC")
        ),
        key_schema=None,
        key=pa.nulls(count, pa.binary()),
        value_schema=schema,
        value=value,
        headers=pa.nulls(count, headers_type()),
    )


def orders(count: int, start: int = 0) -> list[dict[str, Any]]:
    cities = ("Praha", "Wien", None)
    return [
        {"id": number, "city": cities[number % 3], "at": number * 60_000}
        for number in range(start, start + count)
    ]


def sink_of(directory: Path, **settings: str) -> ObjectStoreSink:
    config = {
        "name": "files",
        "store.url": str(directory),
        "format.class": "json",
        "flush.size": "3",
        **{name.replace("_", "."): text for name, text in settings.items()},
    }
    assert errors_of(ObjectStoreSink.validate(config)) == []
    sink = ObjectStoreSink()
    sink.configure(config)
    sink.start()
    return sink


def write(
    sink: ObjectStoreSink,
    *batches: ConnectBatch,
    reporter: Reporter | None = None,
    attempt: int = 0,
) -> WriteReport:
    """Runs one item, which is not committed yet."""
    ranges: dict[tuple[str, int], tuple[int, int]] = {}
    for batch in batches:
        key = (batch.topic[0].as_py(), batch.partition[0].as_py())
        first, last = batch.offset[0].as_py(), batch.offset[len(batch) - 1].as_py()
        start = min(ranges.get(key, (first, 0))[0], first)
        ranges[key] = (start, last + 1)
    context = WriteContext("files", 0, attempt, ranges, reporter or Reporter())
    writer = sink.open(context)
    for batch in batches:
        writer.write(batch)
    return writer.close()


def files(directory: Path) -> list[str]:
    found = (path for path in directory.rglob("*") if path.is_file())
    return sorted(
        str(path.relative_to(directory)) for path in found if "_barnabas" not in path.parts
    )


def lines(file: Path) -> list[Any]:
    return [json.loads(line) for line in file.read_text().splitlines()]


# Names and formats


def test_files_have_the_names_of_confluents_sink(tmp_path: Path) -> None:
    sink = sink_of(tmp_path)
    sink.commit([write(sink, batch_of(orders(7)), batch_of(orders(2), start=40, partition=1))])
    assert files(tmp_path) == [
        "topics/orders/partition=0/orders+0+0000000000.json",
        "topics/orders/partition=0/orders+0+0000000003.json",
        "topics/orders/partition=0/orders+0+0000000006.json",
        "topics/orders/partition=1/orders+1+0000000040.json",
    ]
    first = tmp_path / "topics/orders/partition=0/orders+0+0000000000.json"
    assert lines(first)[1] == {"id": 1, "city": "Wien", "at": 60_000}


def test_parquet_files_have_the_fields_as_columns(tmp_path: Path) -> None:
    sink = sink_of(tmp_path, **{"format.class": f"{CONFLUENT}.format.parquet.ParquetFormat"})
    sink.commit([write(sink, batch_of(orders(3)))])
    (name,) = files(tmp_path)
    assert name.endswith("orders+0+0000000000.snappy.parquet")
    assert pq.read_table(tmp_path / name, partitioning=None).to_pylist() == orders(3)


@pytest.mark.parametrize("codec", ["null", "deflate", "snappy", "bzip2"])
def test_avro_files_are_read_by_another_library(tmp_path: Path, codec: str) -> None:
    sink = sink_of(tmp_path, **{"format.class": "avro", "avro.codec": codec})
    sink.commit([write(sink, batch_of(orders(2)), batch_of(orders(1, 2), start=2))])
    (name,) = files(tmp_path)
    with (tmp_path / name).open("rb") as file:
        reader = fastavro.reader(file)
        assert list(reader) == orders(3)
        assert reader.writer_schema["name"] == "order"  # type: ignore[call-overload, index]


def test_json_files_can_be_compressed(tmp_path: Path) -> None:
    sink = sink_of(tmp_path, **{"s3.compression.type": "gzip"})
    sink.commit([write(sink, batch_of(orders(3)))])
    (name,) = files(tmp_path)
    assert name.endswith(".json.gz")
    assert len(gzip.decompress((tmp_path / name).read_bytes()).splitlines()) == 3


def test_bytes_are_written_with_a_separator(tmp_path: Path) -> None:
    sink = sink_of(tmp_path, **{"format.class": "bytearray", "format.bytearray.separator": ";"})
    values = pa.array([b"a", b"", b"ccc"])
    batch = batch_of([None] * 3, schema=ConnectSchema(Type.BYTES), values=values)
    sink.commit([write(sink, batch)])
    (name,) = files(tmp_path)
    assert (tmp_path / name).read_bytes() == b"a;;ccc;"
    assert name.endswith(".bin")


def test_another_schema_begins_another_file(tmp_path: Path) -> None:
    other = ConnectSchema(Type.STRUCT, fields=(SchemaField("id", ConnectSchema(Type.INT32)),))
    values = pa.array([{"id": 9}], other.arrow_type())
    sink = sink_of(tmp_path, **{"flush.size": "10"})
    changed = batch_of([None], start=2, schema=other, values=values)
    sink.commit([write(sink, batch_of(orders(2)), changed, batch_of(orders(1), start=3))])
    assert [name.rpartition("+")[2] for name in files(tmp_path)] == [
        "0000000000.json",
        "0000000002.json",
        "0000000003.json",
    ]


# Partitioners


def test_fields_make_directories(tmp_path: Path) -> None:
    sink = sink_of(
        tmp_path, **{"partitioner.class": "FieldPartitioner", "partition.field.name": "city,id"}
    )
    sink.commit([write(sink, batch_of(orders(3)))])
    assert files(tmp_path) == [
        "topics/orders/city=Praha/id=0/orders+0+0000000000.json",
        "topics/orders/city=Wien/id=1/orders+0+0000000001.json",
        "topics/orders/city=null/id=2/orders+0+0000000002.json",
    ]


def test_a_record_cannot_choose_a_file_outside_of_its_topic(tmp_path: Path) -> None:
    root = tmp_path / "root"
    sink = sink_of(
        root, **{"partitioner.class": "FieldPartitioner", "partition.field.name": "city"}
    )
    rows = orders(3)
    rows[1]["city"] = "a/../../../../outside"
    rows[2]["city"] = "a/b..c"
    reporter = Reporter(tolerates_errors=True)
    sink.commit([write(sink, batch_of(rows), reporter=reporter)])
    assert [offset for offset, _ in reporter.failed] == [1]
    assert files(root) == [
        "topics/orders/city=Praha/orders+0+0000000000.json",
        "topics/orders/city=a/b..c/orders+0+0000000002.json",
    ]
    assert list(tmp_path.iterdir()) == [root]


@pytest.mark.parametrize("name", ["../../../outside", "..", "a/b"])
def test_a_connector_of_any_name_keeps_its_positions_in_its_directory(
    tmp_path: Path, name: str
) -> None:
    root = tmp_path / "root"
    sink = sink_of(root, name=name)
    sink.commit([write(sink, batch_of(orders(3)))])
    assert sink.committed_positions([(ORDERS, 0)]) == {(ORDERS, 0): 3}
    assert list(tmp_path.iterdir()) == [root]
    kept = root / "topics" / "_barnabas"
    assert [path.suffix for path in (kept / "positions").iterdir()] == [".json"]


def test_hours_of_a_time_zone_make_directories(tmp_path: Path) -> None:
    sink = sink_of(
        tmp_path,
        **{
            "partitioner.class": "HourlyPartitioner",
            "timestamp.extractor": "RecordField",
            "timestamp.field": "at",
            "timezone": "Asia/Kolkata",  # half an hour off the full hour
            "flush.size": "100",
        },
    )
    sink.commit([write(sink, batch_of(orders(40)))])
    assert files(tmp_path) == [
        "topics/orders/year=1970/month=01/day=01/hour=05/orders+0+0000000000.json",
        "topics/orders/year=1970/month=01/day=01/hour=06/orders+0+0000000030.json",
    ]


def test_files_rotate_by_the_time_of_the_records(tmp_path: Path) -> None:
    sink = sink_of(
        tmp_path,
        **{
            "partitioner.class": "DailyPartitioner",
            "timestamp.extractor": "Record",
            "rotate.interval.ms": "4000",
            "flush.size": "100",
        },
    )
    sink.commit([write(sink, batch_of(orders(10)))])
    assert [len(lines(tmp_path / name)) for name in files(tmp_path)] == [4, 4, 2]


@pytest.mark.parametrize(
    ("java", "python"),
    [
        ("'year'=YYYY/'month'=MM", "year=%Y/month=%m"),
        ("yyyy-MM-dd HH.mm.ss", "%Y-%m-%d %H.%M.%S"),
        ("'it''s 100%'", "it's 100%%"),
    ],
)
def test_path_formats_are_translated(java: str, python: str) -> None:
    assert path_pattern(java) == python


@pytest.mark.parametrize("text", ["'open", "QQ"])
def test_invalid_path_formats_are_rejected(text: str) -> None:
    with pytest.raises(InvalidConfigError, match=r"path\.format"):
        path_pattern(text)


# When records are written


@pytest.mark.parametrize(
    ("count", "waiting_ms", "settings", "end"),
    [
        (2, 10**9, {}, 10),
        (3, 0, {}, 13),
        (8, 0, {}, 16),
        (2, 999, {"rotate.schedule.interval.ms": "1000"}, 10),
        (2, 1000, {"rotate.schedule.interval.ms": "1000"}, 12),
        (10**6, 0, {}, 10 + 499_998),
    ],
)
def test_records_wait_until_a_file_is_full_or_due(
    tmp_path: Path, count: int, waiting_ms: int, settings: dict[str, str], end: int
) -> None:
    sink = sink_of(tmp_path, **settings)
    available = AvailableRecords((ORDERS, 0), 10, 10 + count, waiting_ms)
    assert sink.end_of_next_write(available) == end


# Bad records and settings


def test_records_without_a_value_fail_or_are_ignored(tmp_path: Path) -> None:
    values = [*orders(1), None, *orders(1, 2)]
    with pytest.raises(Exception, match=r"behavior\.on\.null\.values"):
        write(sink_of(tmp_path), batch_of(values))
    reporter = Reporter(tolerates_errors=True)
    write(sink_of(tmp_path), batch_of(values), reporter=reporter)
    assert [offset for offset, _ in reporter.failed] == [1]
    ignoring = sink_of(tmp_path, **{"behavior.on.null.values": "ignore"})
    write(ignoring, batch_of(values))
    (name,) = files(tmp_path)
    assert [row["id"] for row in lines(tmp_path / name)] == [0, 2]


def test_a_record_without_a_directory_does_not_fail_others(tmp_path: Path) -> None:
    sink = sink_of(
        tmp_path,
        **{
            "partitioner.class": "daily",
            "timestamp.extractor": "RecordField",
            "timestamp.field": "city",
            "flush.size": "100",
        },
    )
    rows = [{"id": number, "city": "2026-01-02", "at": 0} for number in range(9)]
    rows[4]["city"] = "never"
    reporter = Reporter(tolerates_errors=True)
    write(sink, batch_of(rows), reporter=reporter)
    assert [offset for offset, _ in reporter.failed] == [4]
    assert "never" in reporter.failed[0][1]
    written = [row["id"] for name in files(tmp_path) for row in lines(tmp_path / name)]
    assert written == [0, 1, 2, 3, 5, 6, 7, 8]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"format.class": "orc"}, "there are parquet, avro, json, bytearray"),
        ({"flush.size": "0"}, "Value must be at least 1"),
        ({"partitioner.class": "field"}, "partition.field.name"),
        ({"partitioner.class": "time"}, "path.format"),
        ({"rotate.interval.ms": "1000"}, "needs a partitioner by time"),
        ({"timezone": "Mars/Base"}, "there is no such time zone"),
        ({"schema.compatibility": "FULL"}, "only NONE"),
        ({"store.kafka.keys": "true"}, "is not supported"),
    ],
)
def test_invalid_settings_are_found(changes: dict[str, str], expected: str) -> None:
    config = {"store.url": "/data", "format.class": "json", "flush.size": "1", **changes}
    (error,) = errors_of(ObjectStoreSink.validate(config))
    assert expected in error


def test_an_unknown_address_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfigError, match="gs"):
        open_store({"store.url": "gs://bucket"})


# Exactly once


def test_positions_are_kept_beside_the_files(tmp_path: Path) -> None:
    sink = sink_of(tmp_path)
    assert sink.committed_positions([(ORDERS, 0)]) is None
    sink.commit([write(sink, batch_of(orders(3)))])
    again = sink_of(tmp_path)
    assert again.committed_positions([(ORDERS, 0), (ORDERS, 1)]) == {(ORDERS, 0): 3}


def test_files_of_a_batch_that_was_not_committed_are_removed(tmp_path: Path) -> None:
    sink = sink_of(tmp_path)
    sink.commit([write(sink, batch_of(orders(3)))])
    write(sink, batch_of(orders(5, 3), start=3))  # the driver dies before the commit
    assert len(files(tmp_path)) == 3

    again = sink_of(tmp_path, **{"flush.size": "4"})
    assert again.committed_positions([(ORDERS, 0)]) == {(ORDERS, 0): 3}
    assert len(files(tmp_path)) == 1
    again.commit([write(again, batch_of(orders(5, 3), start=3))])
    rows = [row["id"] for name in files(tmp_path) for row in lines(tmp_path / name)]
    assert rows == list(range(8))


def test_files_of_a_committed_batch_stay_if_the_driver_dies_after_the_commit(
    tmp_path: Path,
) -> None:
    sink = sink_of(tmp_path)
    report = write(sink, batch_of(orders(3)))
    sink.commit([WriteReport(report.positions)])  # and dies before the list of files is removed
    again = sink_of(tmp_path)
    assert again.committed_positions([(ORDERS, 0)]) == {(ORDERS, 0): 3}
    assert len(files(tmp_path)) == 1
    assert list((tmp_path / "topics/_barnabas/pending/files").iterdir()) == []


def test_a_writer_that_was_replaced_does_not_overwrite_files(tmp_path: Path) -> None:
    """Files have the names of their first offsets: that of fewer records would replace another."""
    context = WriteContext("files", 0, 0, {(ORDERS, 0): (0, 2)}, Reporter())
    paused = sink_of(tmp_path).open(context)
    paused.write(batch_of(orders(2)))
    sink = sink_of(tmp_path)
    sink.commit([write(sink, batch_of(orders(3)))])
    with pytest.raises(ConnectError, match=f"{ORDERS}-0 from offset 0 were written"):
        paused.close()
    paused.abort()
    assert [len(lines(tmp_path / name)) for name in files(tmp_path)] == [3]
    assert not list(tmp_path.glob("topics/_barnabas/pending/files/*"))


def test_an_aborted_attempt_leaves_nothing(tmp_path: Path) -> None:
    sink = sink_of(tmp_path)
    writer = sink.open(WriteContext("files", 0, 0, {(ORDERS, 0): (0, 3)}, Reporter()))
    writer.write(batch_of(orders(3)))
    writer.abort()
    assert files(tmp_path) == []
    assert list((tmp_path / "_barnabas/tmp").iterdir()) == []


def test_operators_can_change_positions(tmp_path: Path) -> None:
    sink = sink_of(tmp_path)
    sink.commit([write(sink, batch_of(orders(3)), batch_of(orders(3), partition=1))])
    assert sink.check_offsets({(ORDERS, 0): 1, (ORDERS, 1): None})
    assert sink_of(tmp_path).committed_positions([(ORDERS, 0), (ORDERS, 1)]) == {(ORDERS, 0): 1}


# S3


@pytest.fixture(scope="module")
def s3_endpoint() -> Iterator[str]:
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


def test_files_are_objects_of_a_bucket(s3_endpoint: str) -> None:
    from pyarrow import fs

    config = {
        "name": "files",
        "s3.bucket.name": "lake",
        "s3.region": "us-east-1",
        "store.url": s3_endpoint,
        "aws.access.key.id": "key",
        "aws.secret.access.key": "secret",
        "format.class": f"{CONFLUENT}.format.parquet.ParquetFormat",
        "storage.class": f"{CONFLUENT}.storage.S3Storage",
        "flush.size": "3",
    }
    bucket = fs.S3FileSystem(
        access_key="key",
        secret_key="secret",
        endpoint_override=s3_endpoint.removeprefix("http://"),
        scheme="http",
        region="us-east-1",
        allow_bucket_creation=True,
    )
    bucket.create_dir("lake")
    assert errors_of(S3Sink.validate(config)) == []
    sink = S3Sink()
    sink.configure(config)
    sink.start()
    assert sink.committed_positions([(ORDERS, 0)]) is None
    sink.commit([write(sink, batch_of(orders(3)))])
    write(sink, batch_of(orders(3, 3), start=3))  # not committed

    again = S3Sink()
    again.configure(config)
    again.start()
    assert again.committed_positions([(ORDERS, 0)]) == {(ORDERS, 0): 3}
    selector = fs.FileSelector("lake/topics/orders", recursive=True)
    found = [info.path for info in bucket.get_file_info(selector) if info.is_file]
    assert found == ["lake/topics/orders/partition=0/orders+0+0000000000.snappy.parquet"]
    assert pq.read_table(found[0], filesystem=bucket, partitioning=None).to_pylist() == orders(3)
