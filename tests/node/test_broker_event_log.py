"""The active controller tells what became of brokers: a line each, however much it moved."""

import pytest
from tests.logged import lines

from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.states import BrokerRegistration, PartitionRegistration
from barnabas.node.broker_event_log import BrokerEventLog


def image_with(*, fenced: bool = False, leaving: bool = False) -> MetadataImage:
    image = MetadataImage()
    image.brokers[2] = BrokerRegistration(2, 1, b"", (), {}, None, fenced, leaving, ())
    return image


def moved(partitions: int, leaderless: int) -> MetadataDelta:
    states = {
        (b"t", number): PartitionRegistration((1, 2), (1,), -1 if number < leaderless else 1, 0, 0, ())
        for number in range(partitions)
    }
    return MetadataDelta(brokers_changed={2}, partitions_changed=states)


def test_the_active_controller_tells_each_change_of_a_broker_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", logger="barnabas.node.broker_event_log")
    chronicle = BrokerEventLog(lambda: True)
    chronicle.on_metadata_change(moved(0, 0), image_with(fenced=True))
    chronicle.on_metadata_change(moved(0, 0), image_with())
    chronicle.on_metadata_change(moved(0, 0), image_with())
    chronicle.on_metadata_change(moved(1000, 3), image_with(fenced=True))
    chronicle.on_metadata_change(moved(0, 0), image_with())
    chronicle.on_metadata_change(moved(5, 0), image_with(leaving=True))
    chronicle.on_metadata_change(moved(0, 0), MetadataImage())
    assert lines(caplog) == [
        "broker 2 is registered",
        "broker 2 may lead",
        "broker 2 is fenced: 1000 partitions changed, 3 of them have no leader",
        "broker 2 may lead",
        "broker 2 leaves: 5 partitions changed, 0 of them have no leader",
        "broker 2 is unregistered",
    ]


def test_other_controllers_say_nothing(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="barnabas.node.broker_event_log")
    is_active = False
    chronicle = BrokerEventLog(lambda: is_active)
    chronicle.on_metadata_change(moved(1, 1), image_with(fenced=True))
    is_active = True
    chronicle.on_metadata_change(moved(0, 0), image_with(fenced=True))
    assert lines(caplog) == []
