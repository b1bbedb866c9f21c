"""The parts of one running controller, as handlers reach them through `call.controller_node`."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from barnabas.server.broker_node import wall_clock_ms
from barnabas.server.controller_api import HANDLERS
from barnabas.server.handlers import Handlers
from barnabas.server.metrics.registry import Metrics
from barnabas.server.purgatory import Purgatory
from barnabas.server.timer import Timer

if TYPE_CHECKING:
    from barnabas.config import BrokerSettings
    from barnabas.config.dynamic import Resolver
    from barnabas.controller import Controller
    from barnabas.metadata.image import Image
    from barnabas.raft import Quorum


@dataclass(slots=True)
class ControllerNode:
    """Everything a handler of the controller's listener needs.

    The node builds it once, gives it its part in the quorum before it is served, and swaps
    `image` as metadata moves.
    """

    handlers: ClassVar[Handlers] = HANDLERS
    """What its listener serves."""

    node_id: int
    cluster_id: str
    settings: "BrokerSettings"
    resolver: "Resolver"
    image: "Image"
    timer: Timer
    purgatory: Purgatory
    metrics: Metrics = field(default_factory=Metrics)
    clock: Callable[[], int] = wall_clock_ms
    quorum: "Quorum" = field(init=False)
    controller: "Controller" = field(init=False)
