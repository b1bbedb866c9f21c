"""Deletes offsets that have expired or whose topic was deleted, and groups that kept only those.

There may be a million offsets to look at. That is done page by page: some pages make a slice, and
between slices the event loop is free.
"""

import logging
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from barnabas.coordinator.decision import (
    CoordinatorDecision,
    Effect,
    LogLine,
    StartTimer,
    log_line,
)
from barnabas.coordinator.groups.context import GroupContext
from barnabas.coordinator.groups.group import Group
from barnabas.coordinator.groups.offsets.record import NO_EXPIRY, CommittedOffset, OffsetKey
from barnabas.coordinator.records import CoordinatorRecord
from barnabas.coordinator.timers import RETRY_MS
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.states import TopicImage
from barnabas.wire.uuid import ZERO

if TYPE_CHECKING:
    from barnabas.coordinator.groups.state import GroupCoordinatorState

PAGES_PER_SLICE = 16
"""About a millisecond's worth, if all their partitions have an offset."""

_MINUTE_MS = 60_000

log = logging.getLogger(__name__)


@dataclass(slots=True, frozen=True)
class _Step:
    tombstones: Sequence[CoordinatorRecord] = ()
    lines: Sequence[LogLine] = ()
    is_last_of_slice: bool = False
    """Whether the tombstones so far must be written before the next step."""


Steps = Iterator[_Step]


def start(context: GroupContext) -> StartTimer:
    """Looks for expired offsets from now on, at every interval."""
    interval_ms = context.settings.broker("offsets.retention.check.interval.ms")
    return _Sweep("offset expiry", _expired, interval_ms, interval_ms).start(interval_ms)


def on_metadata_update(
    delta: MetadataDelta, groups: "GroupCoordinatorState", context: GroupContext
) -> Sequence[Effect]:
    """Deletes the offsets of topics that were deleted."""
    return [
        _Sweep(
            ("offsets of a deleted topic", topic.topic_id),
            partial(_of_topic, topic, context.now_ms),
            None,
            RETRY_MS,
        ).start(0)
        for topic in delta.topics_deleted.values()
        if groups.offsets.groups_of(topic.name) or groups.offsets.pending.by_key
    ]


@dataclass(slots=True, frozen=True)
class _Sweep:
    """Takes steps a slice at a time. When a write fails it begins again."""

    key: Hashable
    begin: "Callable[[GroupCoordinatorState, GroupContext], Steps]"
    repeat_ms: int | None
    """How long after its end it begins again, if it does."""
    retry_ms: int
    """How long after a failed write it begins again."""

    def start(self, delay_ms: int) -> StartTimer:
        return StartTimer(
            self.key,
            delay_ms,
            lambda groups, context: self._take_slice(self.begin(groups, context)),
            retry=partial(self.start, self.retry_ms),
        )

    def _take_slice(self, steps: Steps) -> CoordinatorDecision[None]:
        tombstones: list[CoordinatorRecord] = []
        effects: list[Effect] = []
        for count, step in enumerate(steps, 1):
            tombstones += step.tombstones
            effects += step.lines
            if step.is_last_of_slice or count == PAGES_PER_SLICE:
                effects.append(self._continue(steps))
                break
        else:
            if self.repeat_ms is not None:
                effects.append(self.start(self.repeat_ms))
        return CoordinatorDecision(tombstones, None, effects, is_atomic=False)

    def _continue(self, steps: Steps) -> StartTimer:
        return StartTimer(
            self.key,
            0,
            lambda groups, context: self._take_slice(steps),
            retry=partial(self.start, self.retry_ms),
        )


def _expired(groups: "GroupCoordinatorState", context: GroupContext) -> Steps:
    retention_ms = context.settings.broker("offsets.retention.minutes") * _MINUTE_MS
    for group_id in list(groups.by_id):
        yield from _expired_of(group_id, retention_ms, groups, context.now_ms)
        group = groups.by_id.get(group_id)
        if group is not None and group.is_empty and not groups.offsets.has_any(group_id):
            yield _Step(group.tombstones(), [log_line(_log_deleted_group, group_id)])


def _expired_of(
    group_id: str, retention_ms: int, groups: "GroupCoordinatorState", now_ms: int
) -> Steps:
    """The state may change between two steps, so each step looks at it again."""
    expired_count = 0
    for topic in list(groups.offsets.of(group_id)):
        offsets = groups.offsets.of(group_id).get(topic)
        for first_partition, page in offsets.pages() if offsets is not None else ():
            group = groups.by_id.get(group_id)
            if group is None:
                return
            if group.is_subscribed_to(topic):
                break
            expired = [
                CoordinatorRecord(key, None)
                for slot, committed in page.read_all()
                if _is_expired(group, committed, now_ms, retention_ms)
                and (key := OffsetKey(group_id, topic, first_partition + slot))
                not in groups.offsets.pending.by_key
            ]
            expired_count += len(expired)
            yield _Step(expired)
    if expired_count:
        minutes = retention_ms // _MINUTE_MS
        line = log_line(_log_expired_offsets, group_id, expired_count, minutes)
        yield _Step(lines=[line], is_last_of_slice=True)


def _log_deleted_group(group_id: str) -> None:
    log.info("The group %s is deleted: it has no members and no offsets", group_id)


def _log_expired_offsets(group_id: str, count: int, retention_minutes: int) -> None:
    log.info(
        "[GroupId %s] The offsets of %d partitions have expired (offsets.retention.minutes=%d)",
        group_id,
        count,
        retention_minutes,
    )


def _is_expired(group: Group, committed: CommittedOffset, now_ms: int, retention_ms: int) -> bool:
    since_ms = group.retention_start_ms(committed.commit_timestamp)
    if since_ms is None:
        return False
    if committed.expire_timestamp != NO_EXPIRY:
        return now_ms >= committed.expire_timestamp
    return now_ms - since_ms >= retention_ms


def _of_topic(
    topic: TopicImage, deleted_ms: int, groups: "GroupCoordinatorState", context: GroupContext
) -> Steps:
    """Another topic may have that name by now. Its offsets are recognized by its id or, where a
    record has none, by the time of the commit."""

    def is_of_deleted(committed: CommittedOffset | None) -> bool:
        if committed is None or committed.topic_id == topic.topic_id:
            return True
        return committed.topic_id == ZERO and committed.commit_timestamp < deleted_ms

    for group_id in list(groups.offsets.groups_of(topic.name)):
        offsets = groups.offsets.of(group_id).get(topic.name)
        for first_partition, page in offsets.pages() if offsets is not None else ():
            yield _Step(
                [
                    CoordinatorRecord(OffsetKey(group_id, topic.name, first_partition + slot), None)
                    for slot, committed in page.read_all()
                    if is_of_deleted(committed)
                ]
            )
    yield _Step(
        [
            CoordinatorRecord(key, None)
            for key, by_producer in groups.offsets.pending.by_key.items()
            if key.topic == topic.name
            and groups.offsets.get(*key) is None
            and all(map(is_of_deleted, by_producer.values()))
        ]
    )
