"""Sends admin requests to the nodes that are responsible for them, and retries.

A call is about items: topics, partitions, groups. Each item is sent to the node that is
responsible for it, in one request for each node, to all nodes at once. Items with a retriable
error are sent again after a backoff until the deadline; the others do not wait for them.

Arguments are checked when a call is called, not when it is awaited.
"""

import asyncio
from collections.abc import Awaitable, Callable, Container, Iterable, Mapping
from typing import Any, TypeVar

from barnabas.client.admin.model import Node
from barnabas.client.admin.results import Results, error_of
from barnabas.client.cluster import Backoff, ClusterClient, CoordinatorType, Deadline
from barnabas.client.errors import KafkaError, KafkaException, broker_error, error_in
from barnabas.client.settings import AdminSettings
from barnabas.client.values import TopicPartition
from barnabas.wire.apis import api
from barnabas.wire.errors import ErrorCode
from barnabas.wire.schema import Message

K = TypeVar("K")
V = TypeVar("V")

Exchange = Callable[[int | None, list[K]], Awaitable[Mapping[K, V | KafkaError]]]
"""Sends a request about some items to a node (None: any node), and returns their outcomes."""

UNSET = -1.0
"""The default of every timeout: `default.api.timeout.ms` of the client applies."""

_MAX_TIMEOUT_S = 3600.0

_MAX_IN_FLIGHT = 100
"""Requests about single items that one call has in flight."""

_NO_RESPONSE = frozenset({KafkaError._TRANSPORT, KafkaError._TIMED_OUT})
"""The node may have failed, and another node may be responsible by now."""

_RETRIABLE_BY_CONTROLLER = frozenset(
    {
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
        ErrorCode.BROKER_NOT_AVAILABLE,
    }
)
_RETRIABLE_BY_LEADER = _NO_RESPONSE | {
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.REPLICA_NOT_AVAILABLE,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.OFFSET_NOT_AVAILABLE,
    KafkaError._UNKNOWN_BROKER,
}
_RETRIABLE_BY_COORDINATOR = _NO_RESPONSE | {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.UNSTABLE_OFFSET_COMMIT,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    KafkaError._UNKNOWN_BROKER,
}


class AdminRequests:
    """Routes requests to the controller, to brokers, partition leaders and coordinators."""

    def __init__(self, cluster: ClusterClient, settings: AdminSettings) -> None:
        self.cluster = cluster
        self.settings = settings
        self.has_controllers = bool(settings.bootstrap_controllers)

    def deadline(self, request_timeout: float) -> Deadline:
        """Returns when a call has to be finished, from its `request_timeout` in seconds."""
        default_ms = self.settings.default_api_timeout_ms
        return Deadline.after(timeout_ms("request_timeout", request_timeout, default_ms))

    @staticmethod
    def operation_timeout_ms(operation_timeout: float, deadline: Deadline) -> int:
        """Returns how long the broker may take to apply a change to the whole cluster."""
        return timeout_ms("operation_timeout", operation_timeout, deadline.remaining_ms())

    async def send(
        self,
        request: Message,
        node_id: int | None = None,
        *,
        deadline: Deadline,
        max_version: int | None = None,
    ) -> Any:
        """Returns the response of a node, or of any node.

        Raises _UNSUPPORTED_FEATURE if the node does not serve the API.
        """
        if node_id is None and self.has_controllers:
            # A broker forwards a request to the active controller, a controller does not.
            node_id = await self.cluster.active_controller(deadline)
        try:
            return await self.cluster.send_request(
                request,
                node_id,
                timeout_ms=deadline.remaining_ms(),
                max_version=max_version,
            )
        except KafkaException as failure:
            raise _unsupported_or(failure, api(request.API_KEY).name) from None

    async def broker_ids(self, deadline: Deadline) -> list[int]:
        """Returns the ids of all brokers in service."""
        return sorted(await self.broker_nodes(deadline))

    async def broker_nodes(self, deadline: Deadline) -> dict[int, Node]:
        """Returns the brokers in service with their addresses, by id."""
        response = await self.cluster.describe([], timeout_ms=deadline.remaining_ms())
        return {
            broker.node_id: Node(broker.node_id, broker.host, broker.port, broker.rack)
            for broker in response.brokers
        }

    async def route_to_controller(
        self, items: Iterable[K], exchange: Exchange[K, V], deadline: Deadline
    ) -> Results[K, V]:
        """Sends items to any broker, which forwards them to the active controller."""

        async def attempt(remaining: list[K]) -> Mapping[K, V | KafkaError]:
            return await self._send_to_nodes({None: remaining}, exchange)

        # For a moment, the reported active controller may not be among the reported nodes.
        retriable = _RETRIABLE_BY_CONTROLLER | {KafkaError._UNKNOWN_BROKER}
        return await self._retry(items, attempt, deadline, retriable)

    async def send_to_controller(self, request: Message, deadline: Deadline) -> Any:
        """Returns the controller's response. Raises KafkaException if it is an error."""

        async def exchange(node: int | None, _: list[None]) -> Mapping[None, Any]:
            response = await self.send(request, node, deadline=deadline)
            return {None: error_of(response) or response}

        return (await self.route_to_controller([None], exchange, deadline))[None]

    async def route_to_leaders(
        self,
        partitions: Iterable[TopicPartition],
        exchange: Exchange[TopicPartition, V],
        deadline: Deadline,
    ) -> Results[TopicPartition, V]:
        """Sends partitions to their leaders; a partition that does not exist fails at once."""

        async def attempt(
            remaining: list[TopicPartition],
        ) -> Mapping[TopicPartition, V | KafkaError]:
            leaders, errors = await self._find_leaders(remaining, deadline)
            return errors | await self._send_to_nodes(leaders, exchange)

        return await self._retry(partitions, attempt, deadline, _RETRIABLE_BY_LEADER)

    async def route_to_coordinators(
        self,
        kind: CoordinatorType,
        keys: Iterable[str],
        exchange: Exchange[str, V],
        deadline: Deadline,
    ) -> Results[str, V]:
        """Sends group ids or transactional ids to their coordinators."""

        async def attempt(remaining: list[str]) -> Mapping[str, V | KafkaError]:
            coordinators, errors = await self._find_coordinators(kind, remaining, deadline)
            return errors | await self._send_to_nodes(coordinators, exchange)

        return await self._retry(keys, attempt, deadline, _RETRIABLE_BY_COORDINATOR)

    async def route_to_brokers(
        self, brokers: Mapping[K, int | None], exchange: Exchange[K, V], deadline: Deadline
    ) -> Results[K, V]:
        """Sends items to the given brokers; None stands for any broker."""

        async def attempt(remaining: list[K]) -> Mapping[K, V | KafkaError]:
            by_node: dict[int | None, list[K]] = {}
            for item in remaining:
                by_node.setdefault(brokers[item], []).append(item)
            return await self._send_to_nodes(by_node, exchange)

        return await self._retry(brokers, attempt, deadline, _RETRIABLE_BY_CONTROLLER)

    async def _send_to_nodes(
        self, nodes: Mapping[int | None, list[K]], exchange: Exchange[K, V]
    ) -> dict[K, V | KafkaError]:
        """Sends to all nodes at once; a node that fails fails its own items alone."""

        async def send(node: int | None, items: list[K]) -> Mapping[K, V | KafkaError]:
            try:
                return await exchange(node, items)
            except KafkaException as failure:
                return dict.fromkeys(items, error_in(failure))

        outcomes: dict[K, V | KafkaError] = {}
        for of_node in await asyncio.gather(*(send(*entry) for entry in nodes.items())):
            outcomes.update(of_node)
        return outcomes

    async def _retry(
        self,
        items: Iterable[K],
        attempt: Callable[[list[K]], Awaitable[Mapping[K, V | KafkaError]]],
        deadline: Deadline,
        retriable: Container[int],
    ) -> Results[K, V]:
        """Returns the outcome of every item, in the order of the items."""
        missing = KafkaError(KafkaError._FAIL, "the response does not contain this item")
        outcomes: dict[K, V | KafkaError] = dict.fromkeys(items, missing)
        backoff = Backoff(self.settings.retry_backoff_ms, self.settings.retry_backoff_max_ms)
        remaining = list(outcomes)
        while remaining:
            try:
                latest = await attempt(remaining)
            except KafkaException as failure:
                if outcomes[remaining[0]] is missing:
                    raise  # there is no response about any item yet
                error = error_in(failure)
                is_late = error == KafkaError._TIMED_OUT
                outcomes.update(
                    (item, _timed_out(outcomes[item]) if is_late else error) for item in remaining
                )
                break
            outcomes.update((item, latest[item]) for item in remaining if item in latest)
            remaining = [item for item in remaining if _is_retriable(outcomes[item], retriable)]
            pause_ms = backoff.next_ms()
            if remaining and deadline.remaining_ms() <= pause_ms:
                outcomes.update((item, _timed_out(outcomes[item])) for item in remaining)
                break
            if remaining:
                self.cluster.refresh()
                await asyncio.sleep(pause_ms / 1000)
        return Results(outcomes)

    async def _find_leaders(
        self, partitions: list[TopicPartition], deadline: Deadline
    ) -> tuple[dict[int | None, list[TopicPartition]], dict[TopicPartition, V | KafkaError]]:
        """Returns partitions by their leaders, and the errors of those without a leader."""
        names = dict.fromkeys(partition.topic for partition in partitions)
        response = await self.cluster.describe(names, timeout_ms=deadline.remaining_ms())
        topics = {topic.name: topic for topic in response.topics}
        leader_ids = {
            (topic.name, partition.partition_index): partition.leader_id
            for topic in response.topics
            for partition in topic.partitions
        }
        by_leader: dict[int | None, list[TopicPartition]] = {}
        errors: dict[TopicPartition, V | KafkaError] = {}
        for partition in partitions:
            name, index = partition.topic, partition.partition
            leader_id = leader_ids.get((name, index))
            if leader_id is not None and leader_id >= 0:
                by_leader.setdefault(leader_id, []).append(partition)
            elif topics[name].error_code:
                errors[partition] = broker_error(topics[name].error_code)
            elif leader_id is None:
                errors[partition] = KafkaError(
                    KafkaError._UNKNOWN_PARTITION,
                    f"{name} has {len(topics[name].partitions)} partitions, none is {index}",
                )
            else:
                errors[partition] = broker_error(ErrorCode.LEADER_NOT_AVAILABLE)
        return by_leader, errors

    async def _find_coordinators(
        self, kind: CoordinatorType, keys: list[str], deadline: Deadline
    ) -> tuple[dict[int | None, list[str]], dict[str, V | KafkaError]]:
        """Returns keys by the nodes of their coordinators, and errors of the others."""
        try:
            found = await self.cluster.find_coordinators(kind, keys, deadline)
        except KafkaException as failure:
            raise _unsupported_or(failure, "FindCoordinator") from None
        by_node: dict[int | None, list[str]] = {}
        errors: dict[str, V | KafkaError] = {}
        for key, node_id in found.items():
            if isinstance(node_id, KafkaError):
                errors[key] = node_id
            else:
                by_node.setdefault(node_id, []).append(key)
        return by_node, errors


def one_request_per_item(
    send: Callable[[int | None, K], Awaitable[V | KafkaError]],
) -> Exchange[K, V]:
    """Returns the exchange of an API whose request is about one item: it has many in flight."""
    slots = asyncio.Semaphore(_MAX_IN_FLIGHT)

    async def send_one(node: int | None, item: K) -> V | KafkaError:
        async with slots:
            try:
                return await send(node, item)
            except KafkaException as failure:
                return error_in(failure)

    async def exchange(node: int | None, items: list[K]) -> Mapping[K, V | KafkaError]:
        outcomes = await asyncio.gather(*(send_one(node, item) for item in items))
        return dict(zip(items, outcomes, strict=True))

    return exchange


def _is_retriable(outcome: object, codes: Container[int]) -> bool:
    return isinstance(outcome, KafkaError) and outcome.code() in codes


def _timed_out(outcome: object) -> KafkaError:
    assert isinstance(outcome, KafkaError), "only items with errors are retried"
    reason = f"not done in time; the last failure was: {outcome.str()}"
    return KafkaError(KafkaError._TIMED_OUT, reason, retriable=True)


def _unsupported_or(failure: KafkaException, api_name: str) -> KafkaException:
    """Returns the failure, or _UNSUPPORTED_FEATURE if the node does not serve the API."""
    error = error_in(failure)
    if error.code() != ErrorCode.UNSUPPORTED_VERSION:
        return failure
    reason = f"{api_name} is not supported: {error.str()}"
    return KafkaException(KafkaError(KafkaError._UNSUPPORTED_FEATURE, reason))


def require_list(name: str, items: object, kind: type, *, filled: bool = True) -> None:
    """Raises TypeError unless it is a list of that type, ValueError if it must not be empty."""
    if not isinstance(items, list):
        raise TypeError(f"{name} must be a list of {kind.__name__}, not {type(items).__name__}")
    for item in items:
        if not isinstance(item, kind):
            raise TypeError(f"{name} must hold {kind.__name__}, not {type(item).__name__}")
    if filled and not items:
        raise ValueError(f"{name} must hold at least one {kind.__name__}")


def require_partitions(name: str, partitions: object, *, filled: bool = True) -> None:
    """Checks a list of partitions, which must have a topic and must not be negative."""
    require_list(name, partitions, TopicPartition, filled=filled)
    assert isinstance(partitions, list)
    for partition in partitions:
        if not partition.topic or partition.partition < 0:
            raise ValueError(f"{partition!r} needs a topic and a partition that is not negative")


def timeout_ms(name: str, timeout_s: float, default_ms: int) -> int:
    """Returns a timeout in milliseconds. Raises ValueError if it is out of range."""
    if timeout_s == UNSET:
        return default_ms
    if not 0 <= timeout_s <= _MAX_TIMEOUT_S:
        raise ValueError(f"{name} must be from 0 to {_MAX_TIMEOUT_S:.0f} seconds, not {timeout_s}")
    return round(timeout_s * 1000)
