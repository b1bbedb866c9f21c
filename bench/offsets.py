"""What groups commit, in frames built beforehand, and whether their coordinator serves them."""

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

GROUP, TRANSACTION = 0, 1
"""What coordinators are found for."""


def find_coordinator(address: Address, key: str, key_type: int = GROUP) -> None:
    """Ask until there is one: the first to ask has the internal topic made."""
    request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
    question = frame(ApiKey.FIND_COORDINATOR, FIND_VERSION, request)
    connection = RawConnection(address)
    while True:
        answer = connection.send(question)
        found = parse(ApiKey.FIND_COORDINATOR, FIND_VERSION, FindCoordinatorResponse, answer)
        if not found.coordinators[0].error_code:
            break
        time.sleep(RETRY_INTERVAL_S)
    connection.close()


def commit_frame(group_id: str, topic: str, partitions: int) -> bytes:
    """A commit for each of so many partitions, by nobody in particular."""
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


def check_commit(answer: memoryview) -> None:
    """RuntimeError unless all of it was committed."""
    response = parse(ApiKey.OFFSET_COMMIT, COMMIT_VERSION, OffsetCommitResponse, answer)
    for topic in response.topics:
        for partition in topic.partitions:
            if partition.error_code:
                raise RuntimeError(f"a commit was refused: error {partition.error_code}")


def wait_for_groups(address: Address, group_ids: Sequence[str], topic: str | None = None) -> None:
    """Ask until all groups are served, each with an offset for a topic's partition 0 if named."""
    topics = [] if topic is None else [OffsetFetchRequestTopics(name=topic, partition_indexes=[0])]
    groups = [OffsetFetchRequestGroup(group_id=each, topics=topics) for each in group_ids]
    question = frame(ApiKey.OFFSET_FETCH, FETCH_VERSION, OffsetFetchRequest(groups=groups))
    connection = RawConnection(address)
    while True:
        answer = connection.send(question)
        fetched = parse(ApiKey.OFFSET_FETCH, FETCH_VERSION, OffsetFetchResponse, answer)
        if not any(group.error_code for group in fetched.groups):
            break
        time.sleep(RETRY_INTERVAL_S)
    connection.close()
    if topic is not None:
        for group in fetched.groups:
            if group.topics[0].partitions[0].committed_offset < 0:
                raise RuntimeError(f"{group.group_id} has lost what it committed")
