"""The steps of the protocol on a real broker, one by one, without Spark."""

import uuid
from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType
from tests.conformance.brokers import PeerBroker
from tests.spark.sink.topics import Topic

from barnabas import KafkaError, KafkaException
from barnabas.admin import AdminClient, FeatureUpdate, TransactionState, UpgradeType
from barnabas.client.lru_cache import LruCache
from barnabas.client.values import PreparedTransaction
from barnabas.spark.sink import producer_pool, protocol
from barnabas.spark.sink.commit_decision import TOPIC as DECISIONS
from barnabas.spark.sink.commit_decision import CommitDecision, TaskTransaction
from barnabas.spark.sink.options import SinkOptions, read_options
from barnabas.spark.sink.protocol import ConflictingWriterError, LostRowsError, TaskReport, WriteJob
from barnabas.spark.sink.row_encoder import resolve_layout
from barnabas.spark.sink.task import write_exactly_once
from barnabas.spark.sink.transaction_log import BrokerTransactionLog
from barnabas.spark.sink.writer import TaskMessage, stream_writer
from barnabas.testing import Broker

SCHEMA = StructType().add("value", "string")


@pytest.fixture(
    scope="module",
    params=["transactions V2", "transactions V1", pytest.param("kafka", marks=pytest.mark.peer)],
)
def bootstrap_servers(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """A broker with transactions V1 or V2, and the real Kafka."""
    if request.param == "kafka":
        kafka = PeerBroker(tmp_path_factory.mktemp("kafka"))
        kafka.start()
        yield kafka.bootstrap
        kafka.stop()
        return
    with Broker() as running:
        if request.param == "transactions V1":
            with AdminClient({"bootstrap.servers": running.bootstrap_servers}) as admin:
                older = FeatureUpdate(1, UpgradeType.SAFE_DOWNGRADE)
                changed = admin.update_features({"transaction.version": older})
                changed["transaction.version"].result(30)
        yield running.bootstrap_servers


@pytest.fixture
def topic(bootstrap_servers: str) -> Topic:
    return Topic.create(bootstrap_servers)


class Query:
    """The calls of a streaming query to the sink, made by the test."""

    def __init__(self, topic: Topic) -> None:
        self.topic = topic
        self.options: SinkOptions = read_options(topic.options)
        self.job = WriteJob(f"test-{uuid.uuid4().hex[:8]}", "run 1", 0, topic.name)

    def task(self, task: int, *values: str, attempt: int = 0) -> TaskReport:
        rows = pa.RecordBatch.from_pydict({"value": pa.array(values, pa.string())})
        layout = resolve_layout(SCHEMA, self.options)
        return write_exactly_once(self.job, task, attempt, self.options.conf, layout, iter([rows]))

    def transaction_log(self) -> BrokerTransactionLog:
        return BrokerTransactionLog(self.options.conf, self.job.prefix)

    def decision(self, tasks: int, written: tuple[TaskTransaction, ...]) -> CommitDecision:
        return CommitDecision(self.job.batch, tasks, written, self.job.topic)

    def commit(self, *reports: TaskReport) -> None:
        protocol.commit(self.transaction_log(), self.job, reports)

    def next_batch(self) -> None:
        self.job = replace(self.job, batch=self.job.batch + 1)

    def restart(self) -> None:
        self.job = replace(self.job, run=f"{self.job.run}+")

    def open_transactions(self) -> list[PreparedTransaction]:
        return self.transaction_log().open_transactions()


@pytest.fixture
def query(topic: Topic) -> Query:
    return Query(topic)


def test_consecutive_batches_reuse_transactional_ids(query: Query) -> None:
    ids = set()
    for batch in range(3):
        reports = [query.task(0, f"{batch}a"), query.task(1, f"{batch}b"), query.task(2)]
        ids |= {
            report.transaction.prepared.transactional_id for report in reports if report.transaction
        }
        query.commit(*reports)
        query.next_batch()
    assert query.topic.values() == ["0a", "0b", "1a", "1b", "2a", "2b"]
    assert len(ids) == 2


def test_a_decided_batch_is_not_written_again(query: Query) -> None:
    query.commit(query.task(0, "a"), query.task(1, "b"))
    query.restart()
    again = [query.task(0, "a"), query.task(1, "b")]
    assert [report.transaction for report in again] == [None, None]
    query.commit(*again)
    assert query.topic.values() == ["a", "b"]


def test_the_next_driver_commits_the_transactions_of_a_decision(query: Query) -> None:
    reports = [query.task(0, "a"), query.task(1, "b")]
    transaction_log = query.transaction_log()
    transaction_log.complete = lambda *_, **__: (_ for _ in ()).throw(OSError("gone"))  # type: ignore
    with pytest.raises(OSError, match="gone"):
        protocol.commit(transaction_log, query.job, reports)
    query.restart()
    query.commit(query.task(0, "a"), query.task(1, "b"))
    assert query.topic.values() == ["a", "b"]


def test_an_abort_after_the_decision_commits_its_transactions(query: Query) -> None:
    report = query.task(0, "a")
    transaction_log = query.transaction_log()
    transaction_log.fence_other_drivers()
    transaction_log.decide(query.decision(1, (report.transaction,)))
    protocol.abort(query.transaction_log(), query.job, [report])
    assert query.topic.values() == ["a"]


def test_an_abort_leaves_no_open_transaction(query: Query) -> None:
    protocol.abort(query.transaction_log(), query.job, [query.task(0, "never")])
    query.restart()
    query.commit(query.task(0, "a"))
    assert query.topic.values() == ["a"]


def test_of_two_drivers_one_decides(query: Query) -> None:
    first, second = query.task(0, "a"), query.task(0, "a", attempt=1)
    transaction_log = query.transaction_log()
    transaction_log.fence_other_drivers()
    query.commit(second)
    with pytest.raises(KafkaException, match="_FENCED"):
        transaction_log.decide(query.decision(1, (first.transaction,)))
    query.commit(first)
    assert query.topic.values() == ["a"]


def test_open_transactions_of_dead_attempts_are_aborted(query: Query) -> None:
    query.task(0, "dead")
    report = query.task(0, "a", attempt=1)
    query.commit(report)
    assert len(protocol.abort_orphans(query.transaction_log())) == 1
    assert query.open_transactions() == []
    assert query.topic.values() == ["a"]


def test_a_batch_is_committed_even_if_orphans_cannot_be_listed(
    query: Query, monkeypatch: pytest.MonkeyPatch
) -> None:
    def loading(_: BrokerTransactionLog) -> list[PreparedTransaction]:
        raise KafkaException(KafkaError(KafkaError.COORDINATOR_LOAD_IN_PROGRESS))

    monkeypatch.setattr(BrokerTransactionLog, "open_transactions", loading)
    writer = stream_writer(query.topic.options, SCHEMA)
    writer.commit([TaskMessage(query.job, query.task(0, "a"))], query.job.batch)
    assert query.topic.values() == ["a"]


def test_a_version_without_rows_commits_the_one_before(query: Query) -> None:
    transaction_log = query.transaction_log()
    transaction_log.fence_other_drivers()
    transaction_log.decide(query.decision(1, (query.task(0, "a").transaction,)))
    query.next_batch()
    report = query.task(0, attempt=1)
    protocol.commit(transaction_log, replace(query.job, in_order=False), [report])
    assert protocol.abort_orphans(transaction_log) == []
    assert query.topic.values() == ["a"]


def test_transactions_of_another_query_are_not_aborted(query: Query) -> None:
    other = Query(query.topic)
    other.job = replace(other.job, prefix=f"{query.job.prefix}-2")
    report = other.task(0, "other")
    assert protocol.abort_orphans(query.transaction_log()) == []
    other.commit(report)
    assert query.topic.values() == ["other"]


def test_rows_that_timed_out_before_the_decision_fail_the_batch(query: Query) -> None:
    report = query.task(0, "late")
    assert report.transaction is not None
    query.transaction_log().fence([report.transaction.prepared])
    with pytest.raises(LostRowsError, match=r"kafka\.transaction\.timeout\.ms"):
        query.commit(report)
    query.restart()
    query.commit(query.task(0, "a"))
    assert query.topic.values() == ["a"]


def test_rows_that_timed_out_after_the_decision_are_written_again(query: Query) -> None:
    reports = [query.task(0, "a"), query.task(1, "b")]
    transaction_log = query.transaction_log()
    transaction_log.fence_other_drivers()
    written = tuple(report.transaction for report in reports if report.transaction)
    transaction_log.decide(query.decision(2, written))
    transaction_log.fence([written[0].prepared])
    with pytest.raises(LostRowsError, match="start the query again"):
        query.commit(*reports)
    query.restart()
    again = [query.task(0, "a"), query.task(1, "b")]
    assert [report.transaction is None for report in again] == [False, True]
    query.commit(*again)
    assert query.topic.values() == ["a", "b"]
    query.restart()
    query.commit(query.task(0, "a"), query.task(1, "b"))
    assert query.topic.values() == ["a", "b"]


def test_a_replay_with_other_rows_does_not_replace_lost_rows(query: Query) -> None:
    report = query.task(0, "a")
    transaction_log = query.transaction_log()
    transaction_log.fence_other_drivers()
    transaction_log.decide(query.decision(1, (report.transaction,)))
    transaction_log.fence([report.transaction.prepared])
    query.restart()
    with pytest.raises(LostRowsError, match="transactionalIdPrefix"):
        query.commit(query.task(0, "a", "b"))
    assert query.topic.values() == []


def test_two_tasks_never_share_a_transactional_id(
    query: Query, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = query.task(0, "a")
    monkeypatch.setattr(
        producer_pool, "_pools", LruCache(producer_pool.MAX_CACHED)
    )  # as if other queries had evicted it
    second = query.task(1, "b")
    query.commit(first, second)
    assert query.topic.values() == ["a", "b"]


def test_a_batch_has_more_tasks_than_producers_stay_connected(
    query: Query, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(producer_pool, "MAX_CONNECTED", 1)
    for batch in range(2):
        query.commit(*(query.task(task, f"{batch}{task}") for task in range(3)))
        query.next_batch()
    assert query.topic.values() == ["00", "01", "02", "10", "11", "12"]


def test_an_application_id_of_another_topic_is_rejected(query: Query) -> None:
    """Like two saves with one txnAppId: the second would otherwise count as written."""
    query.commit(query.task(0, "a"))
    other = Query(Topic.create(query.topic.bootstrap_servers))
    other.job = replace(query.job, run="another", topic=other.topic.name, in_order=False)
    with pytest.raises(ConflictingWriterError, match=f"{query.topic.name}.*txnAppId"):
        other.task(0, "a")
    late = replace(query.task(0, "a"), is_decided=True)
    with pytest.raises(ConflictingWriterError, match=f"{query.topic.name}.*txnAppId"):
        other.commit(late)


def test_a_checkpoint_that_was_set_back_is_an_error(query: Query) -> None:
    """Its batches would otherwise count as written."""
    query.next_batch()
    query.commit(query.task(0, "a"))
    query.restart()
    query.job = replace(query.job, batch=0)
    with pytest.raises(
        ConflictingWriterError, match=r"batch 0 comes after batch 1.*set back or copied"
    ):
        query.task(0, "b")


def test_a_driver_behind_a_newer_decision_aborts_its_transactions(query: Query) -> None:
    late = query.task(0, "late")
    query.job = replace(query.job, batch=1)
    query.commit(query.task(0, "a"))
    query.job = replace(query.job, batch=0)
    with pytest.raises(ConflictingWriterError):
        query.commit(late)
    assert query.topic.values() == ["a"]


def test_a_version_below_the_last_is_not_written(query: Query) -> None:
    query.job = replace(query.job, batch=1, in_order=False)
    query.commit(query.task(0, "a"))
    query.restart()
    query.job = replace(query.job, batch=0)
    query.commit(query.task(0, "b"))
    assert query.topic.values() == ["a"]


def test_a_save_behind_a_later_version_fails(query: Query) -> None:
    query.job = replace(query.job, in_order=False)
    report = query.task(0, "late")
    later = replace(query.job, batch=1)
    protocol.commit(query.transaction_log(), later, [replace(report, transaction=None)])
    with pytest.raises(ConflictingWriterError, match="saves with the same txnAppId"):
        query.commit(report)
    assert query.topic.values() == []


def test_decisions_are_made_again_after_their_topic_was_deleted(query: Query) -> None:
    query.commit(query.task(0, "a"))
    with AdminClient({"bootstrap.servers": query.topic.bootstrap_servers}) as admin:
        admin.delete_topics([DECISIONS])[DECISIONS].result(30)
    query.next_batch()
    query.commit(query.task(0, "b"))
    assert query.topic.values() == ["a", "b"]


def test_a_failed_task_aborts_its_transaction(query: Query) -> None:
    def rows() -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"value": ["x"]})
        raise OSError("the source is gone")

    layout = resolve_layout(SCHEMA, query.options)
    with pytest.raises(OSError, match="the source is gone"):
        write_exactly_once(query.job, 0, 0, query.options.conf, layout, rows())
    with AdminClient({"bootstrap.servers": query.topic.bootstrap_servers}) as admin:
        listed = admin.list_transactions(states=[TransactionState.ONGOING]).result(30)
    assert not any(listed.all().values())
