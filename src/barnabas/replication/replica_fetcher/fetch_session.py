"""The follower's side of a fetch session (KIP-227).

The first fetch names every partition and opens the session; later ones name the partitions that
changed and those to forget. After any error the next fetch names all of them again, in a new
session.
"""

from collections.abc import Iterable

from barnabas.metadata.partition_index import PartitionKey
from barnabas.replication.replica_fetcher.followed_partition import FetchPosition, FollowedPartition
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
)

NO_SESSION = 0
INITIAL_EPOCH = 0
_MAX_EPOCH = 2**31 - 1


class FollowerFetchSession:
    """The partitions in the leader's session, each with the position of its last fetch."""

    __slots__ = ("_changed", "_epoch", "_forgotten", "_id", "partitions")

    def __init__(self) -> None:
        self.partitions: dict[PartitionKey, FetchPosition] = {}
        self._changed: dict[PartitionKey, FollowedPartition] = {}
        self._forgotten: dict[PartitionKey, None] = {}
        self._id = NO_SESSION
        self._epoch = INITIAL_EPOCH

    @property
    def is_new(self) -> bool:
        """Whether the next fetch has to name every partition."""
        return self._epoch == INITIAL_EPOCH

    def include(self, followed: FollowedPartition) -> None:
        """Includes a partition in the next fetch, unless its position has not changed."""
        key = followed.key
        position = followed.fetch_position()
        if self.partitions.get(key) != position:
            self.partitions[key] = position
            self._changed[key] = followed
            self._forgotten.pop(key, None)

    def exclude(self, key: PartitionKey) -> None:
        """Removes a partition from the session, if it is in."""
        if self.partitions.pop(key, None) is None:
            return
        was_sent = self._changed.pop(key, None) is None
        if was_sent:  # also if the fetch that opens the session is still in flight
            self._forgotten[key] = None

    def fill_request(self, request: FetchRequest, partition_max_bytes: int) -> None:
        """Sets the session and the changed partitions of a fetch request."""
        request.session_id = self._id
        request.session_epoch = self._epoch
        request.topics = self._topics(partition_max_bytes)
        request.forgotten_topics_data = _forgotten_topics(self._forgotten)
        self._changed = {}
        self._forgotten = {}

    def on_response(self, response: FetchResponse) -> bool:
        """Advances the session; returns False if the response is an error without partitions."""
        error_code = response.error_code
        if error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
            self.restart(session_id=NO_SESSION)
        elif error_code != ErrorCode.NONE:
            self.restart()
        elif self.is_new and response.session_id != NO_SESSION:
            self._id = response.session_id
            self._epoch = 1
        elif not self.is_new and response.session_id == self._id:
            self._epoch = 1 if self._epoch == _MAX_EPOCH else self._epoch + 1
        else:  # the leader has no free session, or closed this one
            self._id = NO_SESSION
            self._epoch = INITIAL_EPOCH
        return error_code == ErrorCode.NONE

    def restart(self, session_id: int | None = None) -> None:
        """Begins a new session. Naming the old one makes the leader close it."""
        if session_id is not None:
            self._id = session_id
        self._epoch = INITIAL_EPOCH
        self.clear()

    def clear(self) -> None:
        """Forgets all partitions, before a fetch that names every one."""
        self.partitions = {}
        self._changed = {}
        self._forgotten = {}

    def _topics(self, partition_max_bytes: int) -> list[FetchTopic]:
        topics: dict[bytes, FetchTopic] = {}
        for (topic_id, index), followed in self._changed.items():
            topic = topics.get(topic_id)
            if topic is None:
                topic = topics[topic_id] = FetchTopic(
                    topic=followed.partition.topic, topic_id=topic_id
                )
            offset, last_epoch, log_start_offset = self.partitions[topic_id, index]
            topic.partitions.append(
                FetchPartition(
                    partition=index,
                    current_leader_epoch=followed.leader_epoch,
                    fetch_offset=offset,
                    last_fetched_epoch=last_epoch,
                    log_start_offset=log_start_offset,
                    partition_max_bytes=partition_max_bytes,
                )
            )
        return list(topics.values())


def _forgotten_topics(keys: Iterable[PartitionKey]) -> list[ForgottenTopic]:
    topics: dict[bytes, ForgottenTopic] = {}
    for topic_id, index in keys:
        topics.setdefault(topic_id, ForgottenTopic(topic_id=topic_id)).partitions.append(index)
    return list(topics.values())
