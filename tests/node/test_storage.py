"""A node opens its log directories, and handles those that it cannot use."""

from pathlib import Path

import pytest

from barnabas.config import BrokerSettings
from barnabas.log import LogDirectory
from barnabas.node.errors import NodeError
from barnabas.node.format import single_node_properties
from barnabas.node.storage import NodeStorage


def settings_of(*directories: Path) -> BrokerSettings:
    properties = single_node_properties("127.0.0.1", 9092, directories[0])
    properties["log.dirs"] = ",".join(map(str, directories))
    return BrokerSettings.from_properties(properties)


@pytest.fixture
def directories(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / "one", tmp_path / "two"]
    for number, path in enumerate(paths, start=1):
        LogDirectory.format(path, "castle", 1, bytes([number]) * 16)
    return paths


def test_a_node_opens_all_directories_and_the_first_has_the_metadata_log(
    directories: list[Path],
) -> None:
    storage = NodeStorage(settings_of(*directories))
    assert [directory.path for directory in storage.directories] == [
        str(path) for path in directories
    ]
    assert storage.metadata is storage.directories[0]
    assert storage.failed_paths == []
    storage.abandon()


def test_the_previous_broker_epoch_is_valid_if_all_directories_were_closed_cleanly_in_it(
    directories: list[Path],
) -> None:
    first = NodeStorage(settings_of(*directories))
    assert first.previous_broker_epoch == -1
    for directory in first.directories:
        directory.close(clean=True, broker_epoch=7)
    second = NodeStorage(settings_of(*directories))
    assert second.previous_broker_epoch == 7
    second.directories[0].close(clean=True, broker_epoch=8)
    second.directories[1].close(clean=False)
    third = NodeStorage(settings_of(*directories))
    assert third.previous_broker_epoch == -1
    third.abandon()


def test_a_directory_in_use_stops_the_node_and_the_others_are_released(
    directories: list[Path],
) -> None:
    other = LogDirectory.open(directories[1])
    with pytest.raises(NodeError, match=r"another broker uses .*two: stop it, or choose another"):
        NodeStorage(settings_of(*directories))
    other.close(clean=False)
    NodeStorage(settings_of(*directories)).abandon()


def test_an_unreadable_directory_is_offline_alone(directories: list[Path]) -> None:
    (directories[1] / ".lock").mkdir()
    storage = NodeStorage(settings_of(*directories))
    assert storage.failed_paths == [str(directories[1])]
    assert [directory.path for directory in storage.directories] == [str(directories[0])]
    storage.abandon()


def test_a_node_does_not_start_without_its_metadata_log(directories: list[Path]) -> None:
    (directories[0] / ".lock").mkdir()
    with pytest.raises(NodeError, match=r"The metadata log in .*one cannot be read"):
        NodeStorage(settings_of(*directories))


@pytest.mark.parametrize(
    ("cluster_id", "node_id", "directory_id", "error"),
    [
        ("castle", 2, b"2" * 16, "belongs to node 2, but node.id is 1"),
        ("moat", 1, b"2" * 16, "belongs to cluster moat"),
        ("castle", 1, b"\x01" * 16, "are copies with one directory.id"),
    ],
)
def test_a_directory_of_another_node_or_cluster_is_rejected(
    directories: list[Path], cluster_id: str, node_id: int, directory_id: bytes, error: str
) -> None:
    LogDirectory.format(directories[1], cluster_id, node_id, directory_id)
    with pytest.raises(NodeError, match=error):
        NodeStorage(settings_of(*directories))
