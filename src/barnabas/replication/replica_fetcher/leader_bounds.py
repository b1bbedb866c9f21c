"""The bounds of the leader's log, for partitions whose fetch offset is outside of it."""

from typing import NamedTuple

from barnabas.metadata.partition_index import PartitionKey
from barnabas.replication.replica_fetcher.followed_partition import FollowedPartition
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

LATEST = -1
EARLIEST = -2


class LeaderBounds(NamedTuple):
    """The bounds of the leader's log, or the error of the request for them."""

    followed: FollowedPartition
    error_code: int
    log_start_offset: int = -1
    log_end_offset: int = -1


class LeaderBoundsLookup:
    """Requests the log end offsets of all partitions that need them, then their start offsets.

    A ListOffsets request must not name a partition twice, so there are two requests.
    """

    __slots__ = ("_ends", "_node_id", "_pending", "_requested")

    def __init__(self, node_id: int) -> None:
        self._node_id = node_id
        self._pending: dict[PartitionKey, FollowedPartition] = {}
        self._ends: dict[PartitionKey, int] = {}
        self._requested: dict[tuple[str, int], FollowedPartition] = {}

    def add(self, followed: FollowedPartition) -> None:
        self._pending[followed.key] = followed

    def discard(self, key: PartitionKey) -> None:
        self._pending.pop(key, None)
        self._ends.pop(key, None)

    def forget_responses(self) -> None:
        """The connection was lost: the next one may reach another leader."""
        self._ends.clear()

    def next_request(self) -> ListOffsetsRequest | None:
        without_end = [
            followed for followed in self._pending.values() if followed.key not in self._ends
        ]
        if without_end:
            return self._request(without_end, LATEST)
        if self._pending:
            return self._request(list(self._pending.values()), EARLIEST)
        return None

    def on_response(self, response: ListOffsetsResponse) -> list[LeaderBounds]:
        """Returns the partitions whose bounds are complete, or whose request failed."""
        requested, self._requested = self._requested, {}
        complete = []
        for topic in response.topics:
            for partition in topic.partitions:
                followed = requested.pop((topic.name, partition.partition_index), None)
                if followed is None or self._pending.get(followed.key) is not followed:
                    continue
                if partition.error_code == ErrorCode.NONE and followed.key not in self._ends:
                    self._ends[followed.key] = partition.offset
                    continue
                end_offset = self._ends.get(followed.key, -1)
                complete.append(
                    LeaderBounds(followed, partition.error_code, partition.offset, end_offset)
                )
        complete += [
            LeaderBounds(followed, ErrorCode.UNKNOWN_SERVER_ERROR)
            for followed in requested.values()
            if self._pending.get(followed.key) is followed
        ]
        for bounds in complete:
            self.discard(bounds.followed.key)
        return complete

    def _request(self, partitions: list[FollowedPartition], timestamp: int) -> ListOffsetsRequest:
        topics: dict[str, ListOffsetsTopic] = {}
        self._requested = {}
        for followed in partitions:
            name, index = followed.partition.topic, followed.partition.index
            self._requested[name, index] = followed
            topics.setdefault(name, ListOffsetsTopic(name=name)).partitions.append(
                ListOffsetsPartition(
                    partition_index=index,
                    current_leader_epoch=followed.leader_epoch,
                    timestamp=timestamp,
                )
            )
        return ListOffsetsRequest(replica_id=self._node_id, topics=list(topics.values()))
