"""No commit that was acknowledged is lost, or moved back; none is taken from who is not the owner.

Commits take effect in the order in which they reach the node. What is fetched is the last one
that was acknowledged, or one after it of which nobody knows what became; once it has been
fetched, it counts as acknowledged.
"""

from dataclasses import dataclass
from typing import Any

from tests.simulation.checkers.ownership import GroupPartition, Ownership
from tests.simulation.clients.client import COORDINATOR_ERRORS
from tests.simulation.events import Answered, Delivered, Violation
from tests.simulation.network import Exchange

from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.offset_commit import OffsetCommitRequest
from barnabas.wire.messages.offset_fetch import OffsetFetchRequest

NOTHING = ""


@dataclass(slots=True, eq=False)
class Commit:
    """One partition of a request."""

    tag: str
    offset: int
    rivals: list[Any]
    """Who owned the partition instead of the committer when it arrived."""
    is_acknowledged: bool = False
    is_refused: bool = False


class Commits:
    """By partition what has arrived, in order."""

    def __init__(self, ownership: Ownership) -> None:
        self._ownership = ownership
        self._arrived: dict[GroupPartition, list[Commit]] = {}
        self._by_exchange: dict[int, dict[GroupPartition, Commit]] = {}
        self._before_fetch: dict[int, dict[GroupPartition, int]] = {}
        """By fetch how many commits had arrived before it."""

    def see(self, event: Any, now_ms: int) -> None:
        match event:
            case Delivered(exchange) if isinstance(exchange.request, OffsetCommitRequest):
                self._arrive(exchange, now_ms)
            case Answered(exchange) if isinstance(exchange.request, OffsetCommitRequest):
                self._acknowledge(exchange)
            case Delivered(exchange) if isinstance(exchange.request, OffsetFetchRequest):
                self._before_fetch[exchange.number] = {
                    place: len(arrived) for place, arrived in self._arrived.items()
                }
            case Answered(exchange) if isinstance(exchange.request, OffsetFetchRequest):
                self._fetched(exchange)

    def _arrive(self, exchange: Exchange, now_ms: int) -> None:
        request = exchange.request
        commits = self._by_exchange[exchange.number] = {}
        for topic in request.topics:
            for each in topic.partitions:
                place = (request.group_id, (topic.name, each.partition_index))
                rivals = []
                if request.member_id:
                    rivals = self._ownership.rivals(exchange.client, place, now_ms)
                commit = Commit(each.committed_metadata, each.committed_offset, rivals)
                self._arrived.setdefault(place, []).append(commit)
                commits[place] = commit

    def _acknowledge(self, exchange: Exchange) -> None:
        commits = self._by_exchange.pop(exchange.number)
        for topic in exchange.response.topics:
            for each in topic.partitions:
                place = (exchange.request.group_id, (topic.name, each.partition_index))
                commit = commits[place]
                if each.error_code == ErrorCode.NONE:
                    commit.is_acknowledged = True
                    if commit.rivals:
                        raise Violation(
                            f"{exchange.client} committed {place}, which {commit.rivals} own"
                        )
                elif each.error_code not in COORDINATOR_ERRORS:
                    commit.is_refused = True

    def _fetched(self, exchange: Exchange) -> None:
        counts = self._before_fetch.pop(exchange.number)
        for group in exchange.response.groups:
            if group.error_code != ErrorCode.NONE:
                continue
            for topic in group.topics:
                for each in topic.partitions:
                    place = (group.group_id, (topic.name, each.partition_index))
                    arrived = self._arrived.get(place, [])[: counts.get(place, 0)]
                    if each.error_code == ErrorCode.NONE and self._is_watched(place):
                        self._check(place, arrived, each.committed_offset, each.metadata)

    def _is_watched(self, place: GroupPartition) -> bool:
        """Groups whose offsets are committed in transactions are another checker's."""
        return place in self._arrived

    def _check(self, place: GroupPartition, arrived: list[Commit], offset: int, tag: str) -> None:
        last = None
        for commit in reversed(arrived):
            if commit.is_refused:
                if commit.tag == tag:
                    raise Violation(f"{place} is at {tag}, which was refused")
                continue
            if commit.tag == tag and commit.offset == offset:
                commit.is_acknowledged = True
                return
            if commit.is_acknowledged:
                last = commit
                break
        if last is not None or offset >= 0:
            wanted = f"{last.tag} at {last.offset}" if last is not None else "nothing"
            raise Violation(f"{place} is at {offset} by {tag!r}, acknowledged was {wanted}")
