"""The directories of a node: whose they are, and what happens when one of them cannot be used."""

from pathlib import Path

import pytest

from barnabas.config import BrokerSettings
from barnabas.log import LogDirectory
from barnabas.node.single_node import single_node_properties
from barnabas.node.errors import NodeError
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


def test_all_directories_are_opened_and_the_first_has_the_metadata(directories: list[Path]) -> None:
    storage = NodeStorage(settings_of(*directories))
    assert [each.path for each in storage.directories] == [str(each) for each in directories]
    assert storage.metadata is storage.directories[0]
    assert storage.failed_paths == []
    storage.abandon()


def test_the_epoch_of_a_stop_counts_if_all_were_stopped_in_it(directories: list[Path]) -> None:
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


def test_a_directory_in_use_stops_the_node_and_the_others_are_let_go(
    directories: list[Path],
) -> None:
    other = LogDirectory.open(directories[1])
    with pytest.raises(NodeError, match=r"another broker uses .*two: stop it, or choose another"):
        NodeStorage(settings_of(*directories))
    other.close(clean=False)
    NodeStorage(settings_of(*directories)).abandon()


def test_an_unreadable_directory_is_lost_alone(directories: list[Path]) -> None:
    (directories[1] / ".lock").mkdir()
    storage = NodeStorage(settings_of(*directories))
    assert storage.failed_paths == [str(directories[1])]
    assert [each.path for each in storage.directories] == [str(directories[0])]
    storage.abandon()


def test_without_the_metadata_log_there_is_no_node(directories: list[Path]) -> None:
    (directories[0] / ".lock").mkdir()
    with pytest.raises(NodeError, match=r"The metadata log in .*one cannot be read"):
        NodeStorage(settings_of(*directories))


@pytest.mark.parametrize(
    ("cluster_id", "node_id", "directory_id", "told"),
    [
        ("castle", 2, b"2" * 16, "belongs to node 2, but node.id is 1"),
        ("moat", 1, b"2" * 16, "belongs to cluster moat"),
        ("castle", 1, b"\x01" * 16, "are copies with one directory.id"),
    ],
)
def test_a_directory_that_does_not_belong_here_is_refused(
    directories: list[Path], cluster_id: str, node_id: int, directory_id: bytes, told: str
) -> None:
    LogDirectory.format(directories[1], cluster_id, node_id, directory_id)
    with pytest.raises(NodeError, match=told):
        NodeStorage(settings_of(*directories))
