"""Offsets that time or the deletion of a topic makes useless, and groups that kept nothing else.

There may be a million to look at, so that is done page by page: some pages make a slice, and
between slices others have their turn.
"""

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from barnabas.coordinator.decision import Decision
from barnabas.coordinator.groups.group import Group
from barnabas.coordinator.groups.offsets.record import NO_EXPIRY, CommittedOffset, OffsetKey
from barnabas.coordinator.records import CoordinatorRecord
from barnabas.coordinator.timers import RETRY_MS
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.states import TopicImage
from barnabas.wire.uuid import ZERO

if TYPE_CHECKING:
    from barnabas.coordinator.groups.state import GroupCoordinatorState

PAGES_A_SLICE = 16
"""About a millisecond's worth, if all their partitions have an offset."""

_MINUTE_MS = 60_000

Steps = Iterator[list[CoordinatorRecord] | None]
"""What to delete after each step; None where that has to be done before the next one."""


def loaded(groups: "GroupCoordinatorState") -> None:
    """Look for expired offsets from now on, at every interval."""
    interval_ms = groups.settings.broker("offsets.retention.check.interval.ms")
    sweep = _Sweep(groups, "offset expiry", lambda: _expired(groups), interval_ms, interval_ms)
    sweep.start(interval_ms)


def follow(groups: "GroupCoordinatorState", delta: MetadataDelta) -> None:
    """What was committed in topics that are deleted now means nothing any more."""
    for topic in delta.topics_deleted.values():
        if groups.offsets.groups_of(topic.name) or groups.offsets.pending.by_key:
            _start_removing(groups, topic)


@dataclass(slots=True, frozen=True)
class _Sweep:
    """Takes steps a slice at a time, from the beginning to the end."""

    groups: "GroupCoordinatorState"
    key: Hashable
    begin: Callable[[], Steps]
    repeat_ms: int | None
    """How long after the end it begins again."""
    retry_ms: int
    """How long after a write that failed it begins again."""

    def start(self, delay_ms: int) -> None:
        self._go_on(delay_ms, self.begin())

    def _go_on(self, delay_ms: int, steps: Steps) -> None:
        self.groups.timers.set(self.key, delay_ms, lambda: self._slice(steps))

    def _slice(self, steps: Steps) -> Decision[None]:
        tombstones: list[CoordinatorRecord] = []
        for count, step in enumerate(steps, 1):
            tombstones += step or ()
            if step is None or count == PAGES_A_SLICE:
                self._go_on(0, steps)
                break
        else:
            if self.repeat_ms is not None:
                self.start(self.repeat_ms)
        return Decision(
            None, tombstones, refused=lambda _: self.start(self.retry_ms), is_atomic=False
        )


def _expired(groups: "GroupCoordinatorState") -> Steps:
    retention_ms = groups.settings.broker("offsets.retention.minutes") * _MINUTE_MS
    for group_id in list(groups.by_id):
        yield from _expired_of(groups, group_id, retention_ms)
        group = groups.by_id.get(group_id)
        if group is not None and group.is_empty and not groups.offsets.has_any(group_id):
            yield group.tombstones()


def _expired_of(groups: "GroupCoordinatorState", group_id: str, retention_ms: int) -> Steps:
    """Between two steps anything may have changed, so each looks anew."""
    found_any = False
    for topic in list(groups.offsets.of(group_id)):
        offsets = groups.offsets.of(group_id).get(topic)
        for first_partition, page in offsets.pages() if offsets is not None else ():
            group = groups.by_id.get(group_id)
            if group is None:
                return
            if group.is_subscribed_to(topic):
                break
            now_ms = groups.now_ms()
            expired = [
                CoordinatorRecord(key, None)
                for place, committed in page.read_all()
                if _is_expired(group, committed, now_ms, retention_ms)
                and (key := OffsetKey(group_id, topic, first_partition + place))
                not in groups.offsets.pending.by_key
            ]
            found_any = found_any or bool(expired)
            yield expired
    if found_any:
        yield None


def _is_expired(group: Group, committed: CommittedOffset, now_ms: int, retention_ms: int) -> bool:
    since_ms = group.retention_start_ms(committed.commit_timestamp)
    if since_ms is None:
        return False
    if committed.expire_timestamp != NO_EXPIRY:
        return now_ms >= committed.expire_timestamp
    return now_ms - since_ms >= retention_ms


def _start_removing(groups: "GroupCoordinatorState", topic: TopicImage) -> None:
    key = ("offsets of a deleted topic", topic.topic_id)
    deleted_ms = groups.now_ms()
    _Sweep(groups, key, lambda: _of_topic(groups, topic, deleted_ms), None, RETRY_MS).start(0)


def _of_topic(groups: "GroupCoordinatorState", topic: TopicImage, deleted_ms: int) -> Steps:
    """Another topic may have that name by now: its offsets are told by its id or, where a record
    has none, by when they were committed."""

    def is_of_deleted(committed: CommittedOffset | None) -> bool:
        if committed is None or committed.topic_id == topic.topic_id:
            return True
        return committed.topic_id == ZERO and committed.commit_timestamp < deleted_ms

    for group_id in list(groups.offsets.groups_of(topic.name)):
        offsets = groups.offsets.of(group_id).get(topic.name)
        for first_partition, page in offsets.pages() if offsets is not None else ():
            yield [
                CoordinatorRecord(OffsetKey(group_id, topic.name, first_partition + place), None)
                for place, committed in page.read_all()
                if is_of_deleted(committed)
            ]
    yield [
        CoordinatorRecord(key, None)
        for key, waiting in groups.offsets.pending.by_key.items()
        if key.topic == topic.name
        and groups.offsets.get(*key) is None
        and all(map(is_of_deleted, waiting.values()))
    ]
