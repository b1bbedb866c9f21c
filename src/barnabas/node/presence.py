"""The broker's life in the eyes of the controller: registered, heard from, let go."""

import asyncio
import logging
from collections import defaultdict

from barnabas.controller import Controller
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

log = logging.getLogger(__name__)


class Presence:
    """Keeps one registration alive."""

    def __init__(self, broker_id: int, controller: Controller, interval_ms: int) -> None:
        self._broker_id = broker_id
        self._controller = controller
        self._interval_ms = interval_ms
        self._partitions: Partitions | None = None
        self._beating: asyncio.Task[None] | None = None
        self.epoch = -1

    async def register(self, request: BrokerRegistrationRequest) -> None:
        """Get an epoch; the broker is fenced until its first heartbeat."""
        response = await self._controller.handle(request)
        if response.error_code != ErrorCode.NONE:
            raise NodeError(
                f"The controller did not register broker {self._broker_id}: "
                f"{ErrorCode.of(response.error_code).name}."
            )
        self.epoch = response.broker_epoch

    async def begin(self, partitions: Partitions) -> None:
        """Ask to be let in, and from then on say regularly that the broker lives."""
        self._partitions = partitions
        response = await self._beat()
        if response.is_fenced:
            raise NodeError(
                f"The controller keeps broker {self._broker_id} fenced: "
                f"{ErrorCode.of(response.error_code).name}."
            )
        self._beating = asyncio.create_task(self._keep_beating())

    async def end(self) -> None:
        if self._beating is not None:
            self._beating.cancel()
            await asyncio.gather(self._beating, return_exceptions=True)

    async def _keep_beating(self) -> None:
        while True:
            await asyncio.sleep(self._interval_ms / 1000)
            response = await self._beat()
            if response.error_code != ErrorCode.NONE:
                log.warning(
                    "the controller refused a heartbeat: %s", ErrorCode.of(response.error_code).name
                )
            await self._report_directories()

    async def _beat(self) -> BrokerHeartbeatResponse:
        assert self._partitions is not None, "heartbeats come after the partitions"
        response = await self._controller.handle(
            BrokerHeartbeatRequest(
                broker_id=self._broker_id,
                broker_epoch=self.epoch,
                current_metadata_offset=self._controller.image.offset,
                offline_log_dirs=[
                    directory.directory_id
                    for directory in self._partitions.disks.directories
                    if directory.failed
                ],
            )
        )
        assert isinstance(response, BrokerHeartbeatResponse)
        return response

    async def _report_directories(self) -> None:
        """Tell the controller where partitions were put that it left the choice of."""
        assert self._partitions is not None, "directories are reported after the partitions"
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
            )
        )
