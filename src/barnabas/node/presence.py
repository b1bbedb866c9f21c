"""The broker's life in the eyes of the controller: registered, heard from, let go."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

from barnabas.config import BrokerSettings
from barnabas.metadata.delta import Delta
from barnabas.metadata.features import CORDONED_DIRECTORIES_FROM
from barnabas.metadata.image import Image
from barnabas.node.errors import NodeError
from barnabas.replication import Partitions
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    RequestDirectoryData,
    RequestPartitionData,
    RequestTopicData,
)
from barnabas.wire.messages.broker_heartbeat import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
)
from barnabas.wire.messages.broker_registration import BrokerRegistrationRequest
from barnabas.wire.schema import Message

ASK_TIMEOUT_MS = 4_500
"""How long the controller may take to answer; a session is twice as long by default."""

RETRY_S = 0.05
RETRY_MAX_S = 0.4
GOODBYE_TIMEOUT_MS = 1_500
GOODBYE_INTERVAL_S = 0.02
LEAVE_TIMEOUT_S = 10.0

_REFUSALS = frozenset(
    (
        ErrorCode.INCONSISTENT_CLUSTER_ID,
        ErrorCode.INVALID_REGISTRATION,
        ErrorCode.UNSUPPORTED_VERSION,
    )
)
"""What will not change by asking again."""

log = logging.getLogger(__name__)


class Controller(Protocol):
    """The active controller, wherever it is."""

    async def handle(self, request: Message, *, timeout_ms: int = 0) -> Any: ...


class Presence:
    """Keeps one registration alive, from the first request to the last goodbye."""

    def __init__(
        self,
        settings: BrokerSettings,
        controller: Controller,
        image: Callable[[], Image],
        partitions: Partitions,
    ) -> None:
        self._broker_id = settings.node_id
        self._controller = controller
        self._image = image
        self._partitions = partitions
        self._interval_ms: int = settings["broker.heartbeat.interval.ms"]
        self._registration_timeout_ms: int = settings["initial.broker.registration.timeout.ms"]
        self._beating: asyncio.Task[None] | None = None
        self._hurried = asyncio.Event()
        self.epoch = -1

    async def register(self, request: BrokerRegistrationRequest) -> None:
        """Get an epoch; the broker is fenced until a heartbeat shows that it knows of it."""
        loop = asyncio.get_running_loop()
        until = loop.time() + self._registration_timeout_ms / 1000
        told, wait_s = ErrorCode.NONE, RETRY_S
        while True:
            response = await self._controller.handle(request, timeout_ms=ASK_TIMEOUT_MS)
            code = ErrorCode.of(response.error_code)
            if code is ErrorCode.NONE:
                self.epoch = response.broker_epoch
                return
            if code in _REFUSALS or loop.time() >= until:
                raise NodeError(_refusal(self._broker_id, code))
            if code is not told:
                self._tell_of_wait(code)
                told = code
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, RETRY_MAX_S)

    def _tell_of_wait(self, code: ErrorCode) -> None:
        if code is ErrorCode.DUPLICATE_BROKER_REGISTRATION:
            # Most likely the process before this one: Kafka's controllers wait for its session
            # to end, even if it was stopped cleanly.
            log.info(
                "broker %d is registered already, by an earlier process or by one that still runs:"
                " trying again",
                self._broker_id,
            )
        else:
            log.warning("%s Trying again.", _refusal(self._broker_id, code))

    async def begin(self) -> None:
        """Ask until the broker is let in, and from then on say regularly that it lives."""
        while True:
            response = await self._beat()
            if response.error_code == ErrorCode.STALE_BROKER_EPOCH:
                raise NodeError(_refusal(self._broker_id, ErrorCode.STALE_BROKER_EPOCH))
            if response.error_code == ErrorCode.NONE and not response.is_fenced:
                break
            await asyncio.sleep(RETRY_S)
        self._beating = asyncio.create_task(self._keep_beating())

    def require_place(self, image: Image) -> None:
        """NodeError if another process is registered as this broker by now.

        Then this one was silent for so long that its session ended, and what the metadata says
        of the broker is meant for the other: two must not lead in one epoch.
        """
        broker = image.brokers.get(self._broker_id)
        if broker is not None and 0 <= self.epoch < broker.epoch:
            raise NodeError(_refusal(self._broker_id, ErrorCode.STALE_BROKER_EPOCH))

    def follow(self, delta: Delta, image: Image) -> None:
        """A broker that leaves waits until all others have said that they know of it: hurry."""
        for broker_id in delta.brokers_changed:
            broker = image.brokers.get(broker_id)
            if broker is not None and broker.in_controlled_shutdown:
                self._hurried.set()

    async def leave(self) -> None:
        """Hand over what this broker leads, and wait until the others know; not for ever."""
        await self._stop_beating()
        if not self._has_company():
            return
        loop = asyncio.get_running_loop()
        until = loop.time() + LEAVE_TIMEOUT_S
        while loop.time() < until:
            response = await self._beat(want_shut_down=True, timeout_ms=GOODBYE_TIMEOUT_MS)
            if response.error_code != ErrorCode.NONE:
                code = ErrorCode.of(response.error_code)
                log.info("leaving without handing over: the controller said %s", code.name)
                return
            if response.should_shut_down:
                return
            await asyncio.sleep(GOODBYE_INTERVAL_S)

    def _has_company(self) -> bool:
        """Whether there is another broker to hand over to."""
        brokers = self._image().brokers.values()
        return any(each.active and each.broker_id != self._broker_id for each in brokers)

    async def _stop_beating(self) -> None:
        if self._beating is not None:
            self._beating.cancel()
            await asyncio.gather(self._beating, return_exceptions=True)

    async def _keep_beating(self) -> None:
        loop = asyncio.get_running_loop()
        told = ErrorCode.NONE
        while True:
            next_s = loop.time() + self._interval_ms / 1000
            response = await self._beat()
            code = ErrorCode.of(response.error_code)
            if code is not told and code is not ErrorCode.NONE:
                log.warning("the controller refused a heartbeat: %s", code.name)
            told = code
            await self._report_directories()
            with suppress(TimeoutError):
                async with asyncio.timeout_at(next_s):
                    await self._hurried.wait()
            self._hurried.clear()

    async def _beat(
        self, *, want_shut_down: bool = False, timeout_ms: int = ASK_TIMEOUT_MS
    ) -> BrokerHeartbeatResponse:
        response = await self._controller.handle(
            BrokerHeartbeatRequest(
                broker_id=self._broker_id,
                broker_epoch=self.epoch,
                current_metadata_offset=self._image().offset,
                want_shut_down=want_shut_down,
                offline_log_dirs=[
                    directory.directory_id
                    for directory in self._partitions.disks.directories
                    if directory.failed
                ],
                cordoned_log_dirs=self._cordoned_directories(),
            ),
            timeout_ms=timeout_ms,
        )
        assert isinstance(response, BrokerHeartbeatResponse)
        return response

    def _cordoned_directories(self) -> list[bytes] | None:
        """None where there are none and the controller knows it: it would write that down."""
        image, cordoned = self._image(), self._partitions.disks.cordoned_ids
        if image.metadata_level < CORDONED_DIRECTORIES_FROM:
            return None
        broker = image.brokers.get(self._broker_id)
        is_news = cordoned or (broker is not None and broker.cordoned_log_dirs)
        return cordoned if is_news else None

    async def _report_directories(self) -> None:
        """Tell the controller where partitions were put that it left the choice of."""
        unreported = dict(self._partitions.unreported)
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
            timeout_ms=ASK_TIMEOUT_MS,
        )


def _refusal(broker_id: int, code: ErrorCode) -> str:
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
                f"No controller has registered broker {broker_id} so far: are a majority of them "
                "running, and do controller.quorum.bootstrap.servers lead to them?"
            )
        case ErrorCode.STALE_BROKER_EPOCH:
            return f"Another process has taken the place of broker {broker_id}: stop one of them."
    return f"The controller did not register broker {broker_id}: {code.name}."
