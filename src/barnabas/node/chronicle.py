"""The active controller's log: what became of brokers, a line each, however much it moved."""

import logging
from collections.abc import Callable

from barnabas.metadata.delta import Delta
from barnabas.metadata.image import Image
from barnabas.metadata.states import NO_LEADER, BrokerState

log = logging.getLogger(__name__)


class Chronicle:
    """Follows the metadata, and speaks while this node's controller is the active one."""

    def __init__(self, is_active: Callable[[], bool]) -> None:
        self._is_active = is_active
        self._standings: dict[int, str] = {}

    def follow(self, delta: Delta, image: Image) -> None:
        for broker_id in sorted(delta.brokers_changed):
            standing = _standing(image.brokers.get(broker_id))
            if standing != self._standings.get(broker_id) and self._is_active():
                log.info("broker %d %s%s", broker_id, standing, _consequences(delta))
            self._standings[broker_id] = standing


def _standing(broker: BrokerState | None) -> str:
    if broker is None:
        return "is unregistered"
    if broker.fenced:
        return "is fenced"
    return "leaves" if broker.in_controlled_shutdown else "may lead"


def _consequences(delta: Delta) -> str:
    changed = delta.partitions_changed.values()
    if not changed:
        return ""
    leaderless = sum(partition.leader == NO_LEADER for partition in changed)
    return f": {len(changed)} partitions changed, {leaderless} of them have no leader"
