"""Descriptions of the cluster, and requests that a broker does not support."""

import struct
from typing import Any

import pytest
from tests.conformance.side_by_side.conftest import PLAIN
from tests.conformance.side_by_side.sides import Sides, assert_same_responses, encode_request

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

NEW_VERSION_IN_4_4 = ApiKey.API_VERSIONS, ApiKey.TXN_OFFSET_COMMIT, ApiKey.DELETE_GROUPS
"""APIs of Kafka 4.4 that have one version more than 4.3."""


def test_api_versions(sides: Sides) -> None:
    """Barnabas supports the same versions of its APIs and the same features as Kafka."""
    requested = ApiVersionsRequest(client_software_name="same", client_software_version="1")
    assert_same_responses(sides, lambda *_: requested, ignoring={"api_keys": "compared below"})
    kafka, barnabas = (
        {
            api_key.api_key: (api_key.min_version, api_key.max_version)
            for api_key in response.api_keys
        }
        for response in (side.send(requested, 4) for side in sides)  # type: ignore[union-attr]
    )
    for key in NEW_VERSION_IN_4_4:
        first, last = kafka[key]
        kafka[key] = first, last + 1
    assert {key: kafka.get(key) for key in barnabas} == barnabas


def test_api_versions_of_a_client_without_a_name(sides: Sides) -> None:
    assert_same_responses(
        sides,
        lambda *_: ApiVersionsRequest(client_software_name="?", client_software_version=""),
        ignoring={"api_keys": "compared above"},
    )


@pytest.mark.parametrize("version", [99, 32767, -1])
def test_api_versions_newer_than_the_broker(sides: Sides, version: int) -> None:
    """KIP-511: the response has version 0 and the supported range."""
    body = struct.pack(">hhih", ApiKey.API_VERSIONS, version, 7, -1) + b"\x00"
    kafka, barnabas = (side.send_frame(struct.pack(">i", len(body)) + body) for side in sides)
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
        encode_request(MetadataRequest(topics=[]), 9)[:-1] + b"\x05",
    ],
    ids=[
        "version_too_high",
        "version_negative",
        "api_unknown",
        "api_retired",
        "produce_removed_version",
        "fetch_removed_version",
        "size_negative",
        "size_zero",
        "size_huge",
        "tags_missing",
    ],
)
def test_unsupported_frames_close_the_connection(sides: Sides, frame: bytes) -> None:
    kafka, barnabas = (side.send_frame(frame) for side in sides)
    assert kafka == barnabas == b""


def test_trailing_bytes_after_a_request(sides: Sides) -> None:
    whole = encode_request(MetadataRequest(topics=[]), 9) + b"more"
    longer = struct.pack(">i", len(whole) - 4) + whole[4:]
    kafka, barnabas = (bool(side.send_frame(longer)) for side in sides)
    assert kafka == barnabas


@pytest.mark.parametrize("endpoint_type", [0, 1, 2, 3])
@pytest.mark.parametrize("operations", [True, False])
def test_describe_cluster(sides: Sides, endpoint_type: int, operations: bool) -> None:
    assert_same_responses(
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
    requested = [
        DescribableLogDirTopic(topic=topic, partitions=partitions) for topic, partitions in topics
    ]
    assert_same_responses(sides, lambda *_: DescribeLogDirsRequest(topics=requested))


@pytest.mark.parametrize("partition", [0, 99])
@pytest.mark.parametrize("directory", ["its own", "/no/such/directory", "relative"])
def test_alter_replica_log_dirs(sides: Sides, partition: int, directory: str) -> None:
    def build(side: Any, _: int) -> Any:
        path = str(side.broker.data) if directory == "its own" else directory
        topic = AlterReplicaLogDirTopic(name=PLAIN, partitions=[partition])
        return AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=path, topics=[topic])])

    assert_same_responses(sides, build)


@pytest.mark.parametrize(
    ("topic", "partitions"),
    [("__cluster_metadata", [0]), ("__cluster_metadata", [1]), (PLAIN, [0]), (None, [])],
)
def test_describe_quorum(sides: Sides, topic: str | None, partitions: list[int]) -> None:
    requested = [] if topic is None else [
        RequestTopicData(
            topic_name=topic,
            partitions=[RequestPartitionData(partition_index=index) for index in partitions],
        )
    ]  # fmt: skip
    assert_same_responses(
        sides,
        lambda *_: DescribeQuorumRequest(topics=requested),
        ignoring={
            "high_watermark": "differs",
            "log_end_offset": "differs",
            "leader_epoch": "differs",
            "nodes": "different ports",
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
    assert_same_responses(
        sides,
        lambda _, version: (
            UpdateFeaturesRequest(feature_updates=[update], validate_only=True, timeout_ms=10_000)
            if version != 0
            else None
        ),
    )
