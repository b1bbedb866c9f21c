"""The metadata shell on a snapshot."""

from pathlib import Path

import pytest

from barnabas.cli.kafka.metadata_shell import main
from barnabas.cli.operations.errors import CommandError
from barnabas.cli.operations.metadata_shell import MetadataShell, image_tree, load_image
from barnabas.metadata.frames import encode_record
from barnabas.wire.messages.metadata_records import (
    FeatureLevelRecord,
    PartitionRecord,
    TopicRecord,
)
from barnabas.wire.records.build import Record, build_batch

TOPIC_ID = bytes(15) + b"\x07"


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    records = [
        FeatureLevelRecord(name="metadata.version", feature_level=30),
        TopicRecord(name="orders", topic_id=TOPIC_ID),
        PartitionRecord(topic_id=TOPIC_ID, partition_id=0, replicas=[1], isr=[1], leader=1),
    ]
    framed = [
        Record(at, 1_000, None, encode_record(record, 0), []) for at, record in enumerate(records)
    ]
    path = tmp_path / "00000000000000000003-0000000001.checkpoint"
    path.write_bytes(build_batch(framed, leader_epoch=1))
    return path


@pytest.fixture
def shell(snapshot: Path) -> MetadataShell:
    return MetadataShell(image_tree(load_image(snapshot)))


def test_directories_are_listed(shell: MetadataShell) -> None:
    assert list(shell.run(["ls", "/"])) == ["image", "local"]
    assert list(shell.run(["ls", "/image/topics/byName/orders"])) == ["0", "id", "name"]


def test_files_contain_the_image(shell: MetadataShell) -> None:
    assert list(shell.run(["cat", "/image/features/metadataVersion"])) == ["Optional[4.3-IV0]"]
    (partition,) = shell.run(["cat", "/image/topics/byName/orders/0"])
    assert partition.startswith("PartitionRegistration(replicas=[1], ")
    assert "leader=1, leaderRecoveryState=RECOVERED" in partition


def test_paths_are_relative_to_the_working_directory(shell: MetadataShell) -> None:
    assert list(shell.run(["cd", "image/topics"])) == []
    assert list(shell.run(["pwd"])) == ["/image/topics"]
    assert list(shell.run(["cat", "../features/metadata*"])) == ["Optional[4.3-IV0]"]
    assert list(shell.run(["find", "byName"]))[1] == "byName/orders"
    assert shell.complete("by") == ["byId", "byName"]


@pytest.mark.parametrize("command", ["ls", "cat", "find", "tree", "cd"])
def test_a_missing_path_is_reported(shell: MetadataShell, command: str) -> None:
    (line,) = shell.run([command, "/nothing"])
    assert line.lower() == f"{command}: /nothing: no such file or directory."


def test_an_unknown_command_lists_the_commands(shell: MetadataShell) -> None:
    (line,) = shell.run(["rm", "/"])
    assert "unknown command" in line
    assert "tree" in line


def test_a_damaged_file_is_rejected(snapshot: Path) -> None:
    content = bytearray(snapshot.read_bytes())
    content[-1] ^= 1
    snapshot.write_bytes(content)
    with pytest.raises(CommandError, match="damaged"):
        load_image(snapshot)


def test_a_command_runs_without_an_interactive_shell(
    snapshot: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--snapshot", str(snapshot), "ls", "/image/cluster"]) == 0
    assert capsys.readouterr().out == "brokers\ncontrollers\n"
    with pytest.raises(SystemExit, match="1"):
        main(["--snapshot", str(snapshot.parent / "no.log"), "ls", "/"])
    assert "cannot read" in capsys.readouterr().err
