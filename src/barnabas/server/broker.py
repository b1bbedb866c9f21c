"""The parts of one running broker, as handlers reach them through `call.broker`."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from barnabas.server.metrics import Metrics
from barnabas.server.purgatory import Purgatory
from barnabas.server.sessions import FetchSessions
from barnabas.server.timer import Timer

if TYPE_CHECKING:
    from barnabas.config import BrokerSettings
    from barnabas.config.dynamic import Resolver
    from barnabas.controller import Controller
    from barnabas.coordinator.groups.coordinator import GroupCoordinator
    from barnabas.coordinator.transactions.coordinator import TransactionCoordinator
    from barnabas.metadata.image import Image
    from barnabas.replication import Partitions
    from barnabas.server.verifications import Verifications


def wall_clock_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass(slots=True)
class Broker:
    """Everything a handler needs; the node builds it once and swaps `image` as metadata moves."""

    node_id: int
    cluster_id: str
    settings: "BrokerSettings"
    resolver: "Resolver"
    image: "Image"
    partitions: "Partitions"
    controller: "Controller"
    timer: Timer
    purgatory: Purgatory
    fetch_sessions: FetchSessions
    metrics: Metrics = field(default_factory=Metrics)
    clock: Callable[[], int] = wall_clock_ms
    groups: "GroupCoordinator" = field(init=False)
    transactions: "TransactionCoordinator" = field(init=False)
    verifications: "Verifications" = field(init=False)
    """Built upon the rest, by the node."""
