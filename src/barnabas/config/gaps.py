"""Settings that are stored and validated but have no effect yet, by the gap that they belong to.

A gap is a row of docs/compatibility.md. To close one, delete it here: a test compares this table
with that page and with the settings that the code reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from barnabas.config import broker
from barnabas.config.changes import ConfigResourceType, find_setting
from barnabas.config.errors import InvalidConfig

_MAX_NAMES = 5
"""The settings that one warning names."""


@dataclass(slots=True, frozen=True)
class Gap:
    """A feature that is missing, with the settings that have no effect without it.

    A name may end in `*`.
    """

    feature: str  # the row of docs/compatibility.md
    consequence: str
    broker: tuple[str, ...] = ()
    topic: tuple[str, ...] = ()
    group: tuple[str, ...] = ()

    def names(self, resource_type: int) -> tuple[str, ...]:
        match resource_type:
            case ConfigResourceType.BROKER:
                return self.broker
            case ConfigResourceType.TOPIC:
                return self.topic
            case ConfigResourceType.GROUP:
                return self.group
        return ()


GAPS = (
    Gap(
        "Tiered storage",
        "there is no tiered storage, and all segments stay on this broker",
        broker=(
            "follower.fetch.last.tiered.offset.enable",
            "log.local.retention.*",
            "remote.*",
            "rlmm.config.*",
            "rsm.config.*",
        ),
        topic=("local.retention.*", "remote.*"),
    ),
    Gap(
        "Replication throttles (`leader/follower.replication.throttled.*`)",
        "moves between directories of one broker are not throttled",
        broker=(
            "alter.log.dirs.replication.quota.*",
            "replica.alter.log.dirs.io.max.bytes.per.second",
        ),
    ),
    Gap(
        "SASL: Java's login classes, OAuth assertions, renewal of Kerberos tickets by `kinit`",
        "nodes log in with passwords, keytabs, or tokens of client credentials",
        broker=(
            "sasl.client.callback.handler.class",
            "sasl.kerberos.kinit.cmd",
            "sasl.kerberos.min.time.before.relogin",
            "sasl.kerberos.ticket.renew.*",
            "sasl.login.*",
            "sasl.oauthbearer.assertion.*",
            "sasl.oauthbearer.jwt.*",
        ),
    ),
    Gap(
        "Other Java classes: metric reporters, callbacks, TLS providers",
        "Java classes are not loaded",
        broker=(
            "client.quota.callback.class",
            "kafka.metrics.*",
            "metric.reporters",
            "principal.builder.class",
            "security.providers",
            "ssl.engine.factory.class",
            "ssl.keymanager.algorithm",
            "ssl.protocol",
            "ssl.provider",
            "ssl.secure.random.implementation",
            "ssl.trustmanager.algorithm",
        ),
    ),
    Gap(
        "APIs and features that Kafka has not released (`unstable.*.versions.enable`)",
        "there are no unreleased APIs and features",
        broker=("unstable.*",),
    ),
    Gap(
        "Share groups, streams groups",
        "there are no share groups and no streams groups",
        broker=(
            "group.share.*",
            "group.streams.*",
            "share.coordinator.cold.partition.snapshot.interval.ms",
            "share.coordinator.snapshot.update.records.per.snapshot",
            "share.coordinator.state.topic.compression.codec",
            "share.coordinator.state.topic.prune.interval.ms",
            "share.coordinator.write.timeout.ms",
        ),
        group=("share.*", "streams.*"),
    ),
    Gap(
        "Two-phase commit of transactions (KIP-939)",
        "there is no two-phase commit",
        broker=("transaction.two.phase.commit.enable",),
    ),
)


def gap_warnings(resource_type: int, explicit: Mapping[str, str]) -> list[str]:
    """Returns a line for each gap that explicit settings of a resource belong to.

    A value that is the default is not worth a line, nor is one that does not parse: its error is
    reported elsewhere.
    """
    warnings = []
    for gap in GAPS:
        names = [
            name
            for name, text in explicit.items()
            if _belongs_to(gap, resource_type, name) and not _is_default(resource_type, name, text)
        ]
        if names:
            verb = "has" if len(names) == 1 else "have"
            warnings.append(f"{_enumerate(names)} {verb} no effect yet: {gap.consequence}")
    return warnings


def _belongs_to(gap: Gap, resource_type: int, name: str) -> bool:
    if resource_type == ConfigResourceType.BROKER:
        name = broker.base_name(name)
    return any(_matches(name, pattern) for pattern in gap.names(resource_type))


def _matches(name: str, pattern: str) -> bool:
    if pattern.endswith("*"):
        return name.startswith(pattern[:-1])
    return name == pattern


def _is_default(resource_type: int, name: str, text: str) -> bool:
    """Whether it is the default, or does not parse."""
    setting = find_setting(resource_type, name)
    try:
        return bool(setting.parse(text) == setting.default)
    except InvalidConfig:
        return True


def _enumerate(names: list[str]) -> str:
    shown = names[:_MAX_NAMES]
    if len(names) > _MAX_NAMES:
        return f"{', '.join(shown)} and {len(names) - _MAX_NAMES} more settings"
    return ", ".join(shown[:-1]) + " and " + shown[-1] if len(shown) > 1 else shown[0]
