"""The coordinators of groups, transactional ids and share partitions."""

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
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.schema import Message

_MOVED = frozenset({ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR})
_RETRIABLE = _MOVED | {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
_UNREACHABLE = frozenset(
    {
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._TIMED_OUT,
        KafkaError._RESOLVE,
        KafkaError._UNKNOWN_BROKER,
    }
)
_PURPOSE = "coordinator"
"""A connection of its own: joining a group may take minutes, and responses come in order."""


class CoordinatorType(IntEnum):
    """The key types of FindCoordinator."""

    GROUP = 0
    TRANSACTION = 1
    SHARE = 2


class CoordinatorFinder:
    """Finds coordinators and caches their nodes."""

    def __init__(
        self, nodes: ClusterNodes, send_request: SendRequest, settings: ConnectionSettings
    ) -> None:
        self._nodes = nodes
        self._send_request = send_request
        self._settings = settings
        self._node_ids: dict[tuple[CoordinatorType, str], int] = {}

    def forget(self, kind: CoordinatorType, key: str) -> None:
        self._node_ids.pop((kind, key), None)

    async def find(self, kind: CoordinatorType, key: str, deadline: Deadline) -> int:
        """Returns the coordinator's node; retries until the deadline while there is none."""
        cached = self._node_ids.get((kind, key))
        if cached is not None and self._nodes.get(cached) is not None:
            return cached
        node_id: int = await self._retry(deadline, lambda: self._find(kind, key, deadline))
        return node_id

    async def send_request(
        self,
        kind: CoordinatorType,
        key: str,
        request: Message | Callable[[], Message],
        error_of: Callable[[Any], int],
        deadline: Deadline,
        max_version: int | None = None,
    ) -> Any:
        """Returns the coordinator's response, from the node that it is on by then."""

        async def attempt() -> Any:
            node_id = self._node_ids.get((kind, key))
            if node_id is None or self._nodes.get(node_id) is None:
                node_id = await self._find(kind, key, deadline)
            built = request if isinstance(request, Message) else request()
            timeout_ms = min(deadline.remaining_ms(), self._settings.request_timeout_ms)
            try:
                response = await self._send_request(
                    built,
                    node_id,
                    timeout_ms=timeout_ms,
                    purpose=_PURPOSE,
                    max_version=max_version,
                )
            except KafkaException as failure:
                if error_in(failure).code() in _UNREACHABLE:
                    self.forget(kind, key)
                raise
            code = error_of(response)
            if code in _MOVED:
                self.forget(kind, key)
            if code in _RETRIABLE:
                raise KafkaException(broker_error(code))
            return response

        return await self._retry(deadline, attempt)

    async def find_all(
        self, kind: CoordinatorType, keys: list[str], deadline: Deadline
    ) -> dict[str, int | KafkaError]:
        """Returns the nodes of coordinators, requested at once (KIP-699), or their errors."""
        timeout_ms = min(deadline.remaining_ms(), self._settings.request_timeout_ms)
        found: dict[str, Any]
        try:
            request = FindCoordinatorRequest(key_type=kind, coordinator_keys=keys)
            response = await self._send_request(request, timeout_ms=timeout_ms)
            found = {coordinator.key: coordinator for coordinator in response.coordinators}
        except KafkaException as failure:
            if error_in(failure).code() != ErrorCode.UNSUPPORTED_VERSION:
                raise
            # Up to version 3 a request has one key and no list of them, from 4 on the list alone.
            requests = (FindCoordinatorRequest(key_type=kind, key=key) for key in keys)
            found = {
                request.key: await self._send_request(request, timeout_ms=timeout_ms)
                for request in requests
            }
        return {key: self._add(kind, key, found[key]) for key in keys if key in found}

    async def _find(self, kind: CoordinatorType, key: str, deadline: Deadline) -> int:
        missing = broker_error(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        node_id = (await self.find_all(kind, [key], deadline)).get(key, missing)
        if isinstance(node_id, KafkaError):
            raise KafkaException(node_id)
        return node_id

    def _add(self, kind: CoordinatorType, key: str, found: Any) -> int | KafkaError:
        """Caches a coordinator of a response, and returns its node or error."""
        if found.error_code:
            return broker_error(found.error_code, found.error_message)
        self._nodes.add(BrokerInfo(found.node_id, found.host, found.port))
        self._node_ids[kind, key] = found.node_id
        return int(found.node_id)

    async def _retry(
        self, deadline: Deadline, attempt: Callable[[], Coroutine[Any, Any, Any]]
    ) -> Any:
        """Repeats an attempt with a backoff while its error is retriable."""
        backoff = Backoff(self._settings.retry_backoff_ms, self._settings.retry_backoff_max_ms)
        error: KafkaError | None = None
        while True:
            try:
                return await attempt()
            except KafkaException as failure:
                latest = error_in(failure)
                if latest.code() not in _RETRIABLE and latest.code() not in _UNREACHABLE:
                    raise
                if error is None or not deadline.has_passed:
                    error = latest  # later errors only say that the time was over
            pause_ms = backoff.next_ms()
            if deadline.remaining_ms() <= pause_ms:
                reason = f"timed out; the last error was: {error.str()}"
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT, reason, retriable=True))
            await asyncio.sleep(pause_ms / 1000)
