"""The transaction log on brokers: decisions are offsets of a group, transactions are Kafka's.

The process that runs a writer's `commit`, or a task, creates it and caches it for the next call.
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
from barnabas.spark.sink.commit_decision import MAX_CHUNKS, TOPIC, CommitDecision, decode, encode

REQUEST_TIMEOUT_S = 120.0
"""For requests that may take a while, for example when a coordinator moves."""

MAX_CACHED = 8
"""The number of queries whose connections a process caches."""

ORPHAN_CHECK_INTERVAL_S = 60.0
"""How often a driver looks for open transactions of attempts that reported nothing."""

ORPHAN_CHECK_TIMEOUT_S = 10.0
"""Short: the request goes to every broker, and the next batch waits for it."""

_admin_clients: LruCache[frozenset[tuple[str, str]], AdminClient] = LruCache(MAX_CACHED)


def admin_client(conf: Mapping[str, str]) -> AdminClient:
    """Returns this process's client of a cluster."""
    return _admin_clients.get_or_create(frozenset(conf.items()), lambda: AdminClient(dict(conf)))


class BrokerDecisionReader:
    """Implements `protocol.DecisionReader` for one prefix."""

    def __init__(self, conf: Mapping[str, str], prefix: str) -> None:
        self._conf = conf
        self._prefix = prefix
        self._admin = admin_client(conf)

    def read(self) -> CommitDecision | None:
        partitions = [TopicPartition(TOPIC, index) for index in range(MAX_CHUNKS)]
        request = [ConsumerGroupTopicPartitions(self._prefix, partitions)]
        # Waits for a decision in flight, which is a transaction, too.
        futures = self._admin.list_consumer_group_offsets(
            request, require_stable=True, request_timeout=REQUEST_TIMEOUT_S
        )
        group: ConsumerGroupTopicPartitions = futures[self._prefix].result()
        chunks = {
            partition.partition: partition.metadata or ""
            for partition in group.topic_partitions or ()
            if partition.offset >= 0
        }
        return decode(self._prefix, chunks) if chunks else None

    def complete(
        self, transactions: Sequence[PreparedTransaction], *, committed: bool
    ) -> list[PreparedTransaction]:
        if not transactions:
            return []
        futures = self._admin.complete_transactions(
            list(transactions), committed, request_timeout=REQUEST_TIMEOUT_S
        )
        lost = []
        for transaction, future in futures.items():
            try:
                future.result()
            except KafkaException as error:
                if error_in(error) != KafkaError.INVALID_TXN_STATE:
                    raise
                lost.append(transaction)
        return lost


class BrokerTransactionLog(BrokerDecisionReader):
    """Implements `protocol.TransactionLog`, for the driver."""

    def __init__(self, conf: Mapping[str, str], prefix: str) -> None:
        super().__init__(conf, prefix)
        self._producer: Producer | None = None
        self._checked_run = ""
        self._checked_s = 0.0

    def fence_other_drivers(self) -> CommitDecision | None:
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
        chunks = encode(self._prefix, decision)
        assert self._producer is not None, "fence_other_drivers() comes before decide()"
        offsets = [
            TopicPartition(TOPIC, index, decision.batch + 1, metadata=chunk)
            for index, chunk in enumerate(chunks)
        ]
        try:
            self._producer.begin_transaction()
            group = ConsumerGroupMetadata(self._prefix)
            self._producer.send_offsets_to_transaction(offsets, group, REQUEST_TIMEOUT_S)
            self._producer.commit_transaction(REQUEST_TIMEOUT_S)
        except BaseException:
            # The outcome is unknown. The driver that fences next reads it.
            self.reset()
            raise

    def is_orphan_check_due(self, run: str, now_s: float) -> bool:
        """Whether to look for orphans: at a run's first batch, and then once an interval."""
        if run == self._checked_run and now_s - self._checked_s < ORPHAN_CHECK_INTERVAL_S:
            return False
        self._checked_run, self._checked_s = run, now_s
        return True

    def reset(self) -> None:
        """Close the producer, so that the next decision has to fence other drivers first."""
        if self._producer is not None:
            producer, self._producer = self._producer, None
            producer.close(0)

    def delete_group(self) -> None:
        """Delete the group of a save that cannot be repeated, so that it is not listed."""
        self.reset()
        with contextlib.suppress(KafkaException):
            futures = self._admin.delete_consumer_groups(
                [self._prefix], request_timeout=REQUEST_TIMEOUT_S
            )
            futures[self._prefix].result()

    def find_ended(self, transactions: Sequence[PreparedTransaction]) -> list[PreparedTransaction]:
        descriptions = self._describe(
            [transaction.transactional_id for transaction in transactions]
        )
        return [
            transaction
            for transaction in transactions
            if not _is_open(transaction, descriptions[transaction.transactional_id])
        ]

    def open_transactions(self) -> list[PreparedTransaction]:
        future = self._admin.list_transactions(
            states=[TransactionState.ONGOING], request_timeout=ORPHAN_CHECK_TIMEOUT_S
        )
        pattern = re.compile(transactional_ids.task_id_pattern(self._prefix))
        # Brokers before 4.1 do not filter by pattern, so the filter is here.
        ids = [
            listing.transactional_id
            for listings in future.result().all().values()
            for listing in listings
            if pattern.fullmatch(listing.transactional_id)
        ]
        return [
            PreparedTransaction(
                transactional_id, description.producer_id, description.producer_epoch
            )
            for transactional_id, description in self._describe(ids).items()
            if description.state is TransactionState.ONGOING
        ]

    def fence(self, transactions: Sequence[PreparedTransaction]) -> None:
        futures = self._admin.fence_transactions(
            list(transactions), request_timeout=REQUEST_TIMEOUT_S
        )
        for future in futures.values():
            future.result()

    def _describe(self, transactional_ids: list[str]) -> dict[str, TransactionDescription]:
        if not transactional_ids:
            return {}
        futures = self._admin.describe_transactions(
            transactional_ids, request_timeout=REQUEST_TIMEOUT_S
        )
        return {name: future.result() for name, future in futures.items()}


def _is_open(transaction: PreparedTransaction, description: TransactionDescription) -> bool:
    is_same = (description.producer_id, description.producer_epoch) == (
        transaction.producer_id,
        transaction.epoch,
    )
    return is_same and description.state is TransactionState.ONGOING


def _ensure_decision_topic(admin: AdminClient) -> None:
    """Create the topic that decisions are committed for; it has no records."""
    if admin.list_topics(TOPIC, REQUEST_TIMEOUT_S).topics[TOPIC].error is None:
        return  # it exists, possibly created by an administrator
    try:
        admin.create_topics([NewTopic(TOPIC, MAX_CHUNKS)], request_timeout=REQUEST_TIMEOUT_S)[
            TOPIC
        ].result()
    except KafkaException as error:
        if error_in(error) != KafkaError.TOPIC_ALREADY_EXISTS:
            raise


def require_topic(conf: Mapping[str, str], topic: str) -> None:
    """Raises OptionError unless the topic exists or is created on the first write."""
    _require_topic(admin_client(conf), topic)


@functools.lru_cache(1024)
def _require_topic(admin: AdminClient, topic: str) -> None:
    if admin.list_topics(topic, REQUEST_TIMEOUT_S).topics[topic].error is None:
        return
    if not _is_auto_create_enabled(admin):
        raise OptionError(
            f"There is no topic {topic!r}: create it, as with "
            f"`kafka-topics --create --topic {topic}`, or write to another."
        )


def _is_auto_create_enabled(admin: AdminClient) -> bool:
    (broker, *_) = admin.list_topics(timeout=REQUEST_TIMEOUT_S).brokers
    resource = ConfigResource(ConfigResource.Type.BROKER, str(broker))
    try:
        settings: Any = admin.describe_configs([resource])[resource].result()
    except KafkaException:
        return True  # not authorized to know; the write fails if the topic is not created
    return str(settings["auto.create.topics.enable"].value) == "true"


_transaction_logs: LruCache[tuple[frozenset[tuple[str, str]], str], BrokerTransactionLog] = (
    LruCache(MAX_CACHED, on_evict=BrokerTransactionLog.reset)
)


def transaction_log_for(conf: Mapping[str, str], prefix: str) -> BrokerTransactionLog:
    """Returns this process's transaction log for a query."""
    return _transaction_logs.get_or_create(
        (frozenset(conf.items()), prefix), lambda: BrokerTransactionLog(conf, prefix)
    )
