"""What the cluster says of itself, and how it treats what it does not understand."""

import struct
from typing import Any

import pytest
from tests.conformance.same.conftest import PLAIN
from tests.conformance.same.sides import Sides, framed, same

from barnabas.wire.apis import ApiKey
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    RequestPartitionData,
    RequestTopicData,
)
from barnabas.wire.messages.log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
)
from barnabas.wire.messages.metadata import DescribeClusterRequest, MetadataRequest
from barnabas.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

pytestmark = pytest.mark.peer

ADDED_A_VERSION_IN_4_4 = ApiKey.API_VERSIONS, ApiKey.TXN_OFFSET_COMMIT, ApiKey.DELETE_GROUPS
"""The messages are those of 4.4; KIP-1242, topics by id, and messages beside error codes."""


def test_api_versions(sides: Sides) -> None:
    """What Barnabas serves it serves in Kafka's versions, with Kafka's features."""
    asked = ApiVersionsRequest(client_software_name="same", client_software_version="1")
    same(sides, lambda *_: asked, but={"api_keys": "compared below"})
    kafka, barnabas = (
        {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}
        for answer in (side.ask(asked, 4) for side in sides)  # type: ignore[union-attr]
    )
    for key in ADDED_A_VERSION_IN_4_4:
        first, last = kafka[key]
        kafka[key] = first, last + 1
    assert {key: kafka.get(key) for key in barnabas} == barnabas


def test_api_versions_of_a_client_without_a_name(sides: Sides) -> None:
    same(
        sides,
        lambda *_: ApiVersionsRequest(client_software_name="?", client_software_version=""),
        but={"api_keys": "compared above"},
    )


@pytest.mark.parametrize("version", [99, 32767, -1])
def test_api_versions_newer_than_the_broker(sides: Sides, version: int) -> None:
    """KIP-511: answered in version 0, with the range that is spoken."""
    body = struct.pack(">hhih", ApiKey.API_VERSIONS, version, 7, -1) + b"\x00"
    kafka, barnabas = (side.ask_bytes(struct.pack(">i", len(body)) + body) for side in sides)
    assert kafka[:6] == barnabas[:6]


@pytest.mark.parametrize(
    "frame",
    [
        struct.pack(">ihhih", 10, 3, 99, 1, -1),
        struct.pack(">ihhih", 10, 3, -1, 1, -1),
        struct.pack(">ihhih", 10, 4711, 0, 1, -1),
        struct.pack(">ihhih", 10, 4, 0, 1, -1),
        struct.pack(">ihhih", 10, 0, 2, 1, -1),
        struct.pack(">ihhih", 10, 1, 3, 1, -1),
        struct.pack(">i", -1),
        struct.pack(">i", 0),
        struct.pack(">i", 2**31 - 1),
        framed(MetadataRequest(topics=[]), 9)[:-1] + b"\x05",
    ],
    ids=[
        "version_too_high",
        "version_negative",
        "api_unknown",
        "api_retired",
        "produce_of_old",
        "fetch_of_old",
        "size_negative",
        "size_zero",
        "size_huge",
        "tags_missing",
    ],
)
def test_what_is_not_understood_ends_the_connection(sides: Sides, frame: bytes) -> None:
    kafka, barnabas = (side.ask_bytes(frame) for side in sides)
    assert kafka == barnabas == b""


def test_bytes_after_a_request(sides: Sides) -> None:
    whole = framed(MetadataRequest(topics=[]), 9) + b"more"
    longer = struct.pack(">i", len(whole) - 4) + whole[4:]
    kafka, barnabas = (bool(side.ask_bytes(longer)) for side in sides)
    assert kafka == barnabas


@pytest.mark.parametrize("endpoint_type", [0, 1, 2, 3])
@pytest.mark.parametrize("operations", [True, False])
def test_describe_cluster(sides: Sides, endpoint_type: int, operations: bool) -> None:
    same(
        sides,
        lambda *_: DescribeClusterRequest(
            include_cluster_authorized_operations=operations, endpoint_type=endpoint_type
        ),
    )


@pytest.mark.parametrize(
    "topics",
    [[(PLAIN, [0, 1])], [(PLAIN, [99])], [("unknown-to-both", [0])], []],
    ids=str,
)
def test_describe_log_dirs(sides: Sides, topics: list[tuple[str, list[int]]]) -> None:
    asked = [DescribableLogDirTopic(topic=topic, partitions=each) for topic, each in topics]
    same(sides, lambda *_: DescribeLogDirsRequest(topics=asked))


@pytest.mark.parametrize("partition", [0, 99])
@pytest.mark.parametrize("directory", ["its own", "/no/such/directory", "relative"])
def test_alter_replica_log_dirs(sides: Sides, partition: int, directory: str) -> None:
    def build(side: Any, _: int) -> Any:
        path = str(side.broker.data) if directory == "its own" else directory
        topic = AlterReplicaLogDirTopic(name=PLAIN, partitions=[partition])
        return AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=path, topics=[topic])])

    same(sides, build)


@pytest.mark.parametrize(
    ("topic", "partitions"),
    [("__cluster_metadata", [0]), ("__cluster_metadata", [1]), (PLAIN, [0]), (None, [])],
)
def test_describe_quorum(sides: Sides, topic: str | None, partitions: list[int]) -> None:
    asked = [] if topic is None else [
        RequestTopicData(
            topic_name=topic,
            partitions=[RequestPartitionData(partition_index=index) for index in partitions],
        )
    ]  # fmt: skip
    same(
        sides,
        lambda *_: DescribeQuorumRequest(topics=asked),
        but={
            "high_watermark": "each its own",
            "log_end_offset": "each its own",
            "leader_epoch": "each its own",
            "nodes": "each its own port",
        },
    )


@pytest.mark.parametrize(
    ("feature", "level", "upgrade_type"),
    [
        ("metadata.version", 30, 1),
        ("metadata.version", 1, 1),
        ("metadata.version", 25, 2),
        ("metadata.version", 25, 1),
        ("metadata.version", 999, 1),
        ("metadata.version", 0, 3),
        ("metadata.version", 30, 0),
        ("no.such.feature", 1, 1),
        ("transaction.version", 2, 1),
        ("transaction.version", 99, 1),
        ("group.version", 1, 1),
        ("kraft.version", 1, 1),
    ],
)
def test_update_features(sides: Sides, feature: str, level: int, upgrade_type: int) -> None:
    update = FeatureUpdateKey(feature=feature, max_version_level=level, upgrade_type=upgrade_type)
    same(
        sides,
        lambda _, version: (
            UpdateFeaturesRequest(feature_updates=[update], validate_only=True, timeout_ms=10_000)
            if version != 0
            else None
        ),
    )
