"""The active controller logs every state change of a broker in one line."""

import pytest
from tests.log_records import barnabas_log_lines, barnabas_log_records

from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.states import BrokerRegistration, PartitionRegistration
from barnabas.node.controller_role import BrokerEventLog


def image_with(*, epoch: int = 1, fenced: bool = False, leaving: bool = False) -> MetadataImage:
    image = MetadataImage()
    image.brokers[2] = BrokerRegistration(2, epoch, b"", (), {}, None, fenced, leaving, ())
    return image


def moved(partitions: int, leaderless: int) -> MetadataDelta:
    states = {
        (b"t", number): PartitionRegistration(
            (1, 2), (1,), -1 if number < leaderless else 1, 0, 0, ()
        )
        for number in range(partitions)
    }
    return MetadataDelta(brokers_changed={2}, partitions_changed=states)


def test_the_active_controller_logs_every_state_change_of_a_broker_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", logger="barnabas.node.controller_role")
    event_log = BrokerEventLog(lambda: True)
    event_log.on_metadata_change(moved(0, 0), image_with(fenced=True))
    event_log.on_metadata_change(moved(0, 0), image_with())
    event_log.on_metadata_change(moved(0, 0), image_with())
    event_log.on_metadata_change(moved(1000, 3), image_with(fenced=True))
    event_log.on_metadata_change(moved(0, 0), image_with())
    event_log.on_metadata_change(moved(5, 0), image_with(leaving=True))
    event_log.on_metadata_change(moved(0, 0), MetadataImage())
    assert barnabas_log_lines(caplog) == [
        "broker 2 is registered",
        "broker 2 is unfenced",
        "broker 2 is fenced: 1000 partitions changed, 3 of them are offline",
        "broker 2 is unfenced",
        "broker 2 is in controlled shutdown: 5 partitions changed, 0 of them are offline",
        "broker 2 is unregistered",
    ]


def test_a_restart_is_no_failure(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="barnabas.node.controller_role")
    event_log = BrokerEventLog(lambda: True)
    event_log.on_metadata_change(moved(0, 0), image_with())
    caplog.clear()
    event_log.on_metadata_change(moved(50, 50), image_with(epoch=2, fenced=True))
    event_log.on_metadata_change(moved(50, 0), image_with(epoch=2))
    assert barnabas_log_lines(caplog) == [
        "broker 2 is registered",
        "broker 2 is unfenced: 50 partitions changed, 0 of them are offline",
    ]


@pytest.mark.parametrize(
    ("image", "leaderless", "level"),
    [
        (image_with(fenced=True), 3, "WARNING"),
        (image_with(fenced=True), 0, "INFO"),
        (image_with(leaving=True), 3, "INFO"),
    ],
)
def test_partitions_that_go_offline_with_a_failed_broker_are_a_warning(
    image: MetadataImage, leaderless: int, level: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="barnabas.node.controller_role")
    event_log = BrokerEventLog(lambda: True)
    event_log.on_metadata_change(moved(0, 0), image_with())
    caplog.clear()
    event_log.on_metadata_change(moved(1000, leaderless), image)
    (record,) = barnabas_log_records(caplog)
    assert record.levelname == level


def test_standby_controllers_log_nothing(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="barnabas.node.controller_role")
    is_active = False
    event_log = BrokerEventLog(lambda: is_active)
    event_log.on_metadata_change(moved(1, 1), image_with(fenced=True))
    is_active = True
    event_log.on_metadata_change(moved(0, 0), image_with(fenced=True))
    assert barnabas_log_lines(caplog) == []
