"""The parts of a running controller, as its handlers use them through `context.controller_node`."""

from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter_ns
from typing import TYPE_CHECKING, ClassVar

from barnabas.server.broker_node import wall_clock_ms
from barnabas.server.controller_api import HANDLERS
from barnabas.server.handlers import ApiHandlers
from barnabas.server.metrics.registry import MetricsRegistry
from barnabas.server.purgatory import Purgatory
from barnabas.server.timer import Timer

if TYPE_CHECKING:
    from barnabas.config import BrokerSettings
    from barnabas.config.dynamic import Resolver
    from barnabas.controller import QuorumController
    from barnabas.metadata.image import MetadataImage
    from barnabas.raft import Quorum


@dataclass(slots=True)
class ControllerNode:
    """Everything that a handler of the controller's listener needs.

    The node sets `quorum` and `controller` before the listener opens, and replaces `image`
    whenever the metadata changes.
    """

    handlers: ClassVar[ApiHandlers] = HANDLERS

    node_id: int
    cluster_id: str
    settings: "BrokerSettings"
    resolver: "Resolver"
    image: "MetadataImage"
    timer: Timer
    purgatory: Purgatory
    metrics: MetricsRegistry = field(default_factory=MetricsRegistry)
    clock: Callable[[], int] = wall_clock_ms
    monotonic_ns: Callable[[], int] = perf_counter_ns
    quorum: "Quorum" = field(init=False)
    controller: "QuorumController" = field(init=False)
