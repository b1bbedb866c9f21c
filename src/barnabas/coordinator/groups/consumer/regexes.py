"""Regular expressions of a group's members: resolved off the path of requests, and now and then.

A heartbeat does not wait for it. The topics found are written, and if they are others than before
the group epoch moves on, so that the members learn of it by their next heartbeats.
"""

import logging
from collections.abc import Iterator
from enum import Enum
from typing import TYPE_CHECKING

from barnabas.coordinator import regex
from barnabas.coordinator.decision import Decision
from barnabas.coordinator.groups.consumer import records
from barnabas.coordinator.groups.consumer.group import ConsumerGroup, ResolvedRegex
from barnabas.coordinator.groups.consumer.member import ConsumerMember
from barnabas.coordinator.groups.consumer.sessions import nothing_more
from barnabas.coordinator.groups.consumer.topics import metadata_hash, regexes_dropped
from barnabas.coordinator.records import CoordinatorRecord
from barnabas.wire.errors import KafkaError

if TYPE_CHECKING:
    from barnabas.coordinator.groups.state import GroupCoordinatorState

MIN_INTERVAL_MS = 10_000
"""How long what was resolved stays as it is, whatever happens."""

REFRESH_INTERVAL = "group.consumer.regex.refresh.interval.ms"
"""How often all are resolved again though no topic was created that is known of."""

log = logging.getLogger(__name__)


class RegexChange(Enum):
    NONE = "the member subscribes by the same regular expression as before, or by none"
    UNRESOLVED = "by another, whose topics are not known yet"
    RESOLVED = "by another, whose topics are known; or by none any more"


def resubscribe(
    groups: "GroupCoordinatorState",
    group: ConsumerGroup,
    old: ConsumerMember,
    new: ConsumerMember,
    into: list[CoordinatorRecord],
) -> RegexChange:
    """Take in the regular expression that `new`, which was `old`, subscribes by; resolve those of
    the group if it is time to. KafkaError if it is not one."""
    pattern = new.subscribed_topic_regex
    if pattern == old.subscribed_topic_regex:
        change = RegexChange.NONE
    else:
        change = _change(group, pattern)
        for dropped in regexes_dropped(group, [old], new):
            into.append(records.regular_expression_tombstone(group.group_id, dropped))
    if (pattern or group.regexes) and _is_refresh_due(groups, group, old, new):
        resolution = _Resolution(groups, group, pattern)
        groups.timers.set(resolution.key, 0, resolution.step)
    return change


def _change(group: ConsumerGroup, pattern: str) -> RegexChange:
    if not pattern:
        return RegexChange.RESOLVED
    if pattern not in group.regexes:
        regex.check(pattern)
    return RegexChange.RESOLVED if pattern in group.resolved_regexes else RegexChange.UNRESOLVED


def _is_refresh_due(
    groups: "GroupCoordinatorState", group: ConsumerGroup, old: ConsumerMember, new: ConsumerMember
) -> bool:
    if _key(group.group_id) in groups.timers:
        return False
    last = next(iter(group.resolved_regexes.values()), None)
    if last is None:
        return True
    age_ms = groups.now_ms() - last.timestamp_ms
    if 0 <= age_ms <= MIN_INTERVAL_MS:  # less, if the clock was set back
        return False
    wanted = group.regexes.keys() - regexes_dropped(group, [old], new)
    if new.subscribed_topic_regex:
        wanted |= {new.subscribed_topic_regex}
    return (
        len(wanted) != len(group.resolved_regexes)
        or last.version < groups.subscriptions.new_topics_offset
        or age_ms > groups.settings.broker(REFRESH_INTERVAL)
    )


class _Resolution:
    """Holds all regular expressions of a group against all topics, a slice at a time."""

    __slots__ = ("_found", "_group_id", "_groups", "_slices", "_timestamp_ms", "_version", "key")

    def __init__(self, groups: "GroupCoordinatorState", group: ConsumerGroup, pattern: str) -> None:
        self.key = _key(group.group_id)
        self._groups = groups
        self._group_id = group.group_id
        self._version = groups.image.offset
        self._timestamp_ms = groups.now_ms()
        self._found: dict[str, list[str]] = {}
        patterns = list(group.regexes)
        if pattern and pattern not in group.regexes:
            patterns.append(pattern)
        self._slices = self._search(patterns, [topic.name for topic in groups.image.topics])

    def step(self) -> Decision[None]:
        if next(self._slices, None) is None:
            return self._finish()
        self._groups.timers.set(self.key, 0, self.step)
        return nothing_more()

    def _search(self, patterns: list[str], names: list[str]) -> Iterator[bool]:
        for pattern in patterns:
            found = self._found[pattern] = []
            try:
                for matches in regex.search(pattern, names):
                    found += matches
                    yield True
            except KafkaError as refusal:  # written by a coordinator that knew better
                log.error("group %s: %s", self._group_id, refusal)

    def _finish(self) -> Decision[None]:
        """Write what was found for those who still want it."""
        group = self._groups.by_id.get(self._group_id)
        if not isinstance(group, ConsumerGroup):
            return nothing_more()
        written: list[CoordinatorRecord] = []
        topics = dict(group.subscribed_topics)
        has_changed = False
        for pattern, resolved in self._resolved(group):
            last = group.resolved_regexes.get(pattern)
            known = last.topics if last is not None else frozenset()
            has_changed |= known != resolved.topics
            for name in known - resolved.topics:
                topics[name] -= 1
            for name in resolved.topics - known:
                topics[name] = topics.get(name, 0) + 1
            written.append(records.regular_expression(group.group_id, pattern, *resolved))
        if not written:
            return nothing_more()
        new_hash = metadata_hash((name for name in topics if topics[name]), self._groups.image)
        if has_changed or new_hash != group.metadata_hash:
            written.append(records.group_epoch(group.group_id, group.epoch + 1, new_hash))
        return Decision(None, written)

    def _resolved(self, group: ConsumerGroup) -> Iterator[tuple[str, ResolvedRegex]]:
        """What is wanted and not replayed yet."""
        for pattern, names in self._found.items():
            resolved = ResolvedRegex(frozenset(names), self._version, self._timestamp_ms)
            if pattern in group.regexes and group.resolved_regexes.get(pattern) != resolved:
                yield pattern, resolved


def _key(group_id: str) -> tuple[str, str]:
    return ("regex", group_id)
