"""The leader of a classic group: it assigns partitions, and watches the topics of all members."""

from collections.abc import Mapping

from barnabas.client.cluster.metadata import MetadataSnapshot
from barnabas.client.consumer.group.assignors import ASSIGNORS
from barnabas.client.consumer.group.classic_requests import read_subscription, write_assignment
from barnabas.client.consumer.group.subscription import partition_counts, topics_with_racks
from barnabas.wire.messages.classic_groups import JoinGroupResponse, SyncGroupRequestAssignment


class GroupLeader:
    """The leader of one generation."""

    def __init__(self, response: JoinGroupResponse) -> None:
        """Raises ProtocolViolation or KeyError for unreadable metadata or an unknown assignor."""
        assert response.protocol_name is not None
        self._assignor = ASSIGNORS[response.protocol_name]
        self._members = [read_subscription(member) for member in response.members]
        # A static leader has rejoined: all members keep their assignments (KIP-814).
        self._skips_assignment = response.skip_assignment
        self.topics = frozenset().union(*(member.topics for member in self._members))
        self._partition_counts: Mapping[str, int] = {}

    def has_metadata_for_all(self, metadata: MetadataSnapshot) -> bool:
        return self.topics <= metadata.topics.keys()

    def assign(self, metadata: MetadataSnapshot) -> list[SyncGroupRequestAssignment]:
        """Returns the assignments of all members, for the current topics."""
        self._partition_counts = partition_counts(metadata, self.topics, self._partition_counts)
        if self._skips_assignment:
            return []
        assignment = self._assignor.assign(
            self._members, topics_with_racks(self._partition_counts, metadata)
        )
        return [
            SyncGroupRequestAssignment(member_id=member_id, assignment=write_assignment(partitions))
            for member_id, partitions in assignment.items()
        ]

    def changed_topics(self, metadata: MetadataSnapshot) -> set[str]:
        """Returns the topics whose partition counts differ from the assigned ones."""
        counts = partition_counts(metadata, self.topics, self._partition_counts)
        return {
            topic for topic, count in counts.items() if count != self._partition_counts.get(topic)
        }
