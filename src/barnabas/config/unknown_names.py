"""What to do about a name that does not exist: it is misspelt, or a setting that Kafka has removed.

Imported only for an unknown name, which a correct file does not have.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

SETTING_CUTOFF = 0.8
"""There are hundreds of settings: a name that is only a little like one was not meant to be it."""

_ONE_FORMAT = "there is only record format v2"
_KRAFT = (
    "there is only KRaft, without ZooKeeper; set process.roles, node.id, controller.listener.names "
    "and controller.quorum.bootstrap.servers"
)
_LISTENERS = "use listeners and advertised.listeners"

_REMOVED_BROKER = {
    "advertised.host.name": _LISTENERS,
    "advertised.port": _LISTENERS,
    "auto.include.jmx.reporter": "metrics are served by barnabas.metrics.listener",
    "broker.id.generation.enable": "every node needs its own node.id",
    "control.plane.listener.name": "use controller.listener.names",
    "delegation.token.master.key": "use delegation.token.secret.key",
    "eligible.leader.replicas.enable": "upgrade the feature eligible.leader.replicas.version",
    "group.coordinator.new.enable": "there is only the new group coordinator",
    "host.name": _LISTENERS,
    "inter.broker.protocol.version": "upgrade the feature metadata.version, with kafka-features.sh "
    "upgrade --release-version",
    "log.message.downconversion.enable": _ONE_FORMAT,
    "log.message.format.version": _ONE_FORMAT,
    "log.message.timestamp.difference.max.ms": "use log.message.timestamp.before.max.ms and "
    "log.message.timestamp.after.max.ms",
    "offsets.commit.required.acks": "offsets are always committed with acks=all",
    "port": _LISTENERS,
    "quota.consumer.default": "use quotas of clients, with kafka-configs.sh",
    "quota.producer.default": "use quotas of clients, with kafka-configs.sh",
    "reserved.broker.max.id": "every node needs its own node.id",
}
_REMOVED_BROKER_PREFIXES = {
    "password.encoder.": "passwords among dynamic settings are not encoded",
    "zookeeper.": _KRAFT,
}
_REMOVED_TOPIC = {
    "message.downconversion.enable": _ONE_FORMAT,
    "message.format.version": _ONE_FORMAT,
    "message.timestamp.difference.max.ms": "use message.timestamp.before.max.ms and "
    "message.timestamp.after.max.ms",
}


def find_removed(name: str) -> str | None:
    """Returns what to do instead of a broker or topic setting that Kafka had, or None."""
    if instead := _REMOVED_BROKER.get(name) or _REMOVED_TOPIC.get(name):
        return instead
    for prefix, instead in _REMOVED_BROKER_PREFIXES.items():
        if name.startswith(prefix):
            return instead
    return None


def find_similar(name: str, known: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """Returns the known name that is most like a misspelt one, or None.

    Capital letters, and `_` for `.`, make no difference. A `cutoff` near 1 allows few others.
    """
    by_spelling = {_normalized(each): each for each in known}
    nearest = get_close_matches(_normalized(name), by_spelling, n=1, cutoff=cutoff)
    return by_spelling[nearest[0]] if nearest else None


def _normalized(name: str) -> str:
    return name.lower().replace("_", ".")


def suggestion(name: str, known: Iterable[str]) -> str:
    """Returns what the error for an unknown name ends with, which may be nothing."""
    if (instead := find_removed(name)) is not None:
        return f"; Kafka has removed it: {instead}"
    if (similar := find_similar(name, known, cutoff=SETTING_CUTOFF)) is not None:
        return f"; did you mean {similar}?"
    return ""
