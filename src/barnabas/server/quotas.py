"""Quotas of the clients of a node: what requests cost, and how long their connections wait.

The response to a request over quota leaves at once and names the delay; then nothing is read from
the connection until the delay is over. Without quotas nothing is measured.
"""

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from barnabas.coordinator.transactions.add_partitions import FIRST_VERSION_FOR_BROKERS
from barnabas.security.authorizer.model import CLUSTER, AclOperation
from barnabas.security.quotas.client_quotas import (
    MAX_SENSORS,
    BucketQuota,
    ClientQuota,
    ClientSensor,
    ClientSensors,
    Quotas,
    RateQuota,
)
from barnabas.security.quotas.entities import QuotaKey
from barnabas.security.quotas.rate import DEFAULT_WINDOW, RateWindow, SampledRate
from barnabas.server.fetching.session_cache import is_follower
from barnabas.server.metrics.registry import Gauge
from barnabas.wire.apis import ApiKey
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.schema import Message

if TYPE_CHECKING:
    from barnabas.server.network._connection import ClientConnection
    from barnabas.server.network._route import Route
    from barnabas.server.request_context import RequestContext

_FIRST_STRICT_VERSIONS: Final = {
    ApiKey.CREATE_TOPICS: 6,
    ApiKey.DELETE_TOPICS: 5,
    ApiKey.CREATE_PARTITIONS: 3,
}
"""The versions from which a client over quota gets an error; older ones only have to wait."""

_OF_NODES: Final = frozenset(
    {
        ApiKey.ALLOCATE_PRODUCER_IDS,
        ApiKey.ALTER_PARTITION,
        ApiKey.ASSIGN_REPLICAS_TO_DIRS,
        ApiKey.BEGIN_QUORUM_EPOCH,
        ApiKey.BROKER_HEARTBEAT,
        ApiKey.BROKER_REGISTRATION,
        ApiKey.CONTROLLER_REGISTRATION,
        ApiKey.END_QUORUM_EPOCH,
        ApiKey.ENVELOPE,
        ApiKey.FETCH_SNAPSHOT,
        ApiKey.UPDATE_RAFT_VOTER,
        ApiKey.VOTE,
        ApiKey.WRITE_TXN_MARKERS,
    }
)
"""Requests that nodes send to each other, which are never throttled."""

_QUEUES: Final = ("produce", "fetch", "request", "controllermutation")
_KINDS: Final[Mapping[int, str]] = {ApiKey.PRODUCE: "produce", ApiKey.FETCH: "fetch"}
"""The quota that delays a request of an API, unless its time does; else it changes partitions."""

_NS_PER_PERCENT: Final = 10_000_000
"""The part of a second that is one percent of a thread."""


class RequestQuotas:
    """The quotas of one node. All of them count for this node alone."""

    __slots__ = (
        "_limited",
        "delays",
        "exempt_time",
        "fetch",
        "is_enabled",
        "mutations",
        "now_ms",
        "produce",
        "request_time",
    )

    def __init__(
        self,
        window: RateWindow = DEFAULT_WINDOW,
        controller_window: RateWindow = DEFAULT_WINDOW,
        now_ms: Callable[[], int] = lambda: int(time.monotonic() * 1000),
    ) -> None:
        self.is_enabled = False
        """Whether anybody has a quota: requests are measured only then."""
        self.produce = RateQuota(QuotaKey.PRODUCER_BYTE_RATE, window)
        self.fetch = RateQuota(QuotaKey.CONSUMER_BYTE_RATE, window)
        self.request_time = RateQuota(
            QuotaKey.REQUEST_PERCENTAGE, window, max_delay_ms=window.sample_ms
        )
        self.mutations = BucketQuota(QuotaKey.CONTROLLER_MUTATION_RATE, controller_window)
        self.exempt_time = SampledRate(window)
        self.delays = {kind: ThrottledChannels() for kind in _QUEUES}
        """The channels that wait, by the quota that delays them."""
        self._limited: dict[tuple[str, str], bool] = {}  # of clients that were looked up
        self.now_ms = now_ms
        """The clock of the event loop, whose timers end the delays."""

    @classmethod
    def of(
        cls, settings: Mapping[str, Any], loop: asyncio.AbstractEventLoop, quotas: Quotas
    ) -> "RequestQuotas":
        created = cls(
            request_window(settings),
            RateWindow(
                settings["controller.quota.window.num"],
                settings["controller.quota.window.size.seconds"] * 1000,
            ),
            lambda: int(loop.time() * 1000),
        )
        created.update(quotas)
        return created

    def update(self, quotas: Quotas) -> None:
        """Applies the quotas of new metadata."""
        parts = (self.produce, self.fetch, self.request_time, self.mutations)
        for part in parts:
            part.update(quotas)
        self.is_enabled = any(part.is_enabled for part in parts)
        self._limited.clear()

    def _is_limited(self, user: str, client_id: str) -> bool:
        """Returns whether a client has a quota of bytes or of time: most have none."""
        client = (user, client_id)
        is_limited = self._limited.get(client)
        if is_limited is None:
            if len(self._limited) >= MAX_SENSORS:
                self._limited.clear()
            parts = (self.produce, self.fetch, self.request_time)
            is_limited = any(part.find(user, client_id) is not None for part in parts)
            self._limited[client] = is_limited
        return is_limited

    def throttle(
        self,
        route: "Route",
        request: Message,
        response: Any,
        context: "RequestContext",
        size_bytes: int,
        handler_ns: int,
    ) -> None:
        """Counts a request that was handled, and delays the next one of its connection.

        The response may have a delay already: that of a fetch, or of the controller.
        """
        has_throttle_time = response is not None and route.has_throttle_time
        throttle_ms = self.record(
            request.API_KEY,
            context.connection,
            context.client_id or "",
            size_bytes=size_bytes,
            handler_ns=handler_ns,
            is_exempt=self.request_time.is_enabled and _is_exempt(request, context),
            throttle_ms=response.throttle_time_ms if has_throttle_time else 0,
        )
        if has_throttle_time:
            response.throttle_time_ms = throttle_ms

    def record(
        self,
        key: int,
        connection: "ClientConnection",
        client_id: str,
        *,
        size_bytes: int,
        handler_ns: int,
        is_exempt: bool,
        throttle_ms: int = 0,
    ) -> int:
        """Does the same for a request without message objects.

        `throttle_ms` is the delay that the response has already. Returns its delay now.
        """
        user = connection.principal.name
        if not (throttle_ms or is_exempt or self._is_limited(user, client_id)):
            return 0
        now_ms = self.now_ms()
        queue = self.delays[_KINDS.get(key, "controllermutation")]
        if key == ApiKey.PRODUCE and self.produce.is_enabled:
            produce_ms = self.produce.record(user, client_id, size_bytes, now_ms)
            throttle_ms = max(throttle_ms, produce_ms)
        if self.request_time.is_enabled:
            percent = handler_ns / _NS_PER_PERCENT
            if is_exempt:
                self.exempt_time.record(percent, now_ms)
            else:
                request_ms = self.request_time.record(user, client_id, percent, now_ms)
                if request_ms > throttle_ms:
                    throttle_ms, queue = request_ms, self.delays["request"]
        if throttle_ms > 0:
            queue.add(now_ms + throttle_ms, now_ms)
            connection.throttle(throttle_ms)
        return throttle_ms

    def recorded_mutations(
        self, request: Message, context: "RequestContext"
    ) -> "RecordedMutations | None":
        """Returns the quota of a request that creates or deletes partitions; None without one."""
        first_strict = _FIRST_STRICT_VERSIONS.get(ApiKey(request.API_KEY))
        if not self.mutations.is_enabled or first_strict is None:
            return None
        quota = self.mutations.find(context.principal.name, context.client_id or "")
        if quota is None:
            return None
        now_ms = self.now_ms()
        sensor = self.mutations.sensors.get(quota.tags, now_ms)
        sensor.bound = quota.bound
        return RecordedMutations(
            quota, sensor, now_ms, is_strict=context.api_version >= first_strict
        )

    def __iter__(self) -> Iterator[Gauge]:
        """Returns the metrics of the clients that have quotas."""
        now_ms = self.now_ms()
        for kind, name, part in (
            ("produce", "byte_rate", self.produce),
            ("fetch", "byte_rate", self.fetch),
            ("request", "request_time", self.request_time),
        ):
            for labels, sensor in _labelled(part.sensors, now_ms):
                rate = sensor.rate.per_second(now_ms)
                yield Gauge(f"kafka_server_{kind}_{name}", rate, labels)
                waited = sensor.throttle_time.average(now_ms)
                yield Gauge(f"kafka_server_{kind}_throttle_time", waited, labels)
        for labels, sensor in _labelled(self.mutations.sensors, now_ms):
            rate = sensor.rate.per_second(now_ms)
            waited = sensor.throttle_time.average(now_ms)
            yield Gauge("kafka_server_controllermutation_mutation_rate", rate, labels)
            tokens = sensor.bucket.tokens(sensor.bound, now_ms)
            yield Gauge("kafka_server_controllermutation_tokens", tokens, labels)
            yield Gauge("kafka_server_controllermutation_throttle_time", waited, labels)
        if self.is_enabled:
            for kind, queue in self.delays.items():
                yield Gauge(f"kafka_server_{kind}_queue_size", queue.count(now_ms))
        if self.request_time.is_enabled:
            exempt = self.exempt_time.per_second(now_ms)
            yield Gauge("kafka_server_request_exempt_request_time", exempt)


class ThrottledChannels:
    """Counts the channels that wait because of a quota, by when their delays end."""

    __slots__ = ("_ends_ms",)

    def __init__(self) -> None:
        self._ends_ms: list[int] = []  # a heap

    def add(self, end_ms: int, now_ms: int) -> None:
        heappush(self._ends_ms, end_ms)
        if self._ends_ms[0] <= now_ms:
            heappop(self._ends_ms)

    def count(self, now_ms: int) -> int:
        while self._ends_ms and self._ends_ms[0] <= now_ms:
            heappop(self._ends_ms)
        return len(self._ends_ms)


class RecordedMutations:
    """What one request takes from the bucket of its client."""

    __slots__ = ("_is_strict", "_now_ms", "_quota", "_sensor", "throttle_time_ms")

    def __init__(
        self, quota: ClientQuota, sensor: ClientSensor, now_ms: int, *, is_strict: bool
    ) -> None:
        self._quota = quota
        self._sensor = sensor
        self._now_ms = now_ms
        self._is_strict = is_strict
        self.throttle_time_ms = 0

    def record(self, count: int) -> None:
        """Takes a token for each partition. Raises THROTTLING_QUOTA_EXCEEDED if there are none.

        A request that finds a token may take more than there are. Old clients are never rejected.
        """
        rate, bucket = self._quota.bound, self._sensor.bucket
        if self._is_strict and bucket.tokens(rate, self._now_ms) < 0:
            self._wait(bucket.delay_ms(rate, self._now_ms))
            raise KafkaError(
                ErrorCode.THROTTLING_QUOTA_EXCEEDED,
                "The quota of partitions to create and delete (controller_mutation_rate) is used "
                f"up: retry in {self.throttle_time_ms} ms.",
            )
        bucket.take(count, rate, self._now_ms)
        self._sensor.rate.record(count, self._now_ms)
        if not self._is_strict:
            self._wait(bucket.delay_ms(rate, self._now_ms))

    def _wait(self, delay_ms: int) -> None:
        self.throttle_time_ms = delay_ms
        self._sensor.throttle_time.record(delay_ms, self._now_ms)


def _is_exempt(request: Any, context: "RequestContext") -> bool:
    """Returns whether a request counts for no client: those of nodes, and of acks=0 as in Kafka."""
    match ApiKey(request.API_KEY):
        case ApiKey.PRODUCE:
            return bool(request.acks == 0)
        case ApiKey.FETCH:
            is_of_node = is_follower(request, context.api_version)
        case ApiKey.OFFSET_FOR_LEADER_EPOCH:
            is_of_node = request.replica_id >= 0
        case ApiKey.ADD_PARTITIONS_TO_TXN:
            is_of_node = context.api_version >= FIRST_VERSION_FOR_BROKERS
        case key:
            is_of_node = key in _OF_NODES
    # Other clients may not exempt themselves: they only get an error.
    try:
        return is_of_node and context.is_allowed(
            AclOperation.CLUSTER_ACTION, CLUSTER, is_audited=False
        )
    except KafkaError:
        return False


def request_window(settings: Mapping[str, Any]) -> RateWindow:
    """Returns how the rates of clients and of connections are measured."""
    return RateWindow(settings["quota.window.num"], settings["quota.window.size.seconds"] * 1000)


def _labelled(sensors: ClientSensors, now_ms: int) -> Iterator[tuple[dict[str, str], ClientSensor]]:
    sensors.remove_expired(now_ms)
    for tags, sensor in sensors:
        yield {"user": quote(tags.user, safe=""), "client_id": tags.client_id}, sensor
