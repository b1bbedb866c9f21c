"""The registration of a broker with the controller: registered, unfenced by heartbeats, released.

Kafka calls this the broker lifecycle.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

from barnabas.config import BrokerSettings
from barnabas.controller.broker_registration import has_same_resources
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.features import CORDONED_DIRECTORIES_FROM
from barnabas.metadata.image import MetadataImage
from barnabas.node.errors import NodeError
from barnabas.replication import Partitions
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    RequestDirectoryData,
    RequestPartitionData,
    RequestTopicData,
)
from barnabas.wire.messages.registrations import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
)
from barnabas.wire.schema import Message

REQUEST_TIMEOUT_MS = 4_500
"""How long the controller may take to respond; a session is twice as long by default."""

RETRY_S = 0.05
RETRY_MAX_S = 0.4
SHUTDOWN_HEARTBEAT_TIMEOUT_MS = 1_500
SHUTDOWN_HEARTBEAT_INTERVAL_S = 0.02
CONTROLLED_SHUTDOWN_TIMEOUT_S = 10.0

_FATAL_ERRORS = frozenset(
    (
        ErrorCode.INCONSISTENT_CLUSTER_ID,
        ErrorCode.INVALID_REGISTRATION,
        ErrorCode.UNSUPPORTED_VERSION,
    )
)
"""Errors that do not go away by retrying."""

log = logging.getLogger(__name__)


class Controller(Protocol):
    """The active controller, wherever it is."""

    async def handle(self, request: Message, *, timeout_ms: int = 0) -> Any: ...


class BrokerLifecycle:
    """Keeps one registration alive, from the first request to the controlled shutdown."""

    def __init__(
        self,
        settings: BrokerSettings,
        controller: Controller,
        image: Callable[[], MetadataImage],
        partitions: Partitions,
    ) -> None:
        self._broker_id = settings.node_id
        self._controller = controller
        self._image = image
        self._partitions = partitions
        self._interval_ms: int = settings["broker.heartbeat.interval.ms"]
        self._registration_timeout_ms: int = settings["initial.broker.registration.timeout.ms"]
        self._heartbeats: asyncio.Task[None] | None = None
        self._heartbeat_now = asyncio.Event()
        self._request = BrokerRegistrationRequest()
        self._is_replaced = False
        self.epoch = -1

    async def register(self, request: BrokerRegistrationRequest) -> None:
        """Gets a broker epoch. The broker is fenced until a heartbeat shows that it has it."""
        self._request = request
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + self._registration_timeout_ms / 1000
        logged, wait_s = ErrorCode.NONE, RETRY_S
        while True:
            response = await self._controller.handle(request, timeout_ms=REQUEST_TIMEOUT_MS)
            code = ErrorCode.of(response.error_code)
            if code is ErrorCode.NONE:
                self.epoch = response.broker_epoch
                self._is_replaced = False
                return
            if code in _FATAL_ERRORS or loop.time() >= deadline_s:
                raise NodeError(_explain(self._broker_id, code))
            if code is not logged:
                self._log_retry(code)
                logged = code
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, RETRY_MAX_S)

    def _log_retry(self, code: ErrorCode) -> None:
        if code is ErrorCode.DUPLICATE_BROKER_REGISTRATION:
            # Most likely the process before this one: Kafka's controllers wait for its session
            # to end, even if it was stopped cleanly.
            log.info(
                "broker %d is already registered, by an earlier process or by one that still runs:"
                " retrying",
                self._broker_id,
            )
        else:
            log.warning("%s Retrying.", _explain(self._broker_id, code))

    async def wait_until_unfenced(self) -> None:
        """Sends heartbeats until the broker is unfenced, then at regular intervals."""
        while True:
            response = await self._send_heartbeat()
            if response.error_code == ErrorCode.STALE_BROKER_EPOCH:
                await self.register(self._request)
            elif response.error_code == ErrorCode.NONE and not response.is_fenced:
                break
            await asyncio.sleep(RETRY_S)
        self._heartbeats = asyncio.create_task(self._send_heartbeats())

    def check_registration(self, image: MetadataImage) -> None:
        """Registers again if an earlier process of this broker is registered by now.

        It was killed, and its request reached the controller late. It sends no heartbeats, so it
        stays fenced and leads nothing. Raises NodeError if it is a process with other directories
        or listeners: then the metadata of this broker is meant for that one, and two processes must
        not lead in one epoch.
        """
        broker = image.brokers.get(self._broker_id)
        if (
            broker is None
            or not 0 <= self.epoch < broker.epoch
            or broker.incarnation_id == self._request.incarnation_id
        ):
            return
        if not has_same_resources(self._request, broker):
            raise NodeError(_explain(self._broker_id, ErrorCode.STALE_BROKER_EPOCH))
        self._is_replaced = True
        self._heartbeat_now.set()

    def on_metadata_change(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Sends a heartbeat at once when another broker shuts down.

        That broker waits until the heartbeats of all others show that they have seen it.
        """
        for broker_id in delta.brokers_changed:
            broker = image.brokers.get(broker_id)
            if broker is not None and broker.in_controlled_shutdown:
                self._heartbeat_now.set()

    async def controlled_shutdown(self) -> None:
        """Moves leadership to other brokers and waits, for a limited time, until they have it."""
        await self._stop_heartbeats()
        if not self._has_other_brokers():
            return
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + CONTROLLED_SHUTDOWN_TIMEOUT_S
        while loop.time() < deadline_s:
            response = await self._send_heartbeat(
                want_shut_down=True, timeout_ms=SHUTDOWN_HEARTBEAT_TIMEOUT_MS
            )
            if response.error_code != ErrorCode.NONE:
                code = ErrorCode.of(response.error_code)
                log.info("controlled shutdown failed: the controller responded %s", code.name)
                return
            if response.should_shut_down:
                return
            await asyncio.sleep(SHUTDOWN_HEARTBEAT_INTERVAL_S)

    def _has_other_brokers(self) -> bool:
        """Whether there is another active broker to move leadership to."""
        brokers = self._image().brokers.values()
        return any(broker.active and broker.broker_id != self._broker_id for broker in brokers)

    async def _stop_heartbeats(self) -> None:
        if self._heartbeats is not None:
            self._heartbeats.cancel()
            await asyncio.gather(self._heartbeats, return_exceptions=True)

    async def _send_heartbeats(self) -> None:
        loop = asyncio.get_running_loop()
        logged = ErrorCode.NONE
        while True:
            next_s = loop.time() + self._interval_ms / 1000
            if self._is_replaced:
                await self._register_again()
            response = await self._send_heartbeat()
            code = ErrorCode.of(response.error_code)
            if code is not logged and code is not ErrorCode.NONE:
                log.warning("the controller rejected a heartbeat: %s", code.name)
            logged = code
            await self._report_directories()
            with suppress(TimeoutError):
                async with asyncio.timeout_at(next_s):
                    await self._heartbeat_now.wait()
            self._heartbeat_now.clear()

    async def _register_again(self) -> None:
        log.warning("broker %d: an earlier process has registered late", self._broker_id)
        try:
            await self.register(self._request)
        except NodeError as error:
            log.error("%s Trying again.", error)

    async def _send_heartbeat(
        self, *, want_shut_down: bool = False, timeout_ms: int = REQUEST_TIMEOUT_MS
    ) -> BrokerHeartbeatResponse:
        response = await self._controller.handle(
            BrokerHeartbeatRequest(
                broker_id=self._broker_id,
                broker_epoch=self.epoch,
                current_metadata_offset=self._image().offset,
                want_shut_down=want_shut_down,
                offline_log_dirs=[
                    directory.directory_id
                    for directory in self._partitions.log_dirs.directories
                    if directory.failed
                ],
                cordoned_log_dirs=self._cordoned_directories(),
            ),
            timeout_ms=timeout_ms,
        )
        assert isinstance(response, BrokerHeartbeatResponse)
        return response

    def _cordoned_directories(self) -> list[bytes] | None:
        """Returns None if there are none and the controller has none: it would record a change."""
        image, cordoned = self._image(), self._partitions.log_dirs.cordoned_ids
        if image.metadata_level < CORDONED_DIRECTORIES_FROM:
            return None
        broker = image.brokers.get(self._broker_id)
        is_needed = cordoned or (broker is not None and broker.cordoned_log_dirs)
        return cordoned if is_needed else None

    async def _report_directories(self) -> None:
        """Reports the log directories of replicas that the controller left unassigned."""
        unreported = dict(self._partitions.unassigned_dirs)
        if not unreported:
            return
        by_directory: dict[bytes, dict[bytes, list[int]]] = defaultdict(lambda: defaultdict(list))
        for (topic_id, index), directory_id in unreported.items():
            by_directory[directory_id][topic_id].append(index)
        await self._controller.handle(
            AssignReplicasToDirsRequest(
                broker_id=self._broker_id,
                broker_epoch=self.epoch,
                directories=[
                    RequestDirectoryData(
                        id=directory_id,
                        topics=[
                            RequestTopicData(
                                topic_id=topic_id,
                                partitions=[
                                    RequestPartitionData(partition_index=index) for index in indexes
                                ],
                            )
                            for topic_id, indexes in topics.items()
                        ],
                    )
                    for directory_id, topics in by_directory.items()
                ],
            ),
            timeout_ms=REQUEST_TIMEOUT_MS,
        )


def _explain(broker_id: int, code: ErrorCode) -> str:
    match code:
        case ErrorCode.INCONSISTENT_CLUSTER_ID:
            return (
                f"Broker {broker_id} is formatted for another cluster than its controllers: "
                "correct controller.quorum.bootstrap.servers, or format it for theirs."
            )
        case ErrorCode.DUPLICATE_BROKER_REGISTRATION:
            return (
                f"Another process runs as broker {broker_id}: stop it, or give this one another "
                "node.id."
            )
        case ErrorCode.REQUEST_TIMED_OUT | ErrorCode.NOT_CONTROLLER:
            return (
                f"No controller has registered broker {broker_id} so far: are a majority of the "
                "controllers running, and does controller.quorum.bootstrap.servers name them?"
            )
        case ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            return (
                f"The controller does not allow broker {broker_id} to register: add the principal "
                "of this node to super.users on all nodes."
            )
        case ErrorCode.STALE_BROKER_EPOCH:
            return f"Another process is registered as broker {broker_id}: stop one of them."
    return f"The controller did not register broker {broker_id}: {code.name}."
