"""Who coordinates a group, a transactional id or a share partition, as far as it is known."""

import asyncio
from collections.abc import Callable, Coroutine
from enum import IntEnum
from typing import Any

from barnabas.client.backoff import Backoff, Deadline
from barnabas.client.cluster.metadata import BrokerInfo
from barnabas.client.cluster.nodes import ClusterNodes, SendRequest
from barnabas.client.errors import KafkaError, KafkaException, broker_error, error_in
from barnabas.client.settings import ConnectionSettings
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from barnabas.wire.schema import Message

_MOVED = frozenset({ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR})
_PASSING = _MOVED | {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
_LOST = frozenset(
    {
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._TIMED_OUT,
        KafkaError._RESOLVE,
        KafkaError._UNKNOWN_BROKER,
    }
)
_PURPOSE = "coordinator"
"""Joining a group may take minutes, and a broker answers a connection's requests in order."""


class CoordinatorType(IntEnum):
    """What is coordinated; the numbers are FindCoordinator's."""

    GROUP = 0
    TRANSACTION = 1
    SHARE = 2


class CoordinatorFinder:
    """Finds them and remembers where they are."""

    def __init__(
        self, nodes: ClusterNodes, send_request: SendRequest, settings: ConnectionSettings
    ) -> None:
        self._nodes = nodes
        self._send_request = send_request
        self._settings = settings
        self._known: dict[tuple[CoordinatorType, str], int] = {}

    def forget(self, kind: CoordinatorType, key: str) -> None:
        self._known.pop((kind, key), None)

    async def find(self, kind: CoordinatorType, key: str, deadline: Deadline) -> int:
        """Its node; asks until the deadline, while the cluster says that there is none yet."""
        known = self._known.get((kind, key))
        if known is not None and self._nodes.get(known) is not None:
            return known
        found: int = await self._until(deadline, lambda: self._find(kind, key, deadline))
        return found

    async def send_request(
        self,
        kind: CoordinatorType,
        key: str,
        request: Message | Callable[[], Message],
        error_of: Callable[[Any], int],
        deadline: Deadline,
        max_version: int | None = None,
    ) -> Any:
        """The coordinator's answer, of whatever node it is on by then."""

        async def attempt() -> Any:
            node_id = self._known.get((kind, key))
            if node_id is None or self._nodes.get(node_id) is None:
                node_id = await self._find(kind, key, deadline)
            this = request if isinstance(request, Message) else request()
            timeout_ms = min(deadline.remaining_ms(), self._settings.request_timeout_ms)
            try:
                response = await self._send_request(
                    this,
                    node_id,
                    timeout_ms=timeout_ms,
                    purpose=_PURPOSE,
                    max_version=max_version,
                )
            except KafkaException as failure:
                if error_in(failure).code() in _LOST:
                    self.forget(kind, key)
                raise
            code = error_of(response)
            if code in _MOVED:
                self.forget(kind, key)
            if code in _PASSING:
                raise KafkaException(broker_error(code))
            return response

        return await self._until(deadline, attempt)

    async def _find(self, kind: CoordinatorType, key: str, deadline: Deadline) -> int:
        # Up to version 3 a request has one key and no list of them, from 4 on the list alone.
        several = FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
        timeout_ms = min(deadline.remaining_ms(), self._settings.request_timeout_ms)
        try:
            response = await self._send_request(several, timeout_ms=timeout_ms)
        except KafkaException as failure:
            if error_in(failure).code() != ErrorCode.UNSUPPORTED_VERSION:
                raise
            one = FindCoordinatorRequest(key_type=kind, key=key)
            response = await self._send_request(one, timeout_ms=timeout_ms)
        found = _found(response)
        self._nodes.add(found)
        self._known[kind, key] = found.node_id
        return found.node_id

    async def _until(
        self, deadline: Deadline, attempt: Callable[[], Coroutine[Any, Any, Any]]
    ) -> Any:
        """Try again, at growing distances, what fails in a way that passes."""
        backoff = Backoff(self._settings.retry_backoff_ms, self._settings.retry_backoff_max_ms)
        error: KafkaError | None = None
        while True:
            try:
                return await attempt()
            except KafkaException as failure:
                latest = error_in(failure)
                if latest.code() not in _PASSING and latest.code() not in _LOST:
                    raise
                if error is None or not deadline.has_passed:
                    error = latest  # later ones say no more than that the time was over
            pause_ms = backoff.next_ms()
            if deadline.remaining_ms() <= pause_ms:
                late = f"timed out; the last failure was: {error.str()}"
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT, late, retriable=True))
            await asyncio.sleep(pause_ms / 1000)


def _found(response: FindCoordinatorResponse) -> BrokerInfo:
    it: Any = response.coordinators[0] if response.coordinators else response
    if it.error_code:
        raise KafkaException(broker_error(it.error_code, it.error_message))
    return BrokerInfo(it.node_id, it.host, it.port)
