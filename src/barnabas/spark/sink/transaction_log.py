"""The ledger that brokers keep: decisions are offsets of a group, transactions are Kafka's own.

Made in the process that runs a writer's `commit` or a task, and kept there for the next.
"""

import contextlib
import functools
import re
from collections.abc import Mapping, Sequence
from typing import Any

from barnabas.admin import (
    AdminClient,
    ConfigResource,
    NewTopic,
    TransactionDescription,
    TransactionState,
)
from barnabas.client.admin.model import ConsumerGroupTopicPartitions
from barnabas.client.errors import KafkaError, KafkaException, error_in
from barnabas.client.lru_cache import LruCache
from barnabas.client.producer import Producer
from barnabas.client.values import ConsumerGroupMetadata, PreparedTransaction, TopicPartition
from barnabas.spark.options_parser import OptionError
from barnabas.spark.sink import transactional_ids
from barnabas.spark.sink.commit_decision import PIECES, TOPIC, CommitDecision, decode, encode

REQUEST_TIMEOUT_S = 120.0
"""For what a cluster may need a while for, as when a coordinator moves."""

MAX_CACHED = 8
"""Queries whose connections a process keeps."""

SWEEP_S = 60.0
"""How often a driver looks for what attempts have left open that nobody has heard of."""

SWEEP_TIMEOUT_S = 10.0
"""Every broker is asked for it, and batches wait behind it."""

_administrators: LruCache[frozenset[tuple[str, str]], AdminClient] = LruCache(MAX_CACHED)


def admin_client(conf: Mapping[str, str]) -> AdminClient:
    """This process's, for a cluster."""
    return _administrators.get_or_create(frozenset(conf.items()), lambda: AdminClient(dict(conf)))


class BrokerDecisionReader:
    """What was decided for a prefix, and the ends of transactions: see `protocol.Decisions`."""

    def __init__(self, conf: Mapping[str, str], prefix: str) -> None:
        self._conf = conf
        self._prefix = prefix
        self._admin = admin_client(conf)

    def read(self) -> CommitDecision | None:
        asked = [TopicPartition(TOPIC, index) for index in range(PIECES)]
        request = [ConsumerGroupTopicPartitions(self._prefix, asked)]
        # Where a decision is about to be made it is waited for: it is a transaction, too.
        told = self._admin.list_consumer_group_offsets(
            request, require_stable=True, request_timeout=REQUEST_TIMEOUT_S
        )
        group: ConsumerGroupTopicPartitions = told[self._prefix].result()
        pieces = {
            each.partition: each.metadata or ""
            for each in group.topic_partitions or ()
            if each.offset >= 0
        }
        return decode(self._prefix, pieces) if pieces else None

    def complete(
        self, transactions: Sequence[PreparedTransaction], *, committed: bool
    ) -> list[PreparedTransaction]:
        if not transactions:
            return []
        asked = self._admin.complete_transactions(
            list(transactions), committed, request_timeout=REQUEST_TIMEOUT_S
        )
        lost = []
        for transaction, future in asked.items():
            try:
                future.result()
            except KafkaException as failure:
                if error_in(failure) != KafkaError.INVALID_TXN_STATE:
                    raise
                lost.append(transaction)
        return lost


class BrokerTransactionLog(BrokerDecisionReader):
    """The driver's: see `protocol.Ledger`."""

    def __init__(self, conf: Mapping[str, str], prefix: str) -> None:
        super().__init__(conf, prefix)
        self._producer: Producer | None = None
        self._swept_run = ""
        self._swept_s = 0.0

    def take_over(self) -> CommitDecision | None:
        if self._producer is None:
            _ensure_decision_topic(self._admin)
            own = {"transactional.id": self._prefix, "transaction.timeout.ms": "60000"}
            producer = Producer({**self._conf, **own})
            try:
                producer.init_transactions(REQUEST_TIMEOUT_S)
            except BaseException:
                producer.close(0)
                raise
            self._producer = producer
        return self.read()

    def decide(self, decision: CommitDecision) -> None:
        pieces = encode(self._prefix, decision)
        assert self._producer is not None, "who decides has taken over"
        offsets = [
            TopicPartition(TOPIC, index, decision.batch + 1, metadata=piece)
            for index, piece in enumerate(pieces)
        ]
        try:
            self._producer.begin_transaction()
            group = ConsumerGroupMetadata(self._prefix)
            self._producer.send_offsets_to_transaction(offsets, group, REQUEST_TIMEOUT_S)
            self._producer.commit_transaction(REQUEST_TIMEOUT_S)
        except BaseException:
            # Whether it was decided is not known. Who takes over next will.
            self.reset()
            raise

    def is_sweeping_due(self, run: str, now_s: float) -> bool:
        """At a run's first batch, and now and then; asked once for each."""
        if run == self._swept_run and now_s - self._swept_s < SWEEP_S:
            return False
        self._swept_run, self._swept_s = run, now_s
        return True

    def reset(self) -> None:
        """Take over anew before the next decision."""
        if self._producer is not None:
            producer, self._producer = self._producer, None
            producer.close(0)

    def forget(self) -> None:
        """Nobody will ask what was decided; a group that stays is seen by whoever lists them."""
        self.reset()
        with contextlib.suppress(KafkaException):
            asked = self._admin.delete_consumer_groups(
                [self._prefix], request_timeout=REQUEST_TIMEOUT_S
            )
            asked[self._prefix].result()

    def ended(self, transactions: Sequence[PreparedTransaction]) -> list[PreparedTransaction]:
        told = self._describe([each.transactional_id for each in transactions])
        return [it for it in transactions if not _is_open(it, told[it.transactional_id])]

    def open_transactions(self) -> list[PreparedTransaction]:
        asked = self._admin.list_transactions(
            states=[TransactionState.ONGOING], request_timeout=SWEEP_TIMEOUT_S
        )
        pattern = re.compile(transactional_ids.pattern(self._prefix))
        # Brokers before 4.1 know no pattern: what they list is looked through here.
        listed = [
            each.transactional_id
            for of_broker in asked.result().all().values()
            for each in of_broker
            if pattern.fullmatch(each.transactional_id)
        ]
        return [
            PreparedTransaction(name, found.producer_id, found.producer_epoch)
            for name, found in self._describe(listed).items()
            if found.state is TransactionState.ONGOING
        ]

    def fence(self, transactions: Sequence[PreparedTransaction]) -> None:
        asked = self._admin.fence_transactions(
            list(transactions), request_timeout=REQUEST_TIMEOUT_S
        )
        for future in asked.values():
            future.result()

    def _describe(self, transactional_ids: list[str]) -> dict[str, TransactionDescription]:
        if not transactional_ids:
            return {}
        told = self._admin.describe_transactions(
            transactional_ids, request_timeout=REQUEST_TIMEOUT_S
        )
        return {name: future.result() for name, future in told.items()}


def _is_open(it: PreparedTransaction, found: TransactionDescription) -> bool:
    is_its = (found.producer_id, found.producer_epoch) == (it.producer_id, it.epoch)
    return is_its and found.state is TransactionState.ONGOING


def _ensure_decision_topic(admin: AdminClient) -> None:
    """Offsets are committed for topics that exist; this one holds no records."""
    if admin.list_topics(TOPIC, REQUEST_TIMEOUT_S).topics[TOPIC].error is None:
        return  # who may not create topics can have it created by others
    try:
        admin.create_topics([NewTopic(TOPIC, PIECES)], request_timeout=REQUEST_TIMEOUT_S)[
            TOPIC
        ].result()
    except KafkaException as failure:
        if error_in(failure) != KafkaError.TOPIC_ALREADY_EXISTS:
            raise


def require_topic(conf: Mapping[str, str], topic: str) -> None:
    """OptionError unless the topic exists, or comes to be when it is written to."""
    _require_topic(admin_client(conf), topic)


@functools.lru_cache(1024)
def _require_topic(admin: AdminClient, topic: str) -> None:
    if admin.list_topics(topic, REQUEST_TIMEOUT_S).topics[topic].error is None:
        return
    if not _creates_topics(admin):
        raise OptionError(
            f"There is no topic {topic!r}: create it, as with "
            f"`kafka-topics --create --topic {topic}`, or write to another."
        )


def _creates_topics(admin: AdminClient) -> bool:
    (broker, *_) = admin.list_topics(timeout=REQUEST_TIMEOUT_S).brokers
    resource = ConfigResource(ConfigResource.Type.BROKER, str(broker))
    try:
        settings: Any = admin.describe_configs([resource])[resource].result()
    except KafkaException:
        return True  # not for this user to know: writing will tell
    return str(settings["auto.create.topics.enable"].value) == "true"


_ledgers: LruCache[tuple[frozenset[tuple[str, str]], str], BrokerTransactionLog] = LruCache(
    MAX_CACHED, on_evict=BrokerTransactionLog.reset
)


def transaction_log_for(conf: Mapping[str, str], prefix: str) -> BrokerTransactionLog:
    """This process's for a query."""
    return _ledgers.get_or_create(
        (frozenset(conf.items()), prefix), lambda: BrokerTransactionLog(conf, prefix)
    )
