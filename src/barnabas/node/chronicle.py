"""The active controller's log: what became of brokers, a line each, however much it moved."""

import logging
from collections.abc import Callable

from barnabas.metadata.delta import Delta
from barnabas.metadata.image import Image
from barnabas.metadata.states import NO_LEADER, BrokerState

GONE = "is unregistered"
FENCED = "is fenced"

log = logging.getLogger(__name__)


class Chronicle:
    """Follows the metadata, and speaks while this node's controller is the active one."""

    def __init__(self, is_active: Callable[[], bool]) -> None:
        self._is_active = is_active
        self._standings: dict[int, str] = {}

    def follow(self, delta: Delta, image: Image) -> None:
        for broker_id in sorted(delta.brokers_changed):
            before = self._standings.get(broker_id, GONE)
            after = self._standings[broker_id] = _standing(image.brokers.get(broker_id))
            if after != before and self._is_active():
                # Everybody begins that way: nothing was taken from it.
                what = "is registered" if (before, after) == (GONE, FENCED) else after
                log.info("broker %d %s%s", broker_id, what, _consequences(delta))


def _standing(broker: BrokerState | None) -> str:
    if broker is None:
        return GONE
    if broker.fenced:
        return FENCED
    return "leaves" if broker.in_controlled_shutdown else "may lead"


def _consequences(delta: Delta) -> str:
    changed = delta.partitions_changed.values()
    if not changed:
        return ""
    leaderless = sum(partition.leader == NO_LEADER for partition in changed)
    return f": {len(changed)} partitions changed, {leaderless} of them have no leader"
