"""What the driver is told by brokers that do not all know the same."""

from collections.abc import Mapping

import pytest

from barnabas.spark.source import broker as broker_module
from barnabas.spark.source.broker import Broker as Driver
from barnabas.spark.source.connection import connect
from barnabas.spark.source.offsets import Partition
from barnabas.testing import Broker

A = Partition("t", 0)


def test_an_end_that_goes_back_is_asked_for_again_before_it_is_believed(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = iter([5, 3, 6, 2, 2, 2, 2, 2, 2])

    def offsets(_: Driver, wanted: Mapping[Partition, int]) -> dict[Partition, int]:
        return dict.fromkeys(wanted, next(told))

    monkeypatch.setattr(Driver, "offsets", offsets)
    monkeypatch.setattr(broker_module, "sleep", lambda _: None)
    driver = Driver(connect({"bootstrap.servers": broker.bootstrap_servers}))
    assert [driver.latest([A]) for _ in range(4)] == [{A: 5}, {A: 6}, {A: 2}, {A: 2}]
