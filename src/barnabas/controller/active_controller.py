"""The active controller of one epoch: its speculative image and its sessions of brokers.

The functions that decide on the APIs are imported at their first request.
"""

import random
from collections import deque
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import Any, Final, Protocol

from barnabas.config.resolver import ConfigResolver
from barnabas.config.settings import BrokerSettings
from barnabas.controller import broker_lifecycle
from barnabas.controller.change_log import MetadataChanges
from barnabas.controller.context import (
    NODE,
    ControllerContext,
    ControllerDecision,
    EffectiveTopicConfigs,
    Requester,
)
from barnabas.controller.delegation_tokens import ExpiredTokenRemover
from barnabas.controller.heartbeat_tracker import BrokerHeartbeatTracker
from barnabas.controller.leader_balancer import LeaderBalancer
from barnabas.controller.update_features import min_isr_records
from barnabas.metadata import features
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.frames import decode_record, encode_record, record_version
from barnabas.metadata.image import MetadataImage
from barnabas.raft import VoterSet
from barnabas.wire.apis import ApiKey
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    NoOpRecord,
)
from barnabas.wire.schema import Message
from barnabas.wire.uuid import random_uuid

_MAX_BATCH_BYTES: Final = 8 * 1024 * 1024


class ControllerLog(Protocol):
    """What the controller needs of the quorum."""

    @property
    def end_offset(self) -> int: ...

    @property
    def voters(self) -> VoterSet: ...

    @property
    def kraft_version(self) -> int: ...

    def append(self, frames: Sequence[bytes], epoch: int, now_ms: int) -> int:
        """Appends one batch. Returns the offset of its last record.

        Raises KafkaError NOT_CONTROLLER unless this node leads `epoch`.
        """


Decider = Callable[[Any, MetadataImage, ControllerContext], ControllerDecision]
"""The interface of these functions; see `barnabas.controller.context`."""


class ActiveController:
    """Decides on requests in one epoch. Everything in it ends with the leadership.

    The speculative image has all decisions applied, also those that are not committed yet.
    """

    def __init__(
        self,
        epoch: int,
        log: ControllerLog,
        speculative_image: MetadataImage,
        settings: BrokerSettings,
        *,
        cluster_id: str,
        clock: Callable[[], int],
        monotonic: Callable[[], int],
        random: random.Random,
    ) -> None:
        self.epoch = epoch
        self.last_offset = -1
        """The offset of the last record that was appended in this epoch."""
        self.has_failed = False
        """Whether an append failed: the speculative image may then differ from the log."""
        self._log = log
        self._speculative_image = speculative_image
        self._settings = settings
        self._cluster_id = cluster_id
        self._clock = clock
        self._monotonic = monotonic
        self._random = random
        self._resolver = ConfigResolver(settings, speculative_image.configs)
        self._topic_configs = EffectiveTopicConfigs(self._resolver)
        self._heartbeats = BrokerHeartbeatTracker(settings["broker.session.timeout.ms"])
        self._idle_interval_ms: int = settings["metadata.max.idle.interval.ms"]
        self._last_append_ms = monotonic()
        self._balancer = LeaderBalancer(self._resolver, self._last_append_ms)
        self._token_remover = ExpiredTokenRemover(self._resolver, self._last_append_ms)
        self._unlogged: deque[tuple[int, MetadataChanges]] = deque()  # by their last offset

    def activate(self, bootstrap: Sequence[bytes], *, in_transaction: bool) -> None:
        """Appends the first records of the epoch, and begins the sessions of the brokers."""
        own_id = self._settings.node_id
        self._heartbeats.begin_sessions(
            self._speculative_image.brokers.values(), own_id, self._monotonic()
        )
        self._append(
            activation_records(self._speculative_image, bootstrap, self._context(), in_transaction)
        )

    def decide(self, decider: Decider, request: Message, requester: Requester) -> Message:
        """Decides on a request. Its response holds once `last_offset` is committed."""
        decision = decider(request, self._speculative_image, self._context(requester))
        self._change(decision.records)
        for contact in decision.effects:
            self._heartbeats.touch(contact)
        return decision.response

    def on_published(self, offset: int) -> None:
        """Logs the changes up to `offset`, which are committed now."""
        while self._unlogged and self._unlogged[0][0] <= offset:
            _, changes = self._unlogged.popleft()
            changes.log()

    def run_periodic_tasks(self) -> None:
        now_ms = self._monotonic()
        for broker_id in self._heartbeats.expire_sessions(now_ms):
            self.fence_broker(broker_id)
        self._change(self._balancer.due_elections(self._speculative_image, self._context(), now_ms))
        self._change(self._token_remover.due_removals(self._speculative_image, self._context()))
        if 0 < self._idle_interval_ms <= now_ms - self._last_append_ms:
            self._append([NoOpRecord()])

    def fence_broker(self, broker_id: int) -> None:
        """Fences a broker unless it is fenced, with all its partitions in one batch."""
        broker = self._speculative_image.brokers.get(broker_id)
        if broker is not None and not broker.fenced:
            self._change(broker_lifecycle.fence(broker, self._speculative_image, self._context()))

    def _context(self, requester: Requester = NODE) -> ControllerContext:
        return ControllerContext(
            now_ms=self._monotonic(),
            wall_clock_ms=self._clock(),
            next_offset=self._log.end_offset,
            cluster_id=self._cluster_id,
            controller_id=self._settings.node_id,
            voter_ids=self._log.voters.ids(),
            kraft_version=self._log.kraft_version,
            resolver=self._resolver,
            topic_configs=self._topic_configs,
            heartbeats=self._heartbeats,
            random_uuid=lambda: random_uuid(self._random.randbytes),
            random_below=self._random.randrange,
            requester=requester,
        )

    def _change(self, records: Sequence[Message]) -> None:
        """Appends the records of a decision. What they change is logged when it is committed."""
        if not records:
            return
        changes = MetadataChanges.of(records, self._speculative_image)
        self._append(records)
        self._unlogged.append((self.last_offset, changes))

    def _append(self, records: Sequence[Message]) -> None:
        """Appends records to the log and applies them to the speculative image."""
        if not records:
            return
        level = self._speculative_image.metadata_level
        frames = [encode_record(record, record_version(record, level)) for record in records]
        self._last_append_ms = self._monotonic()
        written_ms = self._clock()
        try:
            for start, end in _batch_ranges(frames):
                self.last_offset = self._log.append(frames[start:end], self.epoch, written_ms)
        except OSError as error:
            self.has_failed = True
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR, f"The metadata log cannot be written ({error})."
            ) from error
        except KafkaError:
            self.has_failed = True
            raise
        delta = MetadataDelta()
        for record in records:
            self._speculative_image.apply(record, delta)
        if delta.configs_changed:
            self._resolver.invalidate(delta.configs_changed)
            self._balancer.on_configs_changed()


def _batch_ranges(frames: Sequence[bytes]) -> list[tuple[int, int]]:
    """Returns the ranges of frames that form batches of a bounded size, usually one."""
    ranges = []
    start = size_bytes = 0
    for number, frame in enumerate(frames):
        size_bytes += len(frame)
        if size_bytes > _MAX_BATCH_BYTES and number > start:
            ranges.append((start, number))
            start, size_bytes = number, len(frame)
    ranges.append((start, len(frames)))
    return ranges


def activation_records(
    image: MetadataImage,
    bootstrap: Sequence[bytes],
    context: ControllerContext,
    in_transaction: bool,
) -> list[Message]:
    """Returns the features of a new cluster, and the abort of a transaction that is open."""
    records: list[Message] = []
    if in_transaction:
        reason = "the controller that began it is no longer active"
        records.append(AbortTransactionRecord(reason=reason))
    if not image.features:
        records += _bootstrap_records(bootstrap, image, context)
    return records


def _bootstrap_records(
    bootstrap: Sequence[bytes], image: MetadataImage, context: ControllerContext
) -> list[Message]:
    records = [decode_record(frame) for frame in bootstrap] or _default_features()
    levels = {
        record.name: record.feature_level
        for record in records
        if isinstance(record, FeatureLevelRecord)
    }
    if levels.get(features.ELIGIBLE_LEADER_REPLICAS_VERSION):
        records += min_isr_records(image, context)
    if levels.get(features.METADATA_VERSION, 0) < features.METADATA_TRANSACTIONS_FROM:
        return records
    return [BeginTransactionRecord(name="Bootstrap records"), *records, EndTransactionRecord()]


def _default_features() -> list[Message]:
    """Returns the features for a directory that was formatted without bootstrap records."""
    levels = features.default_levels()
    del levels[features.KRAFT_VERSION]
    return [
        FeatureLevelRecord(name=name, feature_level=level)
        for name, level in levels.items()
        if level
    ]


DECIDERS: Final = {
    ApiKey.CREATE_TOPICS: "create_topics.decide",
    ApiKey.DELETE_TOPICS: "delete_topics.decide",
    ApiKey.CREATE_ACLS: "create_acls.decide",
    ApiKey.DELETE_ACLS: "delete_acls.decide",
    ApiKey.CREATE_PARTITIONS: "create_partitions.decide",
    ApiKey.ALTER_CONFIGS: "config_changes.decide_alter_configs",
    ApiKey.INCREMENTAL_ALTER_CONFIGS: "config_changes.decide_incremental_alter_configs",
    ApiKey.CREATE_DELEGATION_TOKEN: "delegation_tokens.decide_create",
    ApiKey.RENEW_DELEGATION_TOKEN: "delegation_tokens.decide_renew",
    ApiKey.EXPIRE_DELEGATION_TOKEN: "delegation_tokens.decide_expire",
    ApiKey.ELECT_LEADERS: "elect_leaders.decide",
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: "partition_reassignments.decide_alter_reassignments",
    ApiKey.LIST_PARTITION_REASSIGNMENTS: "partition_reassignments.decide_list_reassignments",
    ApiKey.ALTER_CLIENT_QUOTAS: "alter_client_quotas.decide",
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: "alter_user_scram_credentials.decide",
    ApiKey.UPDATE_FEATURES: "update_features.decide",
    ApiKey.BROKER_REGISTRATION: "broker_registration.decide_broker_registration",
    ApiKey.BROKER_HEARTBEAT: "broker_heartbeat.decide",
    ApiKey.UNREGISTER_BROKER: "broker_registration.decide_unregister_broker",
    ApiKey.ALLOCATE_PRODUCER_IDS: "allocate_producer_ids.decide",
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: "assign_replicas_to_dirs.decide",
    ApiKey.ALTER_PARTITION: "alter_partition.decide",
    ApiKey.CONTROLLER_REGISTRATION: "broker_registration.decide_controller_registration",
}


@cache
def load_decider(api_key: int) -> Decider:
    """Returns the function for an API. Raises KeyError if the controller does not decide on it."""
    module, _, function = DECIDERS[ApiKey(api_key)].partition(".")
    decider: Decider = getattr(import_module(f"barnabas.controller.{module}"), function)
    return decider
