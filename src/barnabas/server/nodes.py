"""The parts of a running broker and of a running controller, as their handlers use them.

Handlers reach them through `context.broker` and `context.controller_node`.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from barnabas.server import api, controller_api
from barnabas.server.authorization import RequestAuthorizer
from barnabas.server.auto_topic_creation import AutoTopicCreator
from barnabas.server.disk_reads import DiskReads
from barnabas.server.fetching.session_cache import FetchSessionCache
from barnabas.server.handlers import ApiHandlers
from barnabas.server.lanes._lane import Lane
from barnabas.server.metrics.registry import MetricsRegistry
from barnabas.server.network._clock import wall_clock_ms
from barnabas.server.purgatory import Purgatory
from barnabas.server.quotas import RequestQuotas
from barnabas.server.telemetry.telemetry import ClientTelemetry
from barnabas.server.timer import Timer
from barnabas.wire.apis import ApiKey
from barnabas.wire.schema import Message

if TYPE_CHECKING:
    from barnabas.config import BrokerSettings
    from barnabas.config.resolver import ConfigResolver
    from barnabas.controller import QuorumController
    from barnabas.coordinator.groups.coordinator import GroupCoordinator
    from barnabas.coordinator.transactions.coordinator import TransactionCoordinator
    from barnabas.metadata.image import MetadataImage
    from barnabas.raft import Quorum
    from barnabas.replication import Partitions
    from barnabas.server.request_context import RequestContext
    from barnabas.server.store_validation import StoreValidator
    from barnabas.server.transactions.partition_verifier import PartitionVerifier


class ControllerClient(Protocol):
    """Sends requests to the active controller, in this process or in another."""

    @property
    def quorum(self) -> "Quorum":
        """This node's part in the metadata quorum."""

    async def handle(self, request: Message, *, timeout_ms: int = 0) -> Any:
        """Sends a request of this broker; a failure is returned as an error response of the API."""

    async def forward(self, request: Message, context: "RequestContext") -> Any:
        """Forwards the request of a client, with the client's principal and address."""


@dataclass(slots=True)
class BrokerNode:
    """Everything that a handler needs; `image` is replaced whenever the metadata changes."""

    handlers: ClassVar[ApiHandlers] = api.HANDLERS

    node_id: int
    cluster_id: str
    settings: "BrokerSettings"
    resolver: "ConfigResolver"
    image: "MetadataImage"
    partitions: "Partitions"
    controller: ControllerClient
    timer: Timer
    purgatory: Purgatory
    fetch_sessions: FetchSessionCache
    disk_reads: DiskReads
    authorizer: RequestAuthorizer | None = None  # None: everything is allowed
    store_validator: "StoreValidator | None" = None  # None: no listener has TLS
    quotas: RequestQuotas = field(default_factory=RequestQuotas)
    auto_topic_creator: AutoTopicCreator = field(default_factory=AutoTopicCreator)
    telemetry: ClientTelemetry = field(default_factory=ClientTelemetry)
    metrics: MetricsRegistry = field(default_factory=MetricsRegistry)
    clock: Callable[[], int] = wall_clock_ms
    monotonic_ns: Callable[[], int] = time.perf_counter_ns
    lanes: Mapping[ApiKey, Lane] = field(default_factory=dict)
    """The lanes of the APIs that have one; without them, handlers serve every request."""
    groups: "GroupCoordinator" = field(init=False)
    transactions: "TransactionCoordinator" = field(init=False)
    partition_verifier: "PartitionVerifier" = field(init=False)
    """The last four depend on the others: the node sets them after it has built this object."""


@dataclass(slots=True)
class ControllerNode:
    """Everything that a handler of the controller's listener needs.

    The node sets `quorum` and `controller` before the listener opens, and replaces `image`
    whenever the metadata changes.
    """

    handlers: ClassVar[ApiHandlers] = controller_api.HANDLERS
    lanes: ClassVar[Mapping[ApiKey, Lane]] = {}

    node_id: int
    cluster_id: str
    settings: "BrokerSettings"
    resolver: "ConfigResolver"
    image: "MetadataImage"
    timer: Timer
    purgatory: Purgatory
    disk_reads: DiskReads
    authorizer: RequestAuthorizer | None = None  # None: everything is allowed
    quotas: RequestQuotas = field(default_factory=RequestQuotas)
    metrics: MetricsRegistry = field(default_factory=MetricsRegistry)
    clock: Callable[[], int] = wall_clock_ms
    monotonic_ns: Callable[[], int] = time.perf_counter_ns
    quorum: "Quorum" = field(init=False)
    controller: "QuorumController" = field(init=False)
