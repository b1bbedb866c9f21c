"""A fetch session as the follower keeps it (KIP-227): what the leader was told, and what is news.

The first fetch names every partition and opens the session; later ones name those that moved and
those to forget. Whatever goes wrong, the next fetch names them all again in a new session.
"""

from collections.abc import Iterable

from barnabas.metadata.partition_index import PartitionKey
from barnabas.replication.replica_fetcher.followed_partition import Asked, Followed
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


class Session:
    """The partitions in the leader's session, each as it was last asked for."""

    __slots__ = ("_epoch", "_forgotten", "_id", "_named", "members")

    def __init__(self) -> None:
        self.members: dict[PartitionKey, Asked] = {}
        self._named: dict[PartitionKey, Followed] = {}
        self._forgotten: dict[PartitionKey, None] = {}
        self._id = NO_SESSION
        self._epoch = INITIAL_EPOCH

    @property
    def is_new(self) -> bool:
        """Whether the next fetch has to name every partition."""
        return self._epoch == INITIAL_EPOCH

    def name(self, followed: Followed) -> None:
        """Put a partition into the next fetch, unless the leader knows all there is to say."""
        key = followed.key
        asked = followed.ask()
        if self.members.get(key) != asked:
            self.members[key] = asked
            self._named[key] = followed
            self._forgotten.pop(key, None)

    def forget(self, key: PartitionKey) -> None:
        """Take a partition out, if it is in."""
        if self.members.pop(key, None) is None:
            return
        was_told = self._named.pop(key, None) is None
        if was_told:  # be it by the fetch that opens the session, and is still under way
            self._forgotten[key] = None

    def write(self, request: FetchRequest, partition_max_bytes: int) -> None:
        """Say what is news in a fetch."""
        request.session_id = self._id
        request.session_epoch = self._epoch
        request.topics = self._topics(partition_max_bytes)
        request.forgotten_topics_data = _forgotten_topics(self._forgotten)
        self._named = {}
        self._forgotten = {}

    def answered(self, response: FetchResponse) -> bool:
        """Go on after an answer; False if it has no partitions to look at, only a refusal."""
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
        else:  # the leader has no room for a session, or closed this one
            self._id = NO_SESSION
            self._epoch = INITIAL_EPOCH
        return error_code == ErrorCode.NONE

    def restart(self, session_id: int | None = None) -> None:
        """Begin anew. Naming the old session tells the leader to let go of it."""
        if session_id is not None:
            self._id = session_id
        self._epoch = INITIAL_EPOCH
        self.clear()

    def clear(self) -> None:
        """Nothing is told yet: for a fetch that names every partition."""
        self.members = {}
        self._named = {}
        self._forgotten = {}

    def _topics(self, partition_max_bytes: int) -> list[FetchTopic]:
        topics: dict[bytes, FetchTopic] = {}
        for (topic_id, index), followed in self._named.items():
            topic = topics.get(topic_id)
            if topic is None:
                topic = topics[topic_id] = FetchTopic(
                    topic=followed.partition.topic, topic_id=topic_id
                )
            offset, last_epoch, start_offset = self.members[topic_id, index]
            topic.partitions.append(
                FetchPartition(
                    partition=index,
                    current_leader_epoch=followed.leader_epoch,
                    fetch_offset=offset,
                    last_fetched_epoch=last_epoch,
                    log_start_offset=start_offset,
                    partition_max_bytes=partition_max_bytes,
                )
            )
        return list(topics.values())


def _forgotten_topics(keys: Iterable[PartitionKey]) -> list[ForgottenTopic]:
    topics: dict[bytes, ForgottenTopic] = {}
    for topic_id, index in keys:
        topics.setdefault(topic_id, ForgottenTopic(topic_id=topic_id)).partitions.append(index)
    return list(topics.values())
