"""Logs what happens to brokers on the active controller: one line per broker state change."""

import logging
from collections.abc import Callable

from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.states import NO_LEADER, BrokerRegistration

UNREGISTERED = "is unregistered"
FENCED = "is fenced"

log = logging.getLogger(__name__)


class BrokerEventLog:
    """Follows the metadata, and logs while this node's controller is the active one."""

    def __init__(self, is_active: Callable[[], bool]) -> None:
        self._is_active = is_active
        self._states: dict[int, str] = {}

    def on_metadata_change(self, delta: MetadataDelta, image: MetadataImage) -> None:
        for broker_id in sorted(delta.brokers_changed):
            before = self._states.get(broker_id, UNREGISTERED)
            after = self._states[broker_id] = _state_of(image.brokers.get(broker_id))
            if after != before and self._is_active():
                # Every broker is fenced when it registers.
                event = "is registered" if (before, after) == (UNREGISTERED, FENCED) else after
                log.info("broker %d %s%s", broker_id, event, _consequences(delta))


def _state_of(broker: BrokerRegistration | None) -> str:
    if broker is None:
        return UNREGISTERED
    if broker.fenced:
        return FENCED
    return "is in controlled shutdown" if broker.in_controlled_shutdown else "is unfenced"


def _consequences(delta: MetadataDelta) -> str:
    changed = delta.partitions_changed.values()
    if not changed:
        return ""
    offline = sum(partition.leader == NO_LEADER for partition in changed)
    return f": {len(changed)} partitions changed, {offline} of them are offline"
