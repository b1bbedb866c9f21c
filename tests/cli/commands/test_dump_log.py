"""`barnabas dump-log`: files and directories, as lines or as JSON."""

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Barnabas

from barnabas.cli.root_command import ExitStatus
from barnabas.metadata.frames import encode_record
from barnabas.wire.messages.metadata_records import TopicRecord
from barnabas.wire.records.build import Record, build_batch

SEGMENT = "00000000000000000000.log"


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    directory = tmp_path / "orders-0"
    directory.mkdir()
    (directory / SEGMENT).write_bytes(build_batch([Record(0, 1_000, b"k", b"v", [("h", b"x")])]))
    (directory / "leader-epoch-checkpoint").write_text("0\n0\n")
    return directory


def test_a_partition_directory_is_dumped_file_by_file(barnabas: Barnabas, partition: Path) -> None:
    lines = barnabas("dump-log", partition, "-r").output.splitlines()
    assert lines[0] == f"Dumping {partition / SEGMENT}"
    assert lines[-1].endswith("key: k payload: v")


def test_json_output_has_an_object_per_batch(barnabas: Barnabas, partition: Path) -> None:
    row = json.loads(barnabas("dump-log", partition / SEGMENT, "--json").output)
    assert (row["count"], row["codec"], row["is_valid"], "records" in row) == (
        1,
        "none",
        True,
        False,
    )
    row = json.loads(barnabas("dump-log", partition / SEGMENT, "-r", "--json").output)
    assert row["records"] == [
        {"offset": 0, "timestamp": 1_000, "key": "k", "value": "v", "headers": ["h"]}
    ]


def test_the_directory_name_selects_the_decoder(barnabas: Barnabas, tmp_path: Path) -> None:
    directory = tmp_path / "__cluster_metadata-0"
    directory.mkdir()
    value = encode_record(TopicRecord(name="orders", topic_id=bytes(16)), 0)
    (directory / SEGMENT).write_bytes(build_batch([Record(0, 1_000, None, value, [])]))
    row = json.loads(barnabas("dump-log", directory, "-r", "--json").output)
    assert row["records"][0]["value"]["type"] == "TOPIC_RECORD"
    assert row["records"][0]["value"]["data"]["name"] == "orders"


def test_a_file_that_is_not_a_segment_is_an_error(barnabas: Barnabas, tmp_path: Path) -> None:
    file = tmp_path / "notes.log"
    file.write_text("x")
    assert barnabas("dump-log", file).exit_code == ExitStatus.FAILED
    assert barnabas("dump-log", tmp_path / "nothing").exit_code == ExitStatus.USAGE
