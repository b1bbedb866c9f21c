"""The lines that the active controller logs about its changes."""

import logging
from collections.abc import Mapping
from typing import Any

import pytest
from tests.controller.harness import ControllerHarness
from tests.log_records import barnabas_log_lines, barnabas_log_records

from barnabas.config.changes import ConfigOperation, ConfigResourceType
from barnabas.controller.change_log import MetadataChanges
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.states import RecoveryState
from barnabas.wire.messages.configs import (
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from barnabas.wire.messages.metadata_records import (
    PartitionChangeRecord,
    PartitionRecord,
    TopicRecord,
)
from barnabas.wire.messages.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from barnabas.wire.schema import Message

NOT_TIERED = "there is no tiered storage, and all segments stay on this broker"


def create(
    name: str, partitions: int = 1, *, validate_only: bool = False, **configs: str
) -> CreateTopicsRequest:
    own = [
        CreatableTopicConfig(name=key.replace("_", "."), value=value)
        for key, value in configs.items()
    ]
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=own)
    return CreateTopicsRequest(topics=[topic], validate_only=validate_only)


def alter(
    resource_type: ConfigResourceType, name: str, configs: dict[str, str | None]
) -> IncrementalAlterConfigsRequest:
    changed = [
        IncrementalAlterableConfig(
            name=key,
            config_operation=ConfigOperation.DELETE if value is None else ConfigOperation.SET,
            value=value,
        )
        for key, value in configs.items()
    ]
    resource = IncrementalAlterConfigsResource(
        resource_type=resource_type, resource_name=name, configs=changed
    )
    return IncrementalAlterConfigsRequest(resources=[resource])


def lines_of(caplog: pytest.LogCaptureFixture, *requests: Message) -> list[tuple[str, str]]:
    """Returns level and text of the lines about the last of the requests."""
    harness = ControllerHarness()

    async def scenario() -> None:
        harness.lead(1)
        harness.commit()
        await harness.join(1)
        for request in requests:
            caplog.clear()
            await harness.send(request)

    with caplog.at_level(logging.INFO, "barnabas.controller"):
        harness.run(scenario)
    return [(record.levelname, record.getMessage()) for record in barnabas_log_records(caplog)]


def test_a_created_topic_has_a_line_with_its_settings(caplog: pytest.LogCaptureFixture) -> None:
    assert lines_of(caplog, create("orders", 3, retention_ms="5000")) == [
        (
            "INFO",
            "topic orders is created with 3 partitions and replication factor 1 "
            "(retention.ms=5000)",
        )
    ]


def test_a_request_that_only_validates_has_no_line(caplog: pytest.LogCaptureFixture) -> None:
    assert lines_of(caplog, create("t", validate_only=True, local_retention_ms="9")) == []


def test_a_topic_with_a_setting_without_effect_has_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert lines_of(caplog, create("table", local_retention_ms="9")) == [
        (
            "INFO",
            "topic table is created with 1 partition and replication factor 1 "
            "(local.retention.ms=9)",
        ),
        ("WARNING", f"topic table: local.retention.ms has no effect yet: {NOT_TIERED}"),
    ]


def test_deleted_topics_and_new_partitions_have_lines(caplog: pytest.LogCaptureFixture) -> None:
    grow = CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name="orders", count=4, assignments=None)]
    )
    assert lines_of(caplog, create("orders"), grow) == [
        ("INFO", "topic orders has 3 new partitions")
    ]
    delete = DeleteTopicsRequest(topics=[DeleteTopicState(name="orders")])
    assert lines_of(caplog, create("orders"), delete) == [("INFO", "topic orders is deleted")]


def test_a_change_is_logged_when_it_is_committed(caplog: pytest.LogCaptureFixture) -> None:
    harness = ControllerHarness()

    async def scenario() -> None:
        harness.lead(1)
        harness.commit()
        await harness.join(1)
        caplog.clear()
        pending = harness.loop.create_task(harness.handle(create("orders")))
        await harness.turn()
        assert barnabas_log_lines(caplog) == []
        harness.commit()
        await pending

    with caplog.at_level(logging.INFO, "barnabas.controller"):
        harness.run(scenario)
    assert barnabas_log_lines(caplog) == [
        "topic orders is created with 1 partition and replication factor 1"
    ]


def test_a_change_that_is_lost_with_its_controller_is_not_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    harness = ControllerHarness()

    async def scenario() -> None:
        harness.lead(1)
        harness.commit()
        await harness.join(1)
        pending = harness.loop.create_task(harness.handle(create("orders")))
        await harness.turn()
        harness.follow()
        harness.lose_uncommitted()
        await pending
        harness.lead(3)
        harness.commit()

    with caplog.at_level(logging.INFO, "barnabas.controller.change_log"):
        harness.run(scenario)
    assert barnabas_log_lines(caplog) == []


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        (
            {"replicas": [2, 3, 1], "adding_replicas": [3], "removing_replicas": [1]},
            "has begun: orders-0 from [1, 2] to [2, 3]",
        ),
        ({"replicas": [2]}, "is complete: orders-0 on [2]"),
    ],
)
def test_a_reassignment_has_a_line(
    changed: dict[str, list[int]], line: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert reassignment_lines(caplog, [1, 2], [], [], changed) == [line]


@pytest.mark.parametrize(
    ("replicas", "line"),
    [([2, 3], "is complete: orders-0 on [2, 3]"), ([1, 2], "is cancelled: orders-0 on [1, 2]")],
)
def test_the_end_of_a_reassignment_has_a_line(
    replicas: list[int], line: str, caplog: pytest.LogCaptureFixture
) -> None:
    changed = {"replicas": replicas, "adding_replicas": [], "removing_replicas": []}
    assert reassignment_lines(caplog, [2, 3, 1], [3], [1], changed) == [line]


def test_a_change_of_the_leader_is_no_reassignment(caplog: pytest.LogCaptureFixture) -> None:
    assert reassignment_lines(caplog, [1, 2], [], [], {"leader": 2}) == []


def reassignment_lines(
    caplog: pytest.LogCaptureFixture,
    replicas: list[int],
    adding: list[int],
    removing: list[int],
    changed: Mapping[str, Any],
) -> list[str]:
    """Returns what is logged when a partition of orders with these replicas is changed."""
    image = MetadataImage()
    topic_id = bytes(16)
    for record in (
        TopicRecord(name="orders", topic_id=topic_id),
        PartitionRecord(
            topic_id=topic_id,
            partition_id=0,
            replicas=replicas,
            adding_replicas=adding,
            removing_replicas=removing,
            directories=[topic_id] * len(replicas),
        ),
    ):
        image.apply(record, MetadataDelta())
    change = PartitionChangeRecord(topic_id=topic_id, partition_id=0, **changed)
    with caplog.at_level(logging.INFO, "barnabas.controller"):
        MetadataChanges.of([change], image).log()
    lines = barnabas_log_lines(caplog)
    return [line.removeprefix("partition reassignment ") for line in lines]


@pytest.mark.parametrize(
    ("last_known_leader", "lines"),
    [
        (
            1,
            [
                "unclean leader election of orders-0: records that the new leader does not have "
                "are lost"
            ],
        ),
        (2, []),
    ],
)
def test_an_unclean_election_of_another_leader_than_the_last_has_a_warning(
    last_known_leader: int, lines: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    image = MetadataImage()
    topic_id = bytes(16)
    for record in (
        TopicRecord(name="orders", topic_id=topic_id),
        PartitionRecord(
            topic_id=topic_id,
            partition_id=0,
            replicas=[1, 2],
            directories=[topic_id, topic_id],
            last_known_elr=[last_known_leader],
        ),
    ):
        image.apply(record, MetadataDelta())
    elected = PartitionChangeRecord(
        topic_id=topic_id,
        partition_id=0,
        leader=2,
        leader_recovery_state=RecoveryState.RECOVERING,
    )
    moved = PartitionChangeRecord(topic_id=topic_id, partition_id=0, leader=2)
    MetadataChanges.of([elected, moved], image).log()
    assert barnabas_log_lines(caplog, logging.WARNING) == lines


@pytest.mark.parametrize(
    ("resource", "configs", "lines"),
    [
        (
            (ConfigResourceType.TOPIC, "orders"),
            {"retention.ms": None, "segment.ms": "9"},
            [("INFO", "topic orders: settings changed: segment.ms=9")],
        ),
        (
            (ConfigResourceType.TOPIC, "orders"),
            {"local.retention.ms": "9"},
            [
                ("INFO", "topic orders: settings changed: local.retention.ms=9"),
                ("WARNING", f"topic orders: local.retention.ms has no effect yet: {NOT_TIERED}"),
            ],
        ),
        (
            (ConfigResourceType.BROKER, ""),
            {"log.retention.ms": "7", "plugin.password": "secret"},
            [
                (
                    "INFO",
                    "all brokers: settings changed: log.retention.ms=7, plugin.password=[hidden]",
                ),
                (
                    "WARNING",
                    "all brokers: plugin.password is not a known setting and has no effect",
                ),
            ],
        ),
        (
            (ConfigResourceType.BROKER, "1"),
            {"listener.name.plaintext.ssl.key.password": "secret"},
            [
                (
                    "INFO",
                    "broker 1: settings changed: listener.name.plaintext.ssl.key.password=[hidden]",
                ),
            ],
        ),
        (
            (ConfigResourceType.GROUP, "g"),
            {"consumer.session.timeout.ms": "46000"},
            [("INFO", "group g: settings changed: consumer.session.timeout.ms=46000")],
        ),
    ],
)
def test_changed_settings_have_a_line_and_those_without_effect_a_warning(
    resource: tuple[ConfigResourceType, str],
    configs: dict[str, str | None],
    lines: list[tuple[str, str]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert lines_of(caplog, create("orders"), alter(*resource, configs)) == lines


def test_a_removed_setting_is_named(caplog: pytest.LogCaptureFixture) -> None:
    orders = ConfigResourceType.TOPIC, "orders"
    created = create("orders", cleanup_policy="compact")
    assert lines_of(caplog, created, alter(*orders, {"cleanup.policy": None})) == [
        ("INFO", "topic orders: settings changed: cleanup.policy is removed")
    ]
