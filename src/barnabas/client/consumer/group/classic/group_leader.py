"""What the member that leads a classic group does for all: it assigns, and watches the topics."""

from collections.abc import Mapping

from barnabas.client.cluster.metadata import Metadata
from barnabas.client.consumer.group.assignors import ASSIGNORS
from barnabas.client.consumer.group.classic.consumer_protocol import (
    read_subscription,
    write_assignment,
)
from barnabas.client.consumer.group.subscription import partition_counts, topics_with_racks
from barnabas.wire.messages.join_group import JoinGroupResponse
from barnabas.wire.messages.sync_group import SyncGroupRequestAssignment


class GroupLeader:
    """Of one generation."""

    def __init__(self, response: JoinGroupResponse) -> None:
        """ProtocolViolation or KeyError if the members speak what this one cannot."""
        assert response.protocol_name is not None
        self._assignor = ASSIGNORS[response.protocol_name]
        self._members = [read_subscription(member) for member in response.members]
        # A static leader that came back: everybody keeps what is on record (KIP-814).
        self._skips = response.skip_assignment
        self.topics = frozenset().union(*(member.topics for member in self._members))
        self._counts: Mapping[str, int] = {}

    def has_metadata_for_all(self, metadata: Metadata) -> bool:
        return self.topics <= metadata.topics.keys()

    def assign(self, metadata: Metadata) -> list[SyncGroupRequestAssignment]:
        """What each member is given, of the topics as they are now."""
        self._counts = partition_counts(metadata, self.topics, self._counts)
        if self._skips:
            return []
        assignment = self._assignor.assign(self._members, topics_with_racks(self._counts, metadata))
        return [
            SyncGroupRequestAssignment(member_id=member_id, assignment=write_assignment(partitions))
            for member_id, partitions in assignment.items()
        ]

    def changed_topics(self, metadata: Metadata) -> set[str]:
        """The topics that have other partitions than were assigned."""
        counts = partition_counts(metadata, self.topics, self._counts)
        return {topic for topic, count in counts.items() if count != self._counts.get(topic)}
