"""Commits what items have done. Its functions block; they are called in threads of the driver."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterable, Mapping, Sequence

from barnabas.client.admin.model import ConsumerGroupTopicPartitions
from barnabas.client.errors import KafkaError, KafkaException, error_in
from barnabas.client.producer import Producer
from barnabas.client.values import ConsumerGroupMetadata, PreparedTransaction, TopicPartition
from barnabas.connect.connector import SinkConnector, WriteReport
from barnabas.connect.connector import TopicPartition as PartitionKey
from barnabas.spark.sink import protocol
from barnabas.spark.sink.commit_decision import TaskTransaction
from barnabas.spark.sink.protocol import TaskReport, WriteJob
from barnabas.spark.sink.transaction_log import (
    REQUEST_TIMEOUT_S,
    BrokerTransactionLog,
    admin_client,
)

log = logging.getLogger("barnabas.connect")

TRANSACTION_TIMEOUT_MS = 900_000
"""Of the transaction that is open while a sink commits: the longest that brokers allow."""


class SinkCommitter:
    """Commits the offsets of a sink's group, in transactions.

    `fence` makes every commit of an earlier instance fail.
    """

    def __init__(
        self,
        connector: SinkConnector,
        group: str,
        transactional_id: str,
        producer: Mapping[str, str],
        admin: Mapping[str, str],
    ) -> None:
        self._connector = connector
        self._group = group
        self._admin = admin
        self._conf = {
            **producer,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": str(TRANSACTION_TIMEOUT_MS),
        }
        self._producer: Producer | None = None

    def fence(self) -> None:
        self.close()
        producer = Producer(dict(self._conf))
        try:
            producer.init_transactions(REQUEST_TIMEOUT_S)
        except BaseException:
            producer.close(0)
            raise
        self._producer = producer

    def committed(self, partitions: Sequence[PartitionKey]) -> dict[PartitionKey, int]:
        """Returns the positions that are kept with the data, or else the group's offsets: those of
        a Kafka worker, for example, that wrote the partition before."""
        if not partitions:
            return {}
        kept = self._connector.committed_positions(partitions) or {}
        others = [key for key in partitions if key not in kept]
        if not others:
            return dict(kept)
        return {**group_offsets(self._admin, self._group, others), **kept}

    def commit(self, reports: Sequence[WriteReport]) -> None:
        """After an error, only `fence` and `committed` tell what was committed."""
        assert self._producer is not None, "fence() comes before commit()"
        offsets = [
            TopicPartition(*key, position)
            for report in reports
            for key, position in report.positions.items()
        ]
        producer = self._producer
        producer.begin_transaction()
        try:
            # An instance that was fenced fails here, before the connector commits anything.
            group = ConsumerGroupMetadata(self._group)
            producer.send_offsets_to_transaction(offsets, group, REQUEST_TIMEOUT_S)
            self._connector.commit(reports)
            producer.commit_transaction(REQUEST_TIMEOUT_S)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        if self._producer is not None:
            producer, self._producer = self._producer, None
            producer.close(0)


def group_offsets(
    admin: Mapping[str, str], group: str, partitions: Sequence[PartitionKey] | None
) -> dict[PartitionKey, int]:
    """Returns the committed offsets of some or all partitions. Waits for open transactions."""
    wanted = None if partitions is None else [TopicPartition(*key) for key in partitions]
    futures = admin_client(admin).list_consumer_group_offsets(
        [ConsumerGroupTopicPartitions(group, wanted)],
        require_stable=True,
        request_timeout=REQUEST_TIMEOUT_S,
    )
    found: ConsumerGroupTopicPartitions = futures[group].result()
    return {
        (each.topic, each.partition): each.offset
        for each in found.topic_partitions or ()
        if each.offset >= 0
    }


class SourceCommitter:
    """Decides on the transactions of a source's tasks, which have their rows and positions.

    Positions are in the transaction of their rows. So a transaction that times out after its
    decision, because no driver committed it, is no loss: its rows are read again.
    """

    def __init__(
        self, group_id: str, connector: str, run: str, producer: Mapping[str, str]
    ) -> None:
        """`run` is unique for each process of a driver."""
        self._prefix = prefix = f"connect-{group_id}-source-{connector}"
        self._kafka_prefix = f"{group_id}-{connector}"
        self._run = run
        self._conf = producer
        self._log = BrokerTransactionLog(producer, prefix)
        self._last_batch = -1
        self.decided: frozenset[str] = frozenset()
        """The transactional ids of the last decision. They are not used again before the next, so
        that its outcome can be found out."""

    def recover(self) -> None:
        """Fences other drivers, completes the last decision and aborts everything else.

        Afterwards, the positions in the offset topic are those of the rows that are committed.
        """
        self._log.reset()
        last = self._log.fence_other_drivers()
        self._fence_kafka_workers()
        self.abort_orphans()
        if last is not None:
            self._last_batch = max(self._last_batch, last.batch)
            self.decided = _ids(last.transactions)
            for entry in last.transactions:
                self._complete(entry.prepared)

    def next_job(self) -> WriteJob:
        self._last_batch += 1
        return WriteJob(self._prefix, self._run, self._last_batch, None)

    def commit(self, job: WriteJob, reports: Sequence[TaskReport]) -> None:
        """After an error, `recover` has to follow."""
        try:
            is_decided = protocol.commit(self._log, job, reports)
        except KafkaException as error:
            if error_in(error) == KafkaError._FENCED:
                self._abandon(reports)
            raise
        if is_decided:
            self.decided = _ids(filter(None, (report.transaction for report in reports)))
        is_due = is_decided and self._log.is_orphan_check_due(job.run, time.monotonic())
        if is_due or any(report.attempt for report in reports):
            self.abort_orphans()

    def close(self) -> None:
        self._log.reset()

    def _complete(self, prepared: PreparedTransaction) -> None:
        """Commits a transaction if it is still open. It matters only that it is not open any more:
        if it was aborted, its position was too."""
        try:
            lost = self._log.complete([prepared], committed=True)
        except KafkaException as error:
            if error_in(error) != KafkaError.TRANSACTIONAL_ID_NOT_FOUND:
                raise
            return  # its id was used again, or has expired long ago
        if lost:
            log.warning("%s: rows timed out, and are read again: %s", self._prefix, prepared)

    def _abandon(self, reports: Sequence[TaskReport]) -> None:
        """Another driver has taken over, so this one decides nothing more: readers must not wait
        for its transactions."""
        last = self._log.read()
        decided = set() if last is None else {entry.prepared for entry in last.transactions}
        written = [report.transaction.prepared for report in reports if report.transaction]
        self._log.complete([each for each in written if each not in decided], committed=False)

    def _fence_kafka_workers(self) -> None:
        """Fences the tasks of a worker of Kafka that has run the connector."""
        admin = admin_client(self._conf)
        found = admin.list_transactions(request_timeout=REQUEST_TIMEOUT_S).result().all()
        pattern = re.compile(rf"{re.escape(self._kafka_prefix)}-\d+")
        ids = [
            each.transactional_id
            for listings in found.values()
            for each in listings
            if pattern.fullmatch(each.transactional_id)
        ]
        if ids:
            futures = admin.fence_producers(ids, request_timeout=REQUEST_TIMEOUT_S)
            for future in futures.values():
                future.result()

    def abort_orphans(self) -> None:
        """Ends the transactions of tasks that died: they are undecided, and readers wait for them.

        No item may be in flight.
        """
        try:
            orphans = protocol.abort_orphans(self._log)
        except KafkaException as error:
            log.warning("%s: failed tasks may have open transactions: %s", self._prefix, error)
            return
        if orphans:
            log.info("%s: aborted %d transactions of failed tasks", self._prefix, len(orphans))


def _ids(transactions: Iterable[TaskTransaction]) -> frozenset[str]:
    return frozenset(entry.prepared.transactional_id for entry in transactions)
