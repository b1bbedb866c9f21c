"""A controller on a directory of its own, and an image to decide on."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from barnabas.config import BrokerSettings
from barnabas.config.dynamic import Resolver
from barnabas.controller import Controller
from barnabas.controller.contacts import Contacts
from barnabas.controller.decision import Context, Decision
from barnabas.controller.new_topic_settings import NewTopicSettings
from barnabas.log import LogDirectory
from barnabas.metadata import features
from barnabas.metadata.delta import Delta
from barnabas.metadata.frames import encode_record
from barnabas.metadata.image import Image
from barnabas.metadata.snapshot import broker_record
from barnabas.metadata.states import BrokerState
from barnabas.raft import (
    Endpoint,
    Quorum,
    QuorumConfig,
    Voter,
    Voters,
    format_metadata,
    read_bootstrap,
)
from barnabas.wire.messages.metadata_records import FeatureLevelRecord
from barnabas.wire.schema import Message
from barnabas.wire.uuid import random_uuid

CLUSTER_ID = "barnabas-test-cluster0"
DIRECTORY_ID = b"directory-of-one"
NOW_MS = 1_794_788_572_473


def settings(**overrides: str) -> BrokerSettings:
    properties = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.listener.names": "CONTROLLER",
        "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
        "controller.quorum.bootstrap.servers": "127.0.0.1:9093",
        "log.dirs": "/nowhere",
    }
    properties.update({name.replace("_", "."): value for name, value in overrides.items()})
    return BrokerSettings.from_properties(properties)


def broker(broker_id: int, **changes: Any) -> BrokerState:
    values: dict[str, Any] = {
        "broker_id": broker_id,
        "epoch": 5,
        "incarnation_id": bytes([broker_id]) * 16,
        "endpoints": (),
        "features": features.SUPPORTED,
        "rack": None,
        "fenced": False,
        "in_controlled_shutdown": False,
        "log_dirs": (bytes([100 + broker_id]) * 16,),
    }
    return BrokerState(**{**values, **changes})


class World:
    """An image, and decisions that happen in it as soon as they are made."""

    def __init__(self, *brokers: BrokerState, **overrides: str) -> None:
        self.image = Image()
        self.settings = settings(**overrides)
        self.contacts = Contacts(session_timeout_ms=9000)
        self.now_ms = NOW_MS
        self.offset = 1000
        self.turn = 0
        self.voter_ids = [1]
        levels = features.default_levels()
        del levels[features.KRAFT_VERSION]
        self.apply(
            *(FeatureLevelRecord(name=name, feature_level=level) for name, level in levels.items()),
            *(broker_record(each) for each in brokers),
        )

    def apply(self, *records: Message) -> None:
        for record in records:
            self.image.apply(record, Delta())
            self.offset += 1

    @property
    def context(self) -> Context:
        resolver = Resolver(self.settings, self.image.configs)
        return Context(
            now_ms=self.now_ms,
            next_offset=self.offset,
            cluster_id=CLUSTER_ID,
            controller_id=1,
            voter_ids=self.voter_ids,
            kraft_version=1,
            resolver=resolver,
            new_topic_settings=NewTopicSettings(resolver),
            contacts=self.contacts,
            random_uuid=random_uuid,
            random_below=lambda count: self.turn % count,
        )

    def decide(self, module: Any, request: Message) -> Decision:
        decision: Decision = module.decide(request, self.image, self.context)
        if decision.contact is not None:
            self.contacts.touch(decision.contact)
        self.apply(*decision.records)
        return decision


@pytest.fixture
def one_broker() -> World:
    return World(broker(1))


class Home:
    """A formatted directory on which controllers are started one after the other."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.node = Voter(1, DIRECTORY_ID, (Endpoint("CONTROLLER", "127.0.0.1", 9093),))
        self.now_ms = NOW_MS
        self.settings = settings()
        self.quorum_config = QuorumConfig()
        self.directory: LogDirectory | None = None
        LogDirectory.format(path, CLUSTER_ID, 1, DIRECTORY_ID)
        frames = [
            encode_record(FeatureLevelRecord(name=name, feature_level=level), 0)
            for name, level in features.default_levels().items()
            if name != features.KRAFT_VERSION
        ]
        format_metadata(str(path), frames, Voters([self.node]), NOW_MS)

    @property
    def folder(self) -> Path:
        return self.path / "__cluster_metadata-0"

    def run(
        self, life: Callable[[Controller], Awaitable[Any]], *, clean: bool = True
    ) -> Controller:
        """Start a controller, let `life` happen, stop it."""
        self.directory = LogDirectory.open(self.path)
        quorum = Quorum.open(self.directory, self.node, config=self.quorum_config)
        controller = Controller(
            quorum, self.settings, cluster_id=CLUSTER_ID, clock=lambda: self.now_ms
        )
        controller.start(read_bootstrap(str(self.path)))

        async def whole_life() -> None:
            try:
                await life(controller)
            finally:
                await controller.close()

        try:
            asyncio.run(whole_life())
        finally:
            self.directory.close(clean=clean)
        return controller


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "log")
