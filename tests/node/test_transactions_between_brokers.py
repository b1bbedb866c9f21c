"""Transactions whose coordinator, partitions and group are on different brokers."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from tests.node.brokers import Cluster
from tests.replication.world import batch_of

from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.group_offsets import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from barnabas.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.wire.messages.producer_ids import InitProducerIdRequest
from barnabas.wire.messages.transaction_descriptions import DescribeTransactionsRequest
from barnabas.wire.messages.transaction_markers import WriteTxnMarkersRequest
from barnabas.wire.messages.transactions import AddPartitionsToTxnRequest, EndTxnRequest

STATE, OFFSETS = "__transaction_state", "__consumer_offsets"


@dataclass(frozen=True)
class Producer:
    producer_id: int
    epoch: int
    transactional_id: str = "x"


class TransactionCluster(Cluster):
    """Broker 1, and 4 after it, is the transaction coordinator; 2 and 3 lead one partition each.

    Broker 3 is the group coordinator, too.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, 4)
        self.create_topic(STATE, 1, replicas=(1, 4))
        self.create_topic("orders", 2, 3)
        self.create_topic(OFFSETS, 3)
        self.coordinator = 1

    def producer(self, transactional_id: str = "x") -> Producer:
        request = InitProducerIdRequest(
            transactional_id=transactional_id, transaction_timeout_ms=60_000
        )
        response = self.brokers[self.coordinator].send_request(request, 5)
        assert response.error_code == ErrorCode.NONE
        return Producer(response.producer_id, response.producer_epoch, transactional_id)

    def produce_request(self, producer: Producer, index: int, sequence: int = 0) -> ProduceRequest:
        batch = batch_of(
            b"a record",
            now_ms=self.loop.now_ms,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            base_sequence=sequence,
            transactional=True,
        )
        return ProduceRequest(
            transactional_id=producer.transactional_id,
            acks=-1,
            timeout_ms=1_000,
            topic_data=[
                TopicProduceData(
                    name="orders",
                    partition_data=[PartitionProduceData(index=index, records=batch)],
                )
            ],
        )

    def produce(self, producer: Producer, index: int, sequence: int = 0) -> ErrorCode:
        """Sends Produce version 12 to the leader of the partition."""
        request = self.produce_request(producer, index, sequence)
        response = self.brokers[self.leader("orders", index)].send_request(request, 12)
        return ErrorCode(response.responses[0].partition_responses[0].error_code)

    def end(self, producer: Producer, *, committed: bool = True) -> tuple[ErrorCode, Producer]:
        request = EndTxnRequest(
            transactional_id=producer.transactional_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            committed=committed,
        )
        response = self.brokers[self.coordinator].send_request(request, 5)
        after = replace(producer, producer_id=response.producer_id, epoch=response.producer_epoch)
        return ErrorCode(response.error_code), after

    def commit_offset(self, producer: Producer, offset: int) -> ErrorCode:
        partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        request = TxnOffsetCommitRequest(
            transactional_id=producer.transactional_id,
            group_id="g",
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            topics=[TxnOffsetCommitRequestTopic(name="orders", partitions=[partition])],
        )
        response = self.brokers[self.leader(OFFSETS, 0)].send_request(request, 5)
        return ErrorCode(response.topics[0].partitions[0].error_code)

    def committed_offset(self) -> int:
        group = OffsetFetchRequestGroup(
            group_id="g",
            topics=[OffsetFetchRequestTopics(name="orders", partition_indexes=[0])],
        )
        response = self.brokers[self.leader(OFFSETS, 0)].send_request(
            OffsetFetchRequest(groups=[group]), 9
        )
        offset: int = response.groups[0].topics[0].partitions[0].committed_offset
        return offset

    def leader(self, topic: str, index: int) -> int:
        state = self.image.topics.by_name(topic)
        assert state is not None
        return state.partitions[index].leader

    def stable(self, index: int) -> int:
        """Returns the last stable offset."""
        return (
            self.brokers[self.leader("orders", index)].partition("orders", index).last_stable_offset
        )

    def state(self, transactional_id: str = "x") -> str:
        request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
        response = self.brokers[self.coordinator].send_request(request, 0)
        state: str = response.transaction_states[0].transaction_state
        return state

    def sent(self, kind: type) -> list[tuple[int, int, Any]]:
        return [sent for sent in self.network.sent if isinstance(sent[2], kind)]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[TransactionCluster]:
    cluster = TransactionCluster(tmp_path)
    yield cluster
    cluster.close()


def test_a_transaction_ends_on_every_broker_with_its_partitions(
    cluster: TransactionCluster,
) -> None:
    producer = cluster.producer()
    assert [cluster.produce(producer, index) for index in (0, 1)] == [ErrorCode.NONE] * 2
    assert cluster.commit_offset(producer, 7) is ErrorCode.NONE
    assert (cluster.stable(0), cluster.stable(1), cluster.committed_offset()) == (0, 0, -1)
    code, following = cluster.end(producer)
    cluster.run()
    assert (code, cluster.state()) == (ErrorCode.NONE, "CompleteCommit")
    assert (cluster.stable(0), cluster.stable(1), cluster.committed_offset()) == (2, 2, 7)
    assert cluster.produce(following, 0) is ErrorCode.NONE
    assert cluster.end(following, committed=False)[0] is ErrorCode.NONE
    cluster.run()
    assert cluster.stable(0) == 4


def test_the_markers_of_all_partitions_of_a_broker_share_a_request(
    cluster: TransactionCluster,
) -> None:
    producer = cluster.producer()
    for index in (0, 1):
        cluster.produce(producer, index)
    cluster.commit_offset(producer, 7)
    cluster.end(producer)
    cluster.run()
    markers = {
        to: sorted(topic.name for marker in request.markers for topic in marker.topics)
        for _, to, request in cluster.sent(WriteTxnMarkersRequest)
    }
    assert markers == {2: ["orders"], 3: [OFFSETS, "orders"]}
    assert len(cluster.sent(WriteTxnMarkersRequest)) == 2


def test_markers_are_batched_while_a_request_is_in_flight(cluster: TransactionCluster) -> None:
    producers = [cluster.producer(f"x{number}") for number in range(5)]
    for producer in producers:
        cluster.produce(producer, 0)
    cluster.network.hold()
    for producer in producers:
        cluster.end(producer)
    cluster.network.release()
    cluster.run()
    assert [len(request.markers) for _, _, request in cluster.sent(WriteTxnMarkersRequest)] == [
        1,
        4,
    ]
    assert all(
        cluster.state(producer.transactional_id) == "CompleteCommit" for producer in producers
    )


def test_the_next_transaction_waits_while_markers_are_in_flight(
    cluster: TransactionCluster,
) -> None:
    producer = cluster.producer()
    cluster.produce(producer, 0)
    cluster.network.hold()
    code, following = cluster.end(producer)
    assert (code, cluster.state()) == (ErrorCode.NONE, "PrepareCommit")
    responses: list[Any] = []
    request = cluster.produce_request(following, 0)
    cluster.brokers[2].start_request(request, 12, responses.append)
    cluster.run(10)
    assert not responses
    cluster.network.release()
    cluster.run(200)
    assert responses[0].responses[0].partition_responses[0].error_code == ErrorCode.NONE
    assert cluster.stable(0) == 2


def test_transactional_offsets_wait_for_the_markers_of_the_previous_transaction(
    cluster: TransactionCluster,
) -> None:
    producer = cluster.producer()
    cluster.produce(producer, 0)
    cluster.network.isolated.add(2)
    _, following = cluster.end(producer)
    assert cluster.commit_offset(following, 7) is ErrorCode.CONCURRENT_TRANSACTIONS
    cluster.network.isolated.clear()
    cluster.run(40_000)
    assert cluster.commit_offset(following, 7) is ErrorCode.NONE


def test_a_lost_marker_request_is_retried(cluster: TransactionCluster) -> None:
    producer = cluster.producer()
    cluster.produce(producer, 0)
    cluster.network.isolated.add(2)
    cluster.end(producer)
    cluster.run(1_000)
    assert cluster.state() == "PrepareCommit"
    cluster.network.isolated.clear()
    cluster.run(31_000)
    assert (cluster.state(), cluster.stable(0)) == ("CompleteCommit", 2)


def test_a_marker_is_sent_to_the_new_leader_of_its_partition_at_once(
    cluster: TransactionCluster,
) -> None:
    cluster.create_topic("kept", 2, replicas=(2, 3))
    producer = cluster.producer()
    partition = cluster.brokers[2].partition("kept")
    request = cluster.produce_request(producer, 0)
    request.topic_data[0].name = "kept"
    cluster.brokers[2].send_request(request, 12)
    cluster.run(50)
    cluster.network.isolated.add(2)
    cluster.end(producer)
    cluster.run(100)
    assert cluster.state() == "PrepareCommit"
    cluster.fence(2)
    cluster.lead("kept", 0, 3, isr=(3,))
    cluster.run(100)
    assert cluster.state() == "CompleteCommit"
    assert cluster.brokers[3].partition("kept").last_stable_offset == 2
    assert partition.log.log_end_offset == 1


def test_a_marker_is_retried_until_the_new_leader_has_its_metadata(
    cluster: TransactionCluster,
) -> None:
    cluster.create_topic("kept", 2, replicas=(2, 3))
    producer = cluster.producer()
    request = cluster.produce_request(producer, 0)
    request.topic_data[0].name = "kept"
    cluster.brokers[2].send_request(request, 12)
    cluster.run(50)
    cluster.lagging[3] = []
    cluster.lead("kept", 0, 3, isr=(3,))
    cluster.end(producer)
    cluster.run(100)
    assert cluster.state() == "PrepareCommit"
    cluster.catch_up(3)
    cluster.run(1_000)
    assert cluster.state() == "CompleteCommit"


def test_a_transaction_ends_without_a_deleted_topic_that_had_no_leader(
    cluster: TransactionCluster,
) -> None:
    producer = cluster.producer()
    cluster.produce(producer, 0)
    cluster.lead("orders", 0, -1)
    cluster.end(producer)
    cluster.run(5_000)
    assert cluster.state() == "PrepareCommit"
    cluster.delete_topic("orders")
    cluster.run(1_000)
    assert cluster.state() == "CompleteCommit"


def test_the_next_coordinator_completes_a_prepared_transaction(cluster: TransactionCluster) -> None:
    producer = cluster.producer()
    cluster.produce(producer, 0)
    cluster.network.hold()
    code, following = cluster.end(producer)
    assert code is ErrorCode.NONE
    cluster.run(50)
    late = cluster.network.held
    cluster.network.held = None
    cluster.coordinator = 4
    cluster.lead(STATE, 0, 4, isr=(4,))
    cluster.run(100)
    assert (cluster.state(), cluster.stable(0)) == ("CompleteCommit", 2)
    assert cluster.produce(following, 0) is ErrorCode.NONE
    for arrive in late or ():
        arrive()  # markers of the old coordinator do not end the next transaction
    cluster.run(100)
    assert cluster.stable(0) == 2
    assert cluster.end(following)[0] is ErrorCode.NONE
    cluster.run()
    assert cluster.stable(0) == 4


def test_an_isolated_coordinator_ends_no_transaction(cluster: TransactionCluster) -> None:
    producer = cluster.producer()
    cluster.produce(producer, 0)
    cluster.run(50)
    cluster.network.isolated.add(1)
    cluster.lagging[1] = []
    cluster.lead(STATE, 0, 4, isr=(4,))
    assert cluster.end(producer)[0] is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert cluster.end(producer)[0] is ErrorCode.CONCURRENT_TRANSACTIONS
    cluster.run(10_000)
    cluster.coordinator = 4
    assert cluster.stable(0) == 0
    code, _ = cluster.end(producer, committed=False)
    assert code is ErrorCode.NONE
    cluster.network.isolated.clear()
    cluster.catch_up(1)
    cluster.run(40_000)
    assert (cluster.state(), cluster.stable(0)) == ("CompleteAbort", 2)
    fetched = cluster.brokers[2].partition("orders").fetch(0, 1 << 20, isolation=1)
    assert fetched.aborted_transactions == [(producer.producer_id, 0)]


def test_a_coordinator_that_leads_again_loads_the_transactions_of_the_one_between(
    cluster: TransactionCluster,
) -> None:
    producer = cluster.producer()
    cluster.produce(producer, 0)
    cluster.run(50)
    cluster.coordinator = 4
    cluster.lead(STATE, 0, 4)
    cluster.end(producer)
    cluster.run(100)
    assert cluster.state() == "CompleteCommit"
    cluster.coordinator = 1
    cluster.lead(STATE, 0, 1)
    cluster.run(50)
    assert cluster.state() == "CompleteCommit"


# Verification


def test_verifications_of_one_transactional_id_do_not_share_a_request(
    cluster: TransactionCluster,
) -> None:
    producers = [cluster.producer(name) for name in "xyz"]
    cluster.network.hold()
    responses: list[Any] = []
    for producer in producers:
        cluster.brokers[2].start_request(cluster.produce_request(producer, 0), 12, responses.append)
    cluster.brokers[2].start_request(cluster.produce_request(producers[1], 0), 12, responses.append)
    cluster.network.release()
    cluster.run()
    verified = [
        [transaction.transactional_id for transaction in request.transactions]
        for _, to, request in cluster.sent(AddPartitionsToTxnRequest)
    ]
    assert verified == [["x"], ["y", "z"], ["y"]]
    assert len(responses) == 4


@pytest.mark.parametrize("version", [11, 12])
def test_a_produce_without_a_coordinator_gets_a_retriable_error(
    cluster: TransactionCluster, version: int
) -> None:
    producer = cluster.producer()
    cluster.lead(STATE, 0, -1)
    response = cluster.brokers[2].send_request(cluster.produce_request(producer, 0), version)
    partition = response.responses[0].partition_responses[0]
    assert partition.error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    cluster.lead(STATE, 0, 1)
    assert cluster.produce(producer, 0) is ErrorCode.NONE


def test_requests_get_a_retriable_error_while_the_coordinator_is_down_or_moves(
    cluster: TransactionCluster,
) -> None:
    producer = cluster.producer()
    cluster.run(50)
    cluster.network.stopped.add(1)
    assert cluster.produce(producer, 0) is ErrorCode.NOT_ENOUGH_REPLICAS
    assert cluster.commit_offset(producer, 7) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    cluster.lagging[3] = []
    cluster.coordinator = 4
    cluster.lead(STATE, 0, 4, isr=(4,))
    cluster.network.stopped.clear()
    assert cluster.commit_offset(producer, 7) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    cluster.catch_up(3)
    assert cluster.commit_offset(producer, 7) is ErrorCode.NONE
    assert cluster.produce(producer, 0) is ErrorCode.NONE


def test_a_pending_verification_fails_at_once_when_the_coordinator_is_fenced(
    cluster: TransactionCluster,
) -> None:
    producer = cluster.producer()
    cluster.run(50)
    cluster.network.isolated.add(1)
    responses: list[Any] = []
    cluster.brokers[2].start_request(cluster.produce_request(producer, 0), 12, responses.append)
    cluster.run(100)
    assert not responses
    cluster.fence(1)
    cluster.run(1)
    partition = responses[0].responses[0].partition_responses[0]
    assert partition.error_code == ErrorCode.NOT_ENOUGH_REPLICAS


def test_a_producer_that_was_replaced_is_fenced_at_the_partition(
    cluster: TransactionCluster,
) -> None:
    zombie = cluster.producer()
    cluster.producer()
    assert cluster.produce(zombie, 0) is ErrorCode.INVALID_PRODUCER_EPOCH
