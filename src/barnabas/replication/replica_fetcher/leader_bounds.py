"""Where the leader's log begins and ends, for partitions whose offset is outside of it."""

from typing import NamedTuple

from barnabas.metadata.partition_index import PartitionKey
from barnabas.replication.replica_fetcher.followed_partition import Followed
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

LATEST = -1
EARLIEST = -2


class Located(NamedTuple):
    """The bounds of the leader's log, or why they are not known."""

    followed: Followed
    error_code: int
    start_offset: int = -1
    end_offset: int = -1


class Locator:
    """Asks for the ends of all partitions that need it, then for their beginnings.

    A request must not name a partition twice, so it takes two.
    """

    __slots__ = ("_asked", "_ends", "_node_id", "_wanted")

    def __init__(self, node_id: int) -> None:
        self._node_id = node_id
        self._wanted: dict[PartitionKey, Followed] = {}
        self._ends: dict[PartitionKey, int] = {}
        self._asked: dict[tuple[str, int], Followed] = {}

    def add(self, followed: Followed) -> None:
        self._wanted[followed.key] = followed

    def discard(self, key: PartitionKey) -> None:
        self._wanted.pop(key, None)
        self._ends.pop(key, None)

    def forget_answers(self) -> None:
        """The connection broke: what was learned may be of another leader."""
        self._ends.clear()

    def next_request(self) -> ListOffsetsRequest | None:
        without_end = [each for each in self._wanted.values() if each.key not in self._ends]
        if without_end:
            return self._request(without_end, LATEST)
        if self._wanted:
            return self._request(list(self._wanted.values()), EARLIEST)
        return None

    def answered(self, response: ListOffsetsResponse) -> list[Located]:
        """The partitions of which all is known by now, one way or the other."""
        asked, self._asked = self._asked, {}
        located = []
        for topic in response.topics:
            for answer in topic.partitions:
                followed = asked.pop((topic.name, answer.partition_index), None)
                if followed is None or self._wanted.get(followed.key) is not followed:
                    continue
                if answer.error_code == ErrorCode.NONE and followed.key not in self._ends:
                    self._ends[followed.key] = answer.offset
                    continue
                end_offset = self._ends.get(followed.key, -1)
                located.append(Located(followed, answer.error_code, answer.offset, end_offset))
        located += [
            Located(followed, ErrorCode.UNKNOWN_SERVER_ERROR)
            for followed in asked.values()
            if self._wanted.get(followed.key) is followed
        ]
        for each in located:
            self.discard(each.followed.key)
        return located

    def _request(self, wanted: list[Followed], timestamp: int) -> ListOffsetsRequest:
        topics: dict[str, ListOffsetsTopic] = {}
        self._asked = {}
        for followed in wanted:
            name, index = followed.partition.topic, followed.partition.index
            self._asked[name, index] = followed
            topics.setdefault(name, ListOffsetsTopic(name=name)).partitions.append(
                ListOffsetsPartition(
                    partition_index=index,
                    current_leader_epoch=followed.leader_epoch,
                    timestamp=timestamp,
                )
            )
        return ListOffsetsRequest(replica_id=self._node_id, topics=list(topics.values()))
