"""A controller on a directory of its own, and an image to decide on."""

from typing import Any

import pytest

from barnabas.config import BrokerSettings
from barnabas.config.resolver import ConfigResolver
from barnabas.controller.active_controller import load_decider
from barnabas.controller.context import (
    ControllerContext,
    ControllerDecision,
    EffectiveTopicConfigs,
    MutationQuota,
    Requester,
)
from barnabas.controller.heartbeat_tracker import BrokerHeartbeatTracker
from barnabas.metadata import features
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.snapshot import broker_record
from barnabas.metadata.states import BrokerRegistration
from barnabas.security.principal import ANONYMOUS
from barnabas.wire.apis import api
from barnabas.wire.error_response import error_response
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.metadata_records import FeatureLevelRecord
from barnabas.wire.schema import Message
from barnabas.wire.uuid import random_uuid

CLUSTER_ID = "barnabas-test-cluster0"
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


def broker(broker_id: int, **changes: Any) -> BrokerRegistration:
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
    return BrokerRegistration(**{**values, **changes})


class World:
    """An image, and decisions that happen in it as soon as they are made."""

    def __init__(self, *brokers: BrokerRegistration, **overrides: str) -> None:
        self.image = MetadataImage()
        self.settings = settings(**overrides)
        self.heartbeats = BrokerHeartbeatTracker(session_timeout_ms=9000)
        self.now_ms = NOW_MS
        self.offset = 1000
        self.turn = 0
        self.voter_ids = [1]
        self.principal = ANONYMOUS
        self.mutation_quota: MutationQuota | None = None
        levels = features.default_levels()
        del levels[features.KRAFT_VERSION]
        self.apply(
            *(FeatureLevelRecord(name=name, feature_level=level) for name, level in levels.items()),
            *(broker_record(item) for item in brokers),
        )

    def apply(self, *records: Message) -> None:
        for record in records:
            self.image.apply(record, MetadataDelta())
            self.offset += 1

    @property
    def context(self) -> ControllerContext:
        resolver = ConfigResolver(self.settings, self.image.configs)
        return ControllerContext(
            now_ms=self.now_ms,
            wall_clock_ms=self.now_ms,
            next_offset=self.offset,
            cluster_id=CLUSTER_ID,
            controller_id=1,
            voter_ids=self.voter_ids,
            kraft_version=1,
            resolver=resolver,
            topic_configs=EffectiveTopicConfigs(resolver),
            heartbeats=self.heartbeats,
            random_uuid=random_uuid,
            random_below=lambda count: self.turn % count,
            requester=Requester(self.principal, self.mutation_quota),
        )

    def decide(self, request: Message) -> ControllerDecision:
        decision = load_decider(request.API_KEY)(request, self.image, self.context)
        for contact in decision.effects:
            self.heartbeats.touch(contact)
        self.apply(*decision.records)
        return decision


def error_response_to(request: Message, error: KafkaError) -> Any:
    """The response that the server derives from a request which failed as a whole."""
    newest = api(request.API_KEY).stable_versions.max
    return error_response(request, newest, error.code, error.message)


@pytest.fixture
def one_broker() -> World:
    return World(broker(1))
