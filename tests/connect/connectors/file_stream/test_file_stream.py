"""FileStreamSource and FileStreamSink, driven as the framework drives them."""

import io
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.connect.connectors.writing import context, read, records, values, write
from tests.wait import wait_until

from barnabas.connect import ConnectError, ConnectSchema, RetriableError, Type
from barnabas.connect.connectors import file_stream, text_lines
from barnabas.connect.connectors.file_stream import FileStreamSink, FileStreamSource
from barnabas.connect.connectors.text_lines import split_lines

STRING = ConnectSchema(Type.STRING)


def source(path: Path | None, **settings: str) -> FileStreamSource:
    connector = FileStreamSource()
    connector.configure(
        {"name": "c", "topic": "t", **settings} | ({"file": str(path)} if path else {})
    )
    return connector


def sink(path: Path | None) -> FileStreamSink:
    connector = FileStreamSink()
    connector.configure({"name": "c"} | ({"file": str(path)} if path else {}))
    return connector


# Source


@given(st.binary(max_size=60).map(lambda data: bytes(b"\n\r\rab\n"[each % 6] for each in data)))
def test_lines_end_with_line_feed_carriage_return_or_both(data: bytes) -> None:
    ended = data[: -1 if data.endswith(b"\r") else None]
    expected = [line.decode() for line in ended.splitlines(keepends=True) if line[-1] in b"\r\n"]
    lines = split_lines(data) if data else None
    if lines is None:
        assert not expected
        return
    assert lines.values.to_pylist() == [line.rstrip("\r\n") for line in expected]
    assert list(lines.ends) == [
        sum(map(len, expected[: count + 1])) for count in range(len(expected))
    ]


def test_each_line_is_a_record_without_key(tmp_path: Path) -> None:
    file = tmp_path / "in"
    file.write_bytes(b"one\ntwo\r\nthree\r\n\nfour\rlast")
    connector = source(file)
    (partition,) = connector.partitions()
    assert partition == {"filename": str(file)}
    (batch,) = read(connector, partition)
    assert batch.records.value.to_pylist() == ["one", "two", "three", "", "four"]
    assert batch.records.topic.to_pylist() == ["t"] * 5
    assert batch.records.key_schema is None
    assert batch.records.value_schema == STRING
    assert batch.position == {"position": 22}


def test_a_line_without_an_end_waits_for_it(tmp_path: Path) -> None:
    file = tmp_path / "in"
    file.write_bytes(b"one\ntw")
    connector = source(file)
    (partition,) = connector.partitions()
    position = {"position": 4}
    assert not connector.has_new(partition, position)
    assert read(connector, partition, position) == []
    with file.open("ab") as out:
        out.write(b"o\r")
    assert not connector.has_new(partition, position)
    with file.open("ab") as out:
        out.write(b"\n")
    assert connector.has_new(partition, position)
    (batch,) = read(connector, partition, position)
    assert batch.records.value.to_pylist() == ["two"]
    assert batch.position == {"position": 9}


def test_a_line_is_found_across_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_stream, "READ_BYTES", 4)
    monkeypatch.setattr(text_lines, "READ_BYTES", 4)
    file = tmp_path / "in"
    file.write_bytes("aé\r\nbbbbbbbbbbb\r\nccc\r\nd\n".encode())
    connector = source(file)
    (partition,) = connector.partitions()
    assert values(read(connector, partition)) == ["aé", "bbbbbbbbbbb", "ccc", "d"]
    assert connector.has_new(partition, {"position": 5})
    assert not connector.has_new(partition, {"position": file.stat().st_size})


def test_a_line_that_is_too_long_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_stream, "READ_BYTES", 4)
    monkeypatch.setattr(text_lines, "READ_BYTES", 4)
    monkeypatch.setattr(file_stream, "MAX_LINE_BYTES", 16)
    file = tmp_path / "in"
    file.write_bytes(b"a\n" + b"b" * 40)
    connector = source(file)
    (partition,) = connector.partitions()
    with pytest.raises(ConnectError, match="more than 16 bytes begins at position 2"):
        read(connector, partition)


def test_reading_stops_after_max_rows_and_resumes(tmp_path: Path) -> None:
    file = tmp_path / "in"
    file.write_text("".join(f"line {number}\n" for number in range(10_000)))
    connector = source(file, **{"batch.size": "300"})
    (partition,) = connector.partitions()
    lines, position = [], None
    while batches := read(connector, partition, position, 1_000):
        assert sum(len(batch.records) for batch in batches) <= 1_000
        lines += values(batches)
        position = batches[-1].position
    assert lines == [f"line {number}" for number in range(10_000)]


def test_a_batch_can_be_cut_at_each_batch_size(tmp_path: Path) -> None:
    file = tmp_path / "in"
    file.write_text("".join(f"{number}\n" for number in range(10)))
    connector = source(file, **{"batch.size": "4"})
    (partition,) = connector.partitions()
    (batch,) = read(connector, partition)
    assert batch.positions == {3: {"position": 8}, 7: {"position": 16}}
    assert values(read(connector, partition, batch.positions[3])) == list("456789")


def test_a_missing_file_is_waited_for(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    connector = source(tmp_path / "in")
    (partition,) = connector.partitions()
    for _ in range(2):
        assert not connector.has_new(partition, None)
    assert read(connector, partition) == []
    assert [record.getMessage() for record in caplog.records] == [
        f"Connector c waits for file {tmp_path}/in, which does not exist."
    ]
    (tmp_path / "in").write_text("a\n")
    assert connector.has_new(partition, None)


def test_a_truncated_or_replaced_file_is_read_from_its_start(tmp_path: Path) -> None:
    file = tmp_path / "in"
    file.write_text("new\n")
    connector = source(file)
    (partition,) = connector.partitions()
    assert connector.has_new(partition, {"position": 1_000})
    (batch,) = read(connector, partition, {"position": 1_000})
    assert batch.records.value.to_pylist() == ["new"]
    assert batch.position == {"position": 4}


def test_bytes_that_are_not_utf8_are_replaced(tmp_path: Path) -> None:
    file = tmp_path / "in"
    file.write_bytes(b"ok\nb\xffd\n")
    connector = source(file)
    (partition,) = connector.partitions()
    (batch,) = read(connector, partition)
    assert batch.records.value.to_pylist() == ["ok", "b\ufffdd"]
    assert batch.position == {"position": 7}


def test_a_directory_is_an_error(tmp_path: Path) -> None:
    connector = source(tmp_path)
    (partition,) = connector.partitions()
    with pytest.raises(RetriableError, match="cannot be read: Is a directory"):
        read(connector, partition)


def test_standard_input_is_read_in_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    reading_end, writing_end = os.pipe()
    with os.fdopen(reading_end, "rb") as stdin:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(stdin))
        driver, task = source(None), source(None)
        assert driver.partitions() == []
        driver.start()
        (partition,) = driver.partitions()
        assert not driver.has_new(partition, None)
        os.write(writing_end, b"typed\nun")
        wait_until(lambda: driver.has_new(partition, None))
        (batch,) = read(task, partition)
        assert batch.records.value.to_pylist() == ["typed"]
        os.close(writing_end)
        driver.stop()
    assert not Path(partition["filename"]).exists()
    with pytest.raises(ConnectError, match="only if Spark runs on the machine"):
        read(task, partition)


def test_settings_are_validated_with_all_errors() -> None:
    errors = {
        value.name: value.errors
        for value in FileStreamSource.validate({"topic": "", "batch.size": "0"})
    }
    assert errors == {
        "file": [],
        "topic": ["Invalid value  for configuration topic: String must be non-empty"],
        "batch.size": ["Invalid value 0 for configuration batch.size: Value must be at least 1"],
    }


@pytest.mark.parametrize(
    ("partition", "position", "message"),
    [
        ({"filename": "f"}, {}, "Offset objects should either be null or contain the key"),
        ({"filename": "f"}, {"position": "1"}, "is expected to be a Long value"),
        ({"filename": "f"}, {"position": -1}, "should be a non-negative value"),
        ({"name": "f"}, {"position": 1}, "Partition objects should contain the key 'filename'"),
    ],
)
def test_offsets_are_checked(tmp_path: Path, partition: Any, position: Any, message: str) -> None:
    with pytest.raises(ConnectError, match=message):
        source(tmp_path / "f").check_offsets([(partition, position)])
    assert source(tmp_path / "f").check_offsets([(partition, None)])


# Sink


def test_each_value_is_a_line(tmp_path: Path) -> None:
    file = tmp_path / "out"
    connector = sink(file)
    report = write(
        connector,
        records(["a", None, "é"], STRING),
        records([{"n": 1, "s": "x"}], None, offset=3),
    )
    assert report.positions == {("t", 0): 4}
    assert file.read_text() == "a\nnull\né\n{n=1, s=x}\n"
    write(connector, records(["b"], STRING, offset=4))
    assert file.read_text().endswith("}\nb\n")


def test_part_of_a_batch_is_written(tmp_path: Path) -> None:
    file = tmp_path / "out"
    write(sink(file), records(list("abcdef"), STRING).slice(2, 3))
    assert file.read_text() == "c\nd\ne\n"


def test_writers_of_one_file_do_not_interleave_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_stream, "WRITE_BYTES", 1 << 16)
    file = tmp_path / "out"

    def run(writer: int) -> None:
        lines = [f"{writer}" * 5_000 for _ in range(300)]
        write(sink(file), *(records(lines, STRING, offset=300 * part) for part in range(3)))

    threads = [threading.Thread(target=run, args=(writer,)) for writer in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = file.read_text().splitlines()
    assert len(lines) == 3_600
    assert {len(line) for line in lines} == {5_000}
    assert all(line == line[0] * 5_000 for line in lines)


def test_a_full_disk_leaves_no_part_of_a_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "out"
    file.write_text("before\n")
    real_write = os.write

    def write_a_part(descriptor: int, data: bytes) -> int:
        monkeypatch.setattr(os, "write", fail)
        return real_write(descriptor, data[:3])

    def fail(descriptor: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", write_a_part)
    with pytest.raises(RetriableError, match="No space left on device"):
        write(sink(file), records(["abcdef"], STRING))
    assert file.read_text() == "before\n"


def test_a_folder_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConnectError, match="cannot be written: No such file or directory"):
        sink(tmp_path / "missing" / "out").open(context({}))


def test_standard_output_is_written_in_the_driver(capfdbinary: Any) -> None:
    connector = sink(None)
    writer = connector.open(context({("t", 0): (0, 2)}))
    writer.write(records(["a", "b"], STRING))
    report = writer.close()
    assert capfdbinary.readouterr().out == b""
    connector.commit([report])
    assert capfdbinary.readouterr().out == b"a\nb\n"
