"""What formatting writes, beside what `kafka-storage format --standalone` of Kafka 4.3 wrote."""

from pathlib import Path

from tests.metadata.conftest import KAFKA_DIRECTORY

from barnabas.log.directory.directory_files import read_meta_properties
from barnabas.raft import VoterEndpoint, VoterNode, VoterSet, format_metadata, read_bootstrap
from barnabas.wire.records.batch import iterate_batches
from barnabas.wire.records.control import ControlType, read_control_type
from barnabas.wire.records.read import read_records
from barnabas.wire.records.record import Record

FIRST_SNAPSHOT = "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"
CONTROLLER_PORT = 19593


def test_a_formatted_directory_is_the_one_kafka_formats(tmp_path: Path) -> None:
    meta = read_meta_properties(str(KAFKA_DIRECTORY))
    endpoint = VoterEndpoint("CONTROLLER", "127.0.0.1", CONTROLLER_PORT)
    voter = VoterNode(meta.node_id, meta.directory_id, (endpoint,))
    format_metadata(
        str(tmp_path), read_bootstrap(str(KAFKA_DIRECTORY)), VoterSet([voter]), now_ms=1
    )
    for name in ("bootstrap.checkpoint", FIRST_SNAPSHOT):
        ours, theirs = tmp_path / name, KAFKA_DIRECTORY / name
        assert ours.stat().st_size == theirs.stat().st_size
        assert _batches(ours) == _batches(theirs)
    ours, theirs = (path / "__cluster_metadata-0" for path in (tmp_path, KAFKA_DIRECTORY))
    assert (ours / "partition.metadata").read_text() == (theirs / "partition.metadata").read_text()


def _batches(path: Path) -> list[object]:
    """The batches of a file without its times."""
    content = path.read_bytes()
    return [
        (
            header.base_offset,
            header.leader_epoch,
            header.attributes,
            header.producer_id,
            [_without_time(record) for record in read_records(content, at)],
        )
        for at, header in iterate_batches(content)
    ]


def _without_time(record: Record) -> tuple[int, bytes | None, bytes | None]:
    value = record.value
    if record.key and read_control_type(record.key) is ControlType.SNAPSHOT_HEADER:
        value = value and value[:2]
    return record.offset, record.key, value
