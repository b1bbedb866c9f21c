"""How admin requests reach those who have to answer them, and what is tried again.

A call is about items: topics, partitions, groups. Each is sent to the broker that is responsible
for it, one request to a broker, all brokers at once. Items that fail in a way that passes go
through the same again, after a pause, until the deadline; the others are not held up by them.
"""

import asyncio
from collections.abc import Awaitable, Callable, Container, Iterable, Mapping
from typing import Any, TypeVar

from barnabas.client.admin.model import Node
from barnabas.client.cluster import Backoff, Cluster, Coordinator, Deadline
from barnabas.client.errors import KafkaError, KafkaException, error_in, told_by_broker
from barnabas.client.settings import AdminSettings
from barnabas.client.values import Partition
from barnabas.wire.apis import api
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.schema import Message

K = TypeVar("K")
V = TypeVar("V")

Exchange = Callable[[int | None, list[K]], Awaitable[Mapping[K, V | KafkaError]]]
"""Asks one node (None: any) for some items, and reads what it says of each."""

_AT_ONCE = 100
"""Requests about single items that wait for their answers at the same time."""

_LOST = frozenset({KafkaError._TRANSPORT, KafkaError._TIMED_OUT})
"""The node did not answer: it may have gone, and another be responsible by now."""

_CONTROLLER_MOVES = frozenset(
    {
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
        ErrorCode.BROKER_NOT_AVAILABLE,
    }
)
_LEADER_MOVES = _LOST | {
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.REPLICA_NOT_AVAILABLE,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.OFFSET_NOT_AVAILABLE,
    KafkaError._UNKNOWN_BROKER,
}
_COORDINATOR_MOVES = _LOST | {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.UNSTABLE_OFFSET_COMMIT,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    KafkaError._UNKNOWN_BROKER,
}


class Routes:
    """The ways to brokers, leaders and coordinators."""

    def __init__(self, cluster: Cluster, settings: AdminSettings) -> None:
        self.cluster = cluster
        self.settings = settings
        self.has_controllers = bool(settings.bootstrap_controllers)

    async def ask(
        self,
        request: Message,
        to: int | None = None,
        *,
        deadline: Deadline,
        newest_version: int | None = None,
    ) -> Any:
        """One request, one answer; an API that is not served is _UNSUPPORTED_FEATURE."""
        if to is None and self.has_controllers:
            # Brokers pass on to it what they are asked, controllers do not.
            to = await self.cluster.active_controller(deadline)
        try:
            return await self.cluster.ask(
                request,
                to,
                timeout_ms=deadline.left_ms(),
                newest_version=newest_version,
            )
        except KafkaException as failure:
            error = error_in(failure)
            if error.code() != ErrorCode.UNSUPPORTED_VERSION:
                raise
            name = api(request.API_KEY).name
            unserved = f"{name} is not served as it was asked: {error.str()}"
            raise KafkaException(KafkaError(KafkaError._UNSUPPORTED_FEATURE, unserved)) from None

    async def brokers(self, deadline: Deadline) -> list[int]:
        """The ids of all brokers there are now."""
        return sorted(await self.nodes(deadline))

    async def nodes(self, deadline: Deadline) -> dict[int, Node]:
        """The brokers there are now, and where they listen."""
        told = await self.cluster.describe([], timeout_ms=deadline.left_ms())
        return {
            broker.node_id: Node(broker.node_id, broker.host, broker.port, broker.rack)
            for broker in told.brokers
        }

    async def by_controller(
        self, items: Iterable[K], exchange: Exchange[K, V], deadline: Deadline
    ) -> dict[K, V | KafkaError]:
        """Any broker passes these on to the active controller."""

        async def attempt(left: list[K]) -> Mapping[K, V | KafkaError]:
            return await self._ask_nodes({None: left}, exchange)

        # Who is told to be active may not be among the nodes that are told, for a moment.
        passing = _CONTROLLER_MOVES | {KafkaError._UNKNOWN_BROKER}
        return await self._settle(items, attempt, deadline, passing)

    async def ask_controller(self, request: Message, deadline: Deadline) -> Any:
        """One answer for the whole request; KafkaException if that is an error."""

        async def exchange(node: int | None, _: list[None]) -> Mapping[None, Any]:
            told = await self.ask(request, node, deadline=deadline)
            failed = told.error_code
            message = getattr(told, "error_message", None)
            return {None: told_by_broker(failed, message) if failed else told}

        (outcome,) = (await self.by_controller([None], exchange, deadline)).values()
        if isinstance(outcome, KafkaError):
            raise KafkaException(outcome)
        return outcome

    async def by_leader(
        self, partitions: Iterable[Partition], exchange: Exchange[Partition, V], deadline: Deadline
    ) -> dict[Partition, V | KafkaError]:
        """To the leaders of partitions; what is no partition fails at once."""

        async def attempt(left: list[Partition]) -> Mapping[Partition, V | KafkaError]:
            leaders, leaderless = await self._leaders(left, deadline)
            return leaderless | await self._ask_nodes(leaders, exchange)

        return await self._settle(partitions, attempt, deadline, _LEADER_MOVES)

    async def by_coordinator(
        self, kind: Coordinator, keys: Iterable[str], exchange: Exchange[str, V], deadline: Deadline
    ) -> dict[str, V | KafkaError]:
        """To those who coordinate groups or transactions."""

        async def attempt(left: list[str]) -> Mapping[str, V | KafkaError]:
            coordinators, lost = await self._coordinators(kind, left, deadline)
            return lost | await self._ask_nodes(coordinators, exchange)

        return await self._settle(keys, attempt, deadline, _COORDINATOR_MOVES)

    async def by_broker(
        self, brokers: Mapping[K, int | None], exchange: Exchange[K, V], deadline: Deadline
    ) -> dict[K, V | KafkaError]:
        """To the brokers that are given for the items; None for those that any will do for."""

        async def attempt(left: list[K]) -> Mapping[K, V | KafkaError]:
            by_node: dict[int | None, list[K]] = {}
            for item in left:
                by_node.setdefault(brokers[item], []).append(item)
            return await self._ask_nodes(by_node, exchange)

        return await self._settle(brokers, attempt, deadline, _CONTROLLER_MOVES)

    async def _ask_nodes(
        self, nodes: Mapping[int | None, list[K]], exchange: Exchange[K, V]
    ) -> dict[K, V | KafkaError]:
        """Ask nodes at the same time; one that fails fails its own items alone."""

        async def one(node: int | None, items: list[K]) -> Mapping[K, V | KafkaError]:
            try:
                return await exchange(node, items)
            except KafkaException as failure:
                return dict.fromkeys(items, error_in(failure))

        outcomes: dict[K, V | KafkaError] = {}
        for told in await asyncio.gather(*(one(*each) for each in nodes.items())):
            outcomes.update(told)
        return outcomes

    async def _settle(
        self,
        items: Iterable[K],
        attempt: Callable[[list[K]], Awaitable[Mapping[K, V | KafkaError]]],
        deadline: Deadline,
        passing: Container[int],
    ) -> dict[K, V | KafkaError]:
        """An outcome for each item, in their order."""
        silence = KafkaError(KafkaError._FAIL, "the answer does not say what became of it")
        outcomes: dict[K, V | KafkaError] = dict.fromkeys(items, silence)
        backoff = Backoff(self.settings.retry_backoff_ms, self.settings.retry_backoff_max_ms)
        left = list(outcomes)
        while left:
            try:
                told = await attempt(left)
            except KafkaException as failure:
                if outcomes[left[0]] is silence:
                    raise  # nothing has been told about anything
                error = error_in(failure)
                is_late = error == KafkaError._TIMED_OUT
                outcomes.update(
                    (item, _late(outcomes[item]) if is_late else error) for item in left
                )
                break
            outcomes.update((item, told[item]) for item in left if item in told)
            left = [item for item in left if _passes(outcomes[item], passing)]
            pause_ms = backoff.next_ms()
            if left and deadline.left_ms() <= pause_ms:
                outcomes.update((item, _late(outcomes[item])) for item in left)
                break
            if left:
                self.cluster.refresh()
                await asyncio.sleep(pause_ms / 1000)
        return outcomes

    async def _leaders(
        self, partitions: list[Partition], deadline: Deadline
    ) -> tuple[dict[int | None, list[Partition]], dict[Partition, V | KafkaError]]:
        """Partitions by their leaders, and the errors of those that have none."""
        names = dict.fromkeys(topic for topic, _ in partitions)
        told = await self.cluster.describe(names, timeout_ms=deadline.left_ms())
        topics = {topic.name: topic for topic in told.topics}
        of_partition = {
            (topic.name, partition.partition_index): partition.leader_id
            for topic in told.topics
            for partition in topic.partitions
        }
        leaders: dict[int | None, list[Partition]] = {}
        leaderless: dict[Partition, V | KafkaError] = {}
        for name, index in partitions:
            leader = of_partition.get((name, index))
            if leader is not None and leader >= 0:
                leaders.setdefault(leader, []).append((name, index))
            elif topics[name].error_code:
                leaderless[name, index] = told_by_broker(topics[name].error_code)
            elif leader is None:
                leaderless[name, index] = KafkaError(
                    KafkaError._UNKNOWN_PARTITION,
                    f"{name} has {len(topics[name].partitions)} partitions, none is {index}",
                )
            else:
                leaderless[name, index] = told_by_broker(ErrorCode.LEADER_NOT_AVAILABLE)
        return leaders, leaderless

    async def _coordinators(
        self, kind: Coordinator, keys: list[str], deadline: Deadline
    ) -> tuple[dict[int | None, list[str]], dict[str, V | KafkaError]]:
        """Keys by their coordinators, found with one request (KIP-699), and errors of others."""
        request = FindCoordinatorRequest(key_type=kind, coordinator_keys=keys)
        response = await self.ask(request, deadline=deadline)
        coordinators: dict[int | None, list[str]] = {}
        lost: dict[str, V | KafkaError] = {}
        for found in response.coordinators:
            if found.error_code:
                lost[found.key] = told_by_broker(found.error_code, found.error_message)
            else:
                coordinators.setdefault(found.node_id, []).append(found.key)
        return coordinators, lost


def topics_of(partitions: Iterable[Partition]) -> dict[str, list[int]]:
    """Partitions by their topics, as requests list them."""
    topics: dict[str, list[int]] = {}
    for topic, index in partitions:
        topics.setdefault(topic, []).append(index)
    return topics


def one_by_one(
    ask: Callable[[int | None, K], Awaitable[V | KafkaError]],
) -> Exchange[K, V]:
    """For requests that are about one item each: many of a node's are under way at a time."""
    turns = asyncio.Semaphore(_AT_ONCE)

    async def one(node: int | None, item: K) -> V | KafkaError:
        async with turns:
            try:
                return await ask(node, item)
            except KafkaException as failure:
                return error_in(failure)

    async def exchange(node: int | None, items: list[K]) -> Mapping[K, V | KafkaError]:
        outcomes = await asyncio.gather(*(one(node, item) for item in items))
        return dict(zip(items, outcomes, strict=True))

    return exchange


def _passes(outcome: object, passing: Container[int]) -> bool:
    return isinstance(outcome, KafkaError) and outcome.code() in passing


def _late(outcome: object) -> KafkaError:
    assert isinstance(outcome, KafkaError), "only what fails is late"
    reason = f"not done in time; the last failure was: {outcome.str()}"
    return KafkaError(KafkaError._TIMED_OUT, reason, retriable=True)
