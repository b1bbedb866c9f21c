"""A fetch session (KIP-227): requests have only what has changed since the last request.

The broker keeps the partitions of a session. A request adds partitions, changes their offsets, or
removes them; the response leaves out partitions without changes. If the broker has evicted the
session, a new one starts with all partitions.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from barnabas.client.values import PartitionKey
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
    """A partition in a fetch request."""

    topic_id: bytes
    offset: int
    leader_epoch: int
    max_bytes: int


class FetchSessionHandler:
    """One session with one broker; it has one request in flight."""

    __slots__ = ("_epoch", "_id", "_names", "_sent")

    def __init__(self) -> None:
        self._id = 0
        self._epoch = NEW_EPOCH
        self._sent: dict[PartitionKey, PartitionFetch] = {}  # of the broker's session
        self._names: dict[bytes, str] = {}

    def request(self, partitions: Mapping[PartitionKey, PartitionFetch]) -> FetchRequest:
        """Returns the request that fetches these partitions alone; the caller sets the limits."""
        if self._epoch == NEW_EPOCH:
            self._sent = {}
            self._names = {}
        changed = {
            partition: fetch
            for partition, fetch in partitions.items()
            if self._sent.get(partition) != fetch
        }
        forgotten = {
            partition: fetch.topic_id
            for partition, fetch in self._sent.items()
            if partition not in partitions or partitions[partition].topic_id != fetch.topic_id
        }
        for partition in forgotten:
            del self._sent[partition]
        self._sent.update(changed)
        self._names.update({fetch.topic_id: topic for (topic, _), fetch in changed.items()})
        return FetchRequest(
            session_id=self._id,
            session_epoch=self._epoch,
            topics=fetch_topics(changed),
            forgotten_topics_data=_forgotten(forgotten),
        )

    def closing_request(self) -> FetchRequest | None:
        """Returns the request that closes the session on the broker; None if there is none."""
        if self._id == 0:
            return None
        return FetchRequest(session_id=self._id, session_epoch=FINAL_EPOCH)

    def on_response(self, response: FetchResponse) -> bool:
        """Returns whether the response has partitions; otherwise the session starts anew."""
        if response.error_code != ErrorCode.NONE:
            self.reset()
            if response.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
                self._id = 0
            return False
        if response.session_id == 0:
            self._id = 0  # the broker's cache is full: every request has all partitions
            self.reset()
        elif self._epoch == NEW_EPOCH or response.session_id != self._id:
            self._id = response.session_id
            self._epoch = 1
        else:
            self._epoch = 1 if self._epoch == _LAST_EPOCH else self._epoch + 1
        return True

    def reset(self) -> None:
        """Starts a new session with the next request, which has all partitions."""
        self._epoch = NEW_EPOCH

    def has_sent(self, partition: PartitionKey) -> bool:
        """Whether the session has the partition, so that responses have only its changes."""
        return self._epoch != NEW_EPOCH and partition in self._sent

    def partitions(self, response: FetchResponse) -> Iterator[tuple[PartitionKey, PartitionData]]:
        """Yields the partitions of a response."""
        return response_partitions(response, self._names)


def response_partitions(
    response: FetchResponse, topic_names: Mapping[bytes, str]
) -> Iterator[tuple[PartitionKey, PartitionData]]:
    """Yields the partitions of a response, without those of unknown topic ids."""
    for topic in response.responses:
        name = topic.topic or topic_names.get(topic.topic_id)
        if name is not None:
            for data in topic.partitions:
                yield (name, data.partition_index), data


def fetch_topics(partitions: Mapping[PartitionKey, PartitionFetch]) -> list[FetchTopic]:
    """Returns partitions to fetch, grouped by topic."""
    topics: dict[tuple[str, bytes], FetchTopic] = {}
    for (name, index), fetch in partitions.items():
        topic = topics.get((name, fetch.topic_id))
        if topic is None:
            topic = FetchTopic(topic=name, topic_id=fetch.topic_id, partitions=[])
            topics[name, fetch.topic_id] = topic
        topic.partitions.append(
            FetchPartition(
                partition=index,
                current_leader_epoch=fetch.leader_epoch,
                fetch_offset=fetch.offset,
                partition_max_bytes=fetch.max_bytes,
            )
        )
    return list(topics.values())


def _forgotten(partitions: Mapping[PartitionKey, bytes]) -> list[ForgottenTopic]:
    topics: dict[tuple[str, bytes], ForgottenTopic] = {}
    for (name, index), topic_id in partitions.items():
        topic = topics.get((name, topic_id))
        if topic is None:
            topic = ForgottenTopic(topic=name, topic_id=topic_id, partitions=[])
            topics[name, topic_id] = topic
        topic.partitions.append(index)
    return list(topics.values())
