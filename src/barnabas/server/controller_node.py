"""The parts of one running controller, as handlers reach them through `call.controller_node`."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from barnabas.server.broker import wall_clock_ms
from barnabas.server.controller_api import HANDLERS
from barnabas.server.handlers import Handlers
from barnabas.server.metrics import Metrics
from barnabas.server.purgatory import Purgatory
from barnabas.server.timer import Timer
from barnabas.wire.schema import Message

if TYPE_CHECKING:
    from barnabas.config import BrokerSettings
    from barnabas.config.dynamic import Resolver
    from barnabas.metadata.image import Image
    from barnabas.raft.describing import QuorumDescription


class Controller(Protocol):
    """Decides, while this node leads the quorum."""

    @property
    def is_active(self) -> bool: ...

    async def handle(self, request: Message, *, timeout_ms: int = 0) -> Any:
        """The response; it says NOT_CONTROLLER in the API's own shape if another decides."""


class Leader(Protocol):
    """Where the active controller listens."""

    @property
    def node_id(self) -> int: ...

    @property
    def epoch(self) -> int: ...

    @property
    def host(self) -> str: ...

    @property
    def port(self) -> int: ...


class Quorum(Protocol):
    """This node's part in the consensus on the metadata log; whatever is asked has an answer."""

    @property
    def leader(self) -> Leader | None: ...

    @property
    def is_leader(self) -> bool: ...

    @property
    def kraft_version(self) -> int: ...

    def describe(self) -> "QuorumDescription":
        """As the leader sees it."""

    def vote(self, request: Any, version: int, /) -> Message: ...

    def begin_epoch(self, request: Any, version: int, /) -> Message: ...

    def end_epoch(self, request: Any, version: int, /) -> Message: ...

    def fetch(self, request: Any, version: int, /) -> "Message | asyncio.Future[Any]": ...

    def fetch_snapshot(self, request: Any, version: int, /) -> Message: ...

    async def add_voter(self, request: Any, /) -> Message: ...

    async def remove_voter(self, request: Any, /) -> Message: ...

    async def update_voter(self, request: Any, /) -> Message: ...


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
    quorum: Quorum = field(init=False)
    controller: Controller = field(init=False)
