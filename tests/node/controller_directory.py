"""A log directory on which a node with the controller role runs once or several times."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from barnabas.config import BrokerSettings
from barnabas.metadata.features import SUPPORTED
from barnabas.metadata.image import MetadataImage
from barnabas.node import Node
from barnabas.node.cluster_metadata import Subscriber
from barnabas.node.environment import Environment
from barnabas.node.format import format_storage
from barnabas.raft import Quorum
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.registrations import (
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    Feature,
)
from barnabas.wire.messages.topics import CreatableTopic, CreateTopicsRequest
from barnabas.wire.schema import Message

NOW_MS = 1_700_000_000_000
CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"
BROKER_ID = 7
BROKER_DIRECTORY = b"d" * 16


class RunningController:
    """The controller while it runs."""

    def __init__(self, node: Node) -> None:
        self.node = node

    @property
    def image(self) -> MetadataImage:
        return self.node.metadata.image

    @property
    def quorum(self) -> Quorum:
        return self.node.quorum

    def subscribe(self, subscriber: Subscriber) -> None:
        self.node.metadata.subscribe(subscriber)

    async def handle(self, request: Message) -> Any:
        return await self.node.controller.handle(request)

    async def register_broker(self) -> None:
        """Registers a broker and unfences it."""
        registered = await self.handle(
            BrokerRegistrationRequest(
                broker_id=BROKER_ID,
                cluster_id=self.node.cluster_id,
                incarnation_id=b"i" * 16,
                features=[
                    Feature(
                        name=name,
                        min_supported_version=levels.min,
                        max_supported_version=levels.max,
                    )
                    for name, levels in SUPPORTED.items()
                ],
                log_dirs=[BROKER_DIRECTORY],
            )
        )
        assert registered.error_code == ErrorCode.NONE
        await self.handle(
            BrokerHeartbeatRequest(
                broker_id=BROKER_ID,
                broker_epoch=registered.broker_epoch,
                current_metadata_offset=self.image.offset,
            )
        )

    async def create_topics(self, *topic_names: str, partitions: int = 1) -> Any:
        return await self.handle(
            CreateTopicsRequest(
                topics=[
                    CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
                    for name in topic_names
                ]
            )
        )


class ControllerDirectory:
    """A formatted directory."""

    def __init__(self, path: Path, *, is_formatted: bool = False, **settings: str) -> None:
        self.path = path
        self.now_ms = NOW_MS
        self.set(**settings)
        if not is_formatted:
            format_storage(self.settings, cluster_id=CLUSTER_ID)

    def set(self, **settings: str) -> None:
        """Settings for the next runs, with `_` for dots."""
        self.settings = BrokerSettings.from_properties(
            {
                "process.roles": "controller",
                "node.id": "1",
                "listeners": "CONTROLLER://127.0.0.1:0",
                "controller.listener.names": "CONTROLLER",
                "controller.quorum.bootstrap.servers": "127.0.0.1:1",
                "log.dirs": str(self.path),
                "broker.session.timeout.ms": "1000000000",
                **{name.replace("_", "."): value for name, value in settings.items()},
            }
        )

    @property
    def folder(self) -> Path:
        return self.path / "__cluster_metadata-0"

    def run(
        self, scenario: Callable[[RunningController], Awaitable[Any]], *, clean: bool = True
    ) -> MetadataImage:
        """Starts the node, runs `scenario`, stops it. Returns the image that it had at the end."""

        async def run_node() -> MetadataImage:
            node = await Node.start(self.settings, Environment(clock=lambda: self.now_ms))
            try:
                await scenario(RunningController(node))
            finally:
                await node.stop()
            return node.metadata.image

        image = asyncio.run(run_node())
        if not clean:  # as after a kill
            for name in (".kafka_cleanshutdown", "recovery-point-offset-checkpoint"):
                (self.path / name).unlink()
        return image


async def idle(controller: RunningController) -> None:
    """A scenario without requests."""


def topic_names(image: MetadataImage) -> set[str]:
    return {topic.name for topic in image.topics}
