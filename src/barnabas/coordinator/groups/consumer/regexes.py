"""Regular expressions that members subscribe by: resolved in the background, and periodically.

A heartbeat does not wait for it. The matching topics are written, and the group epoch is bumped if
they have changed, so that members learn of it by their next heartbeats.
"""

import logging
from collections.abc import Callable, Iterator
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING

from barnabas.coordinator import regex
from barnabas.coordinator.decision import (
    CoordinatorDecision,
    DecisionBuilder,
    StartTimer,
    no_change,
)
from barnabas.coordinator.groups.consumer import events, records
from barnabas.coordinator.groups.consumer.group import ConsumerGroup, ResolvedRegex
from barnabas.coordinator.groups.consumer.member import ConsumerMember
from barnabas.coordinator.groups.consumer.topics import metadata_hash, unused_regexes
from barnabas.coordinator.groups.context import GroupContext, GroupRequestContext
from barnabas.wire.errors import KafkaError

if TYPE_CHECKING:
    from barnabas.coordinator.groups.state import GroupCoordinatorState

MIN_INTERVAL_MS = 10_000
"""The shortest time between two resolutions of a group."""

REFRESH_INTERVAL = "group.consumer.regex.refresh.interval.ms"
"""The setting of how often they are resolved again although no topic was created."""

log = logging.getLogger(__name__)


class RegexChange(Enum):
    NONE = "the member subscribes by the same regular expression as before, or by none"
    UNRESOLVED = "by another, whose topics are not known yet"
    RESOLVED = "by another, whose topics are known; or by none any more"


def update_regexes(
    old: ConsumerMember,
    new: ConsumerMember,
    group: ConsumerGroup,
    decision: DecisionBuilder,
    groups: "GroupCoordinatorState",
    context: GroupRequestContext,
) -> RegexChange:
    """Updates the regular expression that the member subscribes by, and resolves those of the
    group if it is time to. Raises KafkaError if the new one is not valid.

    As in Kafka, they match only topics that the client of this request may describe.
    """
    pattern = new.subscribed_topic_regex
    if pattern == old.subscribed_topic_regex:
        change = RegexChange.NONE
    else:
        change = _change(group, pattern)
        for unused in unused_regexes(group, [old], new):
            decision.records.append(records.regular_expression_tombstone(group.group_id, unused))
    if (pattern or group.regexes) and _is_refresh_due(old, new, group, groups, context):
        decision.effects.append(
            StartTimer(
                _timer_key(group.group_id),
                0,
                partial(_begin_resolution, group.group_id, context.client.may_describe),
                only_if_absent=True,
            )
        )
    return change


def _change(group: ConsumerGroup, pattern: str) -> RegexChange:
    if not pattern:
        return RegexChange.RESOLVED
    if pattern not in group.regexes:
        regex.check(pattern, "SubscribedTopicRegex")
    return RegexChange.RESOLVED if pattern in group.resolved_regexes else RegexChange.UNRESOLVED


def _is_refresh_due(
    old: ConsumerMember,
    new: ConsumerMember,
    group: ConsumerGroup,
    groups: "GroupCoordinatorState",
    context: GroupContext,
) -> bool:
    last = next(iter(group.resolved_regexes.values()), None)
    if last is None:
        return True
    age_ms = context.now_ms - last.timestamp_ms
    if 0 <= age_ms <= MIN_INTERVAL_MS:  # it is negative if the clock was set back
        return False
    patterns = group.regexes.keys() - unused_regexes(group, [old], new)
    if new.subscribed_topic_regex:
        patterns |= {new.subscribed_topic_regex}
    return (
        len(patterns) != len(group.resolved_regexes)
        or last.version < groups.subscriptions.new_topics_offset
        or age_ms > context.settings.broker(REFRESH_INTERVAL)
    )


def _begin_resolution(
    group_id: str,
    may_describe: Callable[[str], bool] | None,
    groups: "GroupCoordinatorState",
    context: GroupContext,
) -> CoordinatorDecision[None]:
    group = groups.by_id.get(group_id)
    if not isinstance(group, ConsumerGroup):
        return no_change()
    return _Resolution(group, may_describe, context).step(groups, context)


class _Resolution:
    """Matches all regular expressions of a group with all topics, a slice at a time."""

    __slots__ = ("_group_id", "_matches", "_may_describe", "_slices", "_timestamp_ms", "_version")

    def __init__(
        self,
        group: ConsumerGroup,
        may_describe: Callable[[str], bool] | None,
        context: GroupContext,
    ) -> None:
        self._group_id = group.group_id
        self._version = context.image.offset
        self._timestamp_ms = context.now_ms
        self._matches: dict[str, list[str]] = {}
        self._may_describe = may_describe
        names = [topic.name for topic in context.image.topics]
        self._slices = self._search(list(group.regexes), names)

    def step(
        self, groups: "GroupCoordinatorState", context: GroupContext
    ) -> CoordinatorDecision[None]:
        if next(self._slices, None) is None:
            return self._finish(groups, context)
        return no_change(StartTimer(_timer_key(self._group_id), 0, self.step))

    def _search(self, patterns: list[str], names: list[str]) -> Iterator[bool]:
        for pattern in patterns:
            matches = self._matches[pattern] = []
            try:
                for slice_matches in regex.search(pattern, names):
                    matches += self._visible(slice_matches)
                    yield True
            except KafkaError as error:  # another version of the broker has accepted it
                log.error("[GroupId %s] %s", self._group_id, error)

    def _visible(self, names: list[str]) -> list[str]:
        """Returns the topics that the client may describe."""
        may_describe = self._may_describe
        return names if may_describe is None else [name for name in names if may_describe(name)]

    def _finish(
        self, groups: "GroupCoordinatorState", context: GroupContext
    ) -> CoordinatorDecision[None]:
        """Writes the topics of the regular expressions that are still subscribed to."""
        group = groups.by_id.get(self._group_id)
        if not isinstance(group, ConsumerGroup):
            return no_change()
        decision = DecisionBuilder()
        topics = dict(group.subscribed_topics)
        has_changed = False
        for pattern, resolved in self._resolved(group):
            last = group.resolved_regexes.get(pattern)
            last_topics = last.topics if last is not None else frozenset()
            has_changed |= last_topics != resolved.topics
            for name in last_topics - resolved.topics:
                topics[name] -= 1
            for name in resolved.topics - last_topics:
                topics[name] = topics.get(name, 0) + 1
            decision.records.append(records.regular_expression(group.group_id, pattern, *resolved))
        if not decision.records:
            return no_change()
        new_hash = metadata_hash((name for name in topics if topics[name]), context.image)
        if has_changed or new_hash != group.metadata_hash:
            epoch = group.epoch + 1
            reason = "its regular expressions match other topics"
            decision.log(events.epoch_bumped, group.group_id, epoch, reason)
            decision.records.append(records.group_epoch(group.group_id, epoch, new_hash))
        return decision.build(None)

    def _resolved(self, group: ConsumerGroup) -> Iterator[tuple[str, ResolvedRegex]]:
        """Yields those that are subscribed to and not written yet."""
        for pattern, names in self._matches.items():
            resolved = ResolvedRegex(frozenset(names), self._version, self._timestamp_ms)
            if pattern in group.regexes and group.resolved_regexes.get(pattern) != resolved:
                yield pattern, resolved


def _timer_key(group_id: str) -> tuple[str, str]:
    return ("regex", group_id)
