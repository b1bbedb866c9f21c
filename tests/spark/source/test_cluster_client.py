"""The driver's lookups while brokers have different metadata."""

from collections.abc import Mapping

import pytest

from barnabas.spark.source import cluster_client as broker_module
from barnabas.spark.source.cluster_client import SourceClusterClient as Driver
from barnabas.spark.source.connection import connect
from barnabas.spark.source.offsets import SourcePartition
from barnabas.testing import Broker

A = SourcePartition("t", 0)


@pytest.fixture
def driver(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> Driver:
    monkeypatch.setattr(broker_module, "sleep", lambda _: None)
    return Driver(connect({"bootstrap.servers": broker.bootstrap_servers}))


def test_an_end_before_the_read_offset_is_looked_up_again(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    responses = iter([3, 6, 2, 2, 2, 2, 2])

    def offsets(_: Driver, wanted: Mapping[SourcePartition, int]) -> dict[SourcePartition, int]:
        return dict.fromkeys(wanted, next(responses))

    monkeypatch.setattr(Driver, "offsets", offsets)
    assert driver.latest([A], read={A: 5}) == {A: 6}
    assert driver.latest([A], read={A: 6}) == {A: 2}


def test_a_partition_that_reappeared_is_retried_before_it_counts_as_deleted(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    responses = iter([*[{}] * 5, {A: 0}, {}, {A: 1}])
    monkeypatch.setattr(Driver, "_list_offsets", lambda _, wanted: next(responses))
    assert [driver.latest([A]) for _ in range(3)] == [{}, {A: 0}, {A: 1}]
