"""The parts of one running broker, as handlers reach them through `call.broker`."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from barnabas.server.api import HANDLERS
from barnabas.server.auto_topic_creation import FirstUse
from barnabas.server.fetching.session_cache import FetchSessions
from barnabas.server.handlers import Handlers
from barnabas.server.metrics.registry import Metrics
from barnabas.server.purgatory import Purgatory
from barnabas.server.timer import Timer
from barnabas.wire.schema import Message

if TYPE_CHECKING:
    from barnabas.config import BrokerSettings
    from barnabas.config.dynamic import Resolver
    from barnabas.coordinator.groups.coordinator import GroupCoordinator
    from barnabas.coordinator.transactions.coordinator import TransactionCoordinator
    from barnabas.metadata.image import Image
    from barnabas.raft import Quorum
    from barnabas.replication import Partitions
    from barnabas.server.request_context import Call
    from barnabas.server.transactions.partition_verifier import Verifications


def wall_clock_ms() -> int:
    return time.time_ns() // 1_000_000


class Controller(Protocol):
    """The active controller, wherever it is."""

    @property
    def quorum(self) -> "Quorum":
        """This node's part in the quorum."""

    async def handle(self, request: Message, *, timeout_ms: int = 0) -> Any:
        """The answer to what this broker asks; a failure has the shape of the API's answers."""

    async def forward(self, request: Message, call: "Call") -> Any:
        """The answer to what a client asks, by `call`."""


@dataclass(slots=True)
class Broker:
    """Everything a handler needs; the node builds it once and swaps `image` as metadata moves."""

    handlers: ClassVar[Handlers] = HANDLERS
    """What its listeners serve."""

    node_id: int
    cluster_id: str
    settings: "BrokerSettings"
    resolver: "Resolver"
    image: "Image"
    partitions: "Partitions"
    controller: Controller
    timer: Timer
    purgatory: Purgatory
    fetch_sessions: FetchSessions
    first_use: FirstUse = field(default_factory=FirstUse)
    metrics: Metrics = field(default_factory=Metrics)
    clock: Callable[[], int] = wall_clock_ms
    groups: "GroupCoordinator" = field(init=False)
    transactions: "TransactionCoordinator" = field(init=False)
    verifications: "Verifications" = field(init=False)
    """Built upon the rest, by the node."""
