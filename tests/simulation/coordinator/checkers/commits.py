"""No acknowledged commit is lost or moved back, and only the owner of a partition can commit.

Commits take effect in the order in which they reach the broker. The fetched offset is the last
acknowledged one, or a later one without a response; once it was fetched, it counts as
acknowledged.
"""

from dataclasses import dataclass
from typing import Any

from tests.simulation.coordinator.checkers.ownership import GroupPartition, Ownership
from tests.simulation.coordinator.clients.client import COORDINATOR_ERRORS
from tests.simulation.coordinator.clients.offsets import tag_of
from tests.simulation.coordinator.events import Delivered, Responded
from tests.simulation.coordinator.network import SentRequest
from tests.simulation.world.events import Violation

from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.group_offsets import OffsetCommitRequest, OffsetFetchRequest


@dataclass(slots=True, eq=False)
class Commit:
    """One partition of a request."""

    tag: str
    offset: int
    other_owners: list[Any]
    """The other members that owned the partition when the commit arrived."""
    is_acknowledged: bool = False
    is_rejected: bool = False


class Commits:
    """Keeps the commits of every partition, in the order in which they arrived."""

    def __init__(self, ownership: Ownership) -> None:
        self._ownership = ownership
        self._arrived: dict[GroupPartition, list[Commit]] = {}
        self._by_request: dict[int, dict[GroupPartition, Commit]] = {}
        self._before_fetch: dict[int, dict[GroupPartition, int]] = {}
        """By fetch, how many commits had arrived before it."""

    def on_event(self, event: Any, now_ms: int) -> None:
        match event:
            case Delivered(sent) if isinstance(sent.request, OffsetCommitRequest):
                self._arrive(sent, now_ms)
            case Responded(sent) if isinstance(sent.request, OffsetCommitRequest):
                self._acknowledge(sent)
            case Delivered(sent) if isinstance(sent.request, OffsetFetchRequest):
                self._before_fetch[sent.number] = {
                    group_partition: len(arrived)
                    for group_partition, arrived in self._arrived.items()
                }
            case Responded(sent) if isinstance(sent.request, OffsetFetchRequest):
                self._fetched(sent)

    def _arrive(self, sent: SentRequest, now_ms: int) -> None:
        request = sent.request
        commits = self._by_request[sent.number] = {}
        for topic in request.topics:
            for partition in topic.partitions:
                group_partition = (request.group_id, (topic.name, partition.partition_index))
                other_owners = []
                if request.member_id:
                    other_owners = self._ownership.other_owners(
                        sent.client, group_partition, now_ms
                    )
                tag = tag_of(partition.committed_metadata, partition.committed_leader_epoch)
                commit = Commit(tag, partition.committed_offset, other_owners)
                self._arrived.setdefault(group_partition, []).append(commit)
                commits[group_partition] = commit

    def _acknowledge(self, sent: SentRequest) -> None:
        commits = self._by_request.pop(sent.number)
        for topic in sent.response.topics:
            for partition in topic.partitions:
                group_partition = (sent.request.group_id, (topic.name, partition.partition_index))
                commit = commits[group_partition]
                if partition.error_code == ErrorCode.NONE:
                    commit.is_acknowledged = True
                    if commit.other_owners:
                        raise Violation(
                            f"{sent.client} committed {group_partition}, "
                            f"which {commit.other_owners} own"
                        )
                elif partition.error_code not in COORDINATOR_ERRORS:
                    commit.is_rejected = True

    def _fetched(self, sent: SentRequest) -> None:
        counts = self._before_fetch.pop(sent.number)
        for group in sent.response.groups:
            if group.error_code != ErrorCode.NONE:
                continue
            for topic in group.topics:
                for partition in topic.partitions:
                    group_partition = (group.group_id, (topic.name, partition.partition_index))
                    arrived = self._arrived.get(group_partition, [])[
                        : counts.get(group_partition, 0)
                    ]
                    if partition.error_code == ErrorCode.NONE and self._is_checked(group_partition):
                        tag = tag_of(partition.metadata, partition.committed_leader_epoch)
                        self._check(group_partition, arrived, partition.committed_offset, tag)

    def _is_checked(self, group_partition: GroupPartition) -> bool:
        """Another checker has the groups whose offsets are committed in transactions."""
        return group_partition in self._arrived

    def _check(
        self, group_partition: GroupPartition, arrived: list[Commit], offset: int, tag: str
    ) -> None:
        last = None
        for commit in reversed(arrived):
            if commit.is_rejected:
                if commit.tag == tag:
                    raise Violation(f"{group_partition} is at {tag}, which was rejected")
                continue
            if commit.tag == tag and commit.offset == offset:
                commit.is_acknowledged = True
                return
            if commit.is_acknowledged:
                last = commit
                break
        if last is not None or offset >= 0:
            expected = f"{last.tag} at {last.offset}" if last is not None else "nothing"
            raise Violation(
                f"{group_partition} is at {offset} by {tag!r}, acknowledged was {expected}"
            )
