"""The ledger that brokers keep: decisions are offsets of a group, transactions are Kafka's own.

Made in the process that runs a writer's `commit` or a task, and kept there for the next.
"""

import functools
import re
from collections.abc import Mapping, Sequence
from typing import Any

from barnabas.admin import (
    AdminClient,
    ConfigResource,
    NewTopic,
    TransactionState,
)
from barnabas.client.admin.model import ConsumerGroupTopicPartitions
from barnabas.client.errors import KafkaError, KafkaException, error_in
from barnabas.client.producer import Producer
from barnabas.client.values import ConsumerGroupMetadata, PreparedTransaction, TopicPartition
from barnabas.spark.kept import Kept
from barnabas.spark.naming import OptionError
from barnabas.spark.sink import names
from barnabas.spark.sink.decision import PIECES, TOPIC, Decision, decode, encode

PATIENCE_S = 120.0
"""For what a cluster may need a while for, as when a coordinator moves."""

MOST_KEPT = 8
"""Queries whose connections a process keeps."""


_administrators: Kept[frozenset[tuple[str, str]], AdminClient] = Kept(MOST_KEPT)


def administrator(conf: Mapping[str, str]) -> AdminClient:
    """This process's, for a cluster."""
    return _administrators.get(frozenset(conf.items()), lambda: AdminClient(dict(conf)))


class BrokerDecisions:
    """What was decided for a prefix, and the ends of transactions: see `protocol.Decisions`."""

    def __init__(self, conf: Mapping[str, str], prefix: str) -> None:
        self._conf = conf
        self._prefix = prefix
        self._admin = administrator(conf)

    def read(self) -> Decision | None:
        asked = [TopicPartition(TOPIC, index) for index in range(PIECES)]
        request = [ConsumerGroupTopicPartitions(self._prefix, asked)]
        # Where a decision is about to be made it is waited for: it is a transaction, too.
        told = self._admin.list_consumer_group_offsets(
            request, require_stable=True, request_timeout=PATIENCE_S
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
            list(transactions), committed, request_timeout=PATIENCE_S
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


class BrokerLedger(BrokerDecisions):
    """The driver's: see `protocol.Ledger`."""

    def __init__(self, conf: Mapping[str, str], prefix: str) -> None:
        super().__init__(conf, prefix)
        self._producer: Producer | None = None

    def take_over(self) -> Decision | None:
        if self._producer is None:
            own = {"transactional.id": self._prefix, "transaction.timeout.ms": "60000"}
            self._producer = Producer({**self._conf, **own})
            self._producer.init_transactions(PATIENCE_S)
        return self.read()

    def decide(self, decision: Decision) -> None:
        pieces = encode(self._prefix, decision)
        assert self._producer is not None, "who decides has taken over"
        ensure_decision_topic(self._admin)
        offsets = [
            TopicPartition(TOPIC, index, decision.batch + 1, metadata=piece)
            for index, piece in enumerate(pieces)
        ]
        try:
            self._producer.begin_transaction()
            group = ConsumerGroupMetadata(self._prefix)
            self._producer.send_offsets_to_transaction(offsets, group, PATIENCE_S)
            self._producer.commit_transaction(PATIENCE_S)
        except BaseException:
            # Whether it was decided is not known. Who takes over next will.
            self.hand_over()
            raise

    def hand_over(self) -> None:
        """Take over anew before the next decision."""
        if self._producer is not None:
            producer, self._producer = self._producer, None
            producer.close(0)

    def ended(self, transactions: Sequence[PreparedTransaction]) -> list[PreparedTransaction]:
        asked = {each.transactional_id: each for each in transactions}
        told = self._admin.describe_transactions(list(asked), request_timeout=PATIENCE_S)
        over = []
        for transactional_id, it in asked.items():
            found = told[transactional_id].result()
            now = (found.producer_id, found.producer_epoch)
            if found.state is not TransactionState.ONGOING or now != (it.producer_id, it.epoch):
                over.append(it)
        return over

    def open_ids(self, longer_than_ms: int) -> list[str]:
        pattern = names.pattern(self._prefix)
        asked = self._admin.list_transactions(
            states=[TransactionState.ONGOING],
            duration_ms=longer_than_ms or -1,
            request_timeout=PATIENCE_S,
        )
        # Brokers before 4.1 know no pattern: what they list is looked through here.
        return [
            each.transactional_id
            for listed in asked.result().all().values()
            for each in listed
            if re.fullmatch(pattern, each.transactional_id)
        ]

    def fence(self, transactional_ids: Sequence[str]) -> None:
        asked = self._admin.fence_producers(list(transactional_ids), request_timeout=PATIENCE_S)
        for future in asked.values():
            future.result()


@functools.lru_cache(MOST_KEPT)
def ensure_decision_topic(admin: AdminClient) -> None:
    """Offsets are committed for topics that exist; this one holds no records."""
    try:
        admin.create_topics([NewTopic(TOPIC, PIECES)], request_timeout=PATIENCE_S)[TOPIC].result()
    except KafkaException as failure:
        if error_in(failure) != KafkaError.TOPIC_ALREADY_EXISTS:
            raise


def require_topic(conf: Mapping[str, str], topic: str) -> None:
    """OptionError unless the topic exists, or comes to be when it is written to."""
    _require_topic(administrator(conf), topic)


@functools.lru_cache(1024)
def _require_topic(admin: AdminClient, topic: str) -> None:
    if admin.list_topics(topic, PATIENCE_S).topics[topic].error is None:
        return
    if not _creates_topics(admin):
        raise OptionError(
            f"There is no topic {topic!r}: create it, as with "
            f"`kafka-topics --create --topic {topic}`, or write to another."
        )


def _creates_topics(admin: AdminClient) -> bool:
    (broker, *_) = admin.list_topics(timeout=PATIENCE_S).brokers
    resource = ConfigResource(ConfigResource.Type.BROKER, str(broker))
    try:
        settings: Any = admin.describe_configs([resource])[resource].result()
    except KafkaException:
        return True  # not for this user to know: writing will tell
    return str(settings["auto.create.topics.enable"].value) == "true"


_ledgers: Kept[tuple[frozenset[tuple[str, str]], str], BrokerLedger] = Kept(
    MOST_KEPT, let_go=BrokerLedger.hand_over
)


def ledger_for(conf: Mapping[str, str], prefix: str) -> BrokerLedger:
    """This process's for a query."""
    return _ledgers.get((frozenset(conf.items()), prefix), lambda: BrokerLedger(conf, prefix))
