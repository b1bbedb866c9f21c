"""A fetch session (KIP-227): only what has changed since the last request is said again.

The broker keeps what a session fetches. A request says what to fetch from now on, or from other
offsets, and what no more; the answer leaves out partitions of which there is nothing to tell. A
session that the broker does not know any more begins anew with everything.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from barnabas.client.values import TopicPartitionTuple
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)

NEW_EPOCH = 0
FINAL_EPOCH = -1
_LAST_EPOCH = 2**31 - 1


@dataclass(slots=True, frozen=True)
class PartitionFetch:
    """What to fetch of one partition."""

    topic_id: bytes
    offset: int
    leader_epoch: int
    max_bytes: int


class FetchSession:
    """One session with one broker. Its requests are answered one by one."""

    __slots__ = ("_epoch", "_id", "_names", "_sent")

    def __init__(self) -> None:
        self._id = 0
        self._epoch = NEW_EPOCH
        self._sent: dict[
            TopicPartitionTuple, PartitionFetch
        ] = {}  # what the broker fetches unless told otherwise
        self._names: dict[bytes, str] = {}

    def request(self, wanted: Mapping[TopicPartitionTuple, PartitionFetch]) -> FetchRequest:
        """Fetch these, and nothing else. The caller fills in how much and how long."""
        if self._epoch == NEW_EPOCH:
            self._sent = {}
            self._names = {}
        changed = {
            partition: want
            for partition, want in wanted.items()
            if self._sent.get(partition) != want
        }
        forgotten = {
            partition: want.topic_id
            for partition, want in self._sent.items()
            if partition not in wanted or wanted[partition].topic_id != want.topic_id
        }
        for partition in forgotten:
            del self._sent[partition]
        self._sent.update(changed)
        self._names.update({want.topic_id: topic for (topic, _), want in changed.items()})
        return FetchRequest(
            session_id=self._id,
            session_epoch=self._epoch,
            topics=_topics(changed),
            forgotten_topics_data=_forgotten(forgotten),
        )

    def closing_request(self) -> FetchRequest | None:
        """The last request, after which the broker forgets the session; None if there is none."""
        if self._id == 0:
            return None
        return FetchRequest(session_id=self._id, session_epoch=FINAL_EPOCH)

    def on_response(self, response: FetchResponse) -> bool:
        """Whether the answer tells of partitions: else the session begins anew."""
        if response.error_code != ErrorCode.NONE:
            self.reset()
            if response.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
                self._id = 0
            return False
        if response.session_id == 0:
            self._id = 0  # the broker has no room for it: everything is said every time
            self.reset()
        elif self._epoch == NEW_EPOCH or response.session_id != self._id:
            self._id = response.session_id
            self._epoch = 1
        else:
            self._epoch = 1 if self._epoch == _LAST_EPOCH else self._epoch + 1
        return True

    def reset(self) -> None:
        """Say everything next, in a session instead of this one, which the broker may drop."""
        self._epoch = NEW_EPOCH

    def has_sent(self, partition: TopicPartitionTuple) -> bool:
        """Whether the broker tells of this partition only what has changed."""
        return self._epoch != NEW_EPOCH and partition in self._sent

    def partitions(
        self, response: FetchResponse
    ) -> Iterator[tuple[TopicPartitionTuple, PartitionData]]:
        """What an answer tells of partitions that were asked for."""
        for topic in response.responses:
            name = topic.topic or self._names.get(topic.topic_id)
            if name is not None:
                for each in topic.partitions:
                    yield (name, each.partition_index), each


def _topics(wanted: Mapping[TopicPartitionTuple, PartitionFetch]) -> list[FetchTopic]:
    topics: dict[tuple[str, bytes], FetchTopic] = {}
    for (name, index), want in wanted.items():
        topic = topics.get((name, want.topic_id))
        if topic is None:
            topic = FetchTopic(topic=name, topic_id=want.topic_id, partitions=[])
            topics[name, want.topic_id] = topic
        topic.partitions.append(
            FetchPartition(
                partition=index,
                current_leader_epoch=want.leader_epoch,
                fetch_offset=want.offset,
                partition_max_bytes=want.max_bytes,
            )
        )
    return list(topics.values())


def _forgotten(partitions: Mapping[TopicPartitionTuple, bytes]) -> list[ForgottenTopic]:
    topics: dict[tuple[str, bytes], ForgottenTopic] = {}
    for (name, index), topic_id in partitions.items():
        topic = topics.get((name, topic_id))
        if topic is None:
            topic = ForgottenTopic(topic=name, topic_id=topic_id, partitions=[])
            topics[name, topic_id] = topic
        topic.partitions.append(index)
    return list(topics.values())
