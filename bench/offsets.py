"""Frames for the offset commits of groups, and waiting until their coordinator is available."""

import time
from collections.abc import Sequence

from barnabas.wire.apis import ApiKey
from barnabas.wire.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from barnabas.wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from bench.raw_client import Address, RawConnection, frame, parse

FIND_VERSION = 4
COMMIT_VERSION = 9
FETCH_VERSION = 9
RETRY_INTERVAL_S = 0.005
GROUPS_A_REQUEST = 100

GROUP, TRANSACTION = 0, 1
"""Key types of FindCoordinator."""


def find_coordinator(address: Address, key: str, key_type: int = GROUP) -> None:
    """Send FindCoordinator until it succeeds: the first request creates the internal topic."""
    request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
    request_frame = frame(ApiKey.FIND_COORDINATOR, FIND_VERSION, request)
    connection = RawConnection(address)
    while True:
        response_bytes = connection.send(request_frame)
        response = parse(
            ApiKey.FIND_COORDINATOR, FIND_VERSION, FindCoordinatorResponse, response_bytes
        )
        if not response.coordinators[0].error_code:
            break
        time.sleep(RETRY_INTERVAL_S)
    connection.close()


def commit_frame(group_id: str, topic: str, partitions: int) -> bytes:
    """Returns a commit of `partitions` offsets, without a member id."""
    committed = [
        OffsetCommitRequestPartition(
            partition_index=index, committed_offset=1_000_000 + index, committed_metadata=""
        )
        for index in range(partitions)
    ]
    request = OffsetCommitRequest(
        group_id=group_id,
        topics=[OffsetCommitRequestTopic(name=topic, partitions=committed)],
    )
    return frame(ApiKey.OFFSET_COMMIT, COMMIT_VERSION, request)


def check_commit(response_bytes: memoryview) -> None:
    """Raises RuntimeError if an offset was not committed."""
    response = parse(ApiKey.OFFSET_COMMIT, COMMIT_VERSION, OffsetCommitResponse, response_bytes)
    for topic in response.topics:
        for partition in topic.partitions:
            if partition.error_code:
                raise RuntimeError(f"a commit failed: error {partition.error_code}")


def wait_for_groups(address: Address, group_ids: Sequence[str], topic: str | None = None) -> None:
    """Wait until all groups are available; with a topic, they must have an offset there.

    Each request is for a few groups: a large one that is repeated would take much of the broker's
    time while it loads.
    """
    connection = RawConnection(address)
    for first in range(0, len(group_ids), GROUPS_A_REQUEST):
        _wait_for(connection, group_ids[first : first + GROUPS_A_REQUEST], topic)
    connection.close()


def _wait_for(connection: RawConnection, group_ids: Sequence[str], topic: str | None) -> None:
    topics = [] if topic is None else [OffsetFetchRequestTopics(name=topic, partition_indexes=[0])]
    groups = [OffsetFetchRequestGroup(group_id=name, topics=topics) for name in group_ids]
    request_frame = frame(ApiKey.OFFSET_FETCH, FETCH_VERSION, OffsetFetchRequest(groups=groups))
    while True:
        response_bytes = connection.send(request_frame)
        response = parse(ApiKey.OFFSET_FETCH, FETCH_VERSION, OffsetFetchResponse, response_bytes)
        if not any(group.error_code for group in response.groups):
            break
        time.sleep(RETRY_INTERVAL_S)
    if topic is not None:
        for group in response.groups:
            if group.topics[0].partitions[0].committed_offset < 0:
                raise RuntimeError(f"{group.group_id} has lost its committed offsets")
