"""Transactions whose coordinator, partitions and group are on different brokers."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from tests.node.brokers import Cluster
from tests.replication.world import batch_of

from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from barnabas.wire.messages.describe_transactions import DescribeTransactionsRequest
from barnabas.wire.messages.end_txn import EndTxnRequest
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest
from barnabas.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from barnabas.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from barnabas.wire.messages.write_txn_markers import WriteTxnMarkersRequest

STATE, OFFSETS = "__transaction_state", "__consumer_offsets"


@dataclass(frozen=True)
class Producer:
    producer_id: int
    epoch: int
    transactional_id: str = "x"


class House(Cluster):
    """Broker 1 coordinates the transactions, or 4 after it; 2 and 3 lead a partition each, 3 keeps
    the groups."""

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
        answer = self.members[self.coordinator].ask(request, 5)
        assert answer.error_code == ErrorCode.NONE
        return Producer(answer.producer_id, answer.producer_epoch, transactional_id)

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
        """As a client of version 12 does, at the partition's leader."""
        request = self.produce_request(producer, index, sequence)
        answer = self.members[self.leader("orders", index)].ask(request, 12)
        return ErrorCode(answer.responses[0].partition_responses[0].error_code)

    def end(self, producer: Producer, *, committed: bool = True) -> tuple[ErrorCode, Producer]:
        request = EndTxnRequest(
            transactional_id=producer.transactional_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            committed=committed,
        )
        answer = self.members[self.coordinator].ask(request, 5)
        after = replace(producer, producer_id=answer.producer_id, epoch=answer.producer_epoch)
        return ErrorCode(answer.error_code), after

    def commit_offset(self, producer: Producer, offset: int) -> ErrorCode:
        place = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        request = TxnOffsetCommitRequest(
            transactional_id=producer.transactional_id,
            group_id="g",
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            topics=[TxnOffsetCommitRequestTopic(name="orders", partitions=[place])],
        )
        answer = self.members[self.leader(OFFSETS, 0)].ask(request, 5)
        return ErrorCode(answer.topics[0].partitions[0].error_code)

    def committed_offset(self) -> int:
        group = OffsetFetchRequestGroup(
            group_id="g",
            topics=[OffsetFetchRequestTopics(name="orders", partition_indexes=[0])],
        )
        answer = self.members[self.leader(OFFSETS, 0)].ask(OffsetFetchRequest(groups=[group]), 9)
        offset: int = answer.groups[0].topics[0].partitions[0].committed_offset
        return offset

    def leader(self, topic: str, index: int) -> int:
        state = self.image.topics.by_name(topic)
        assert state is not None
        return state.partitions[index].leader

    def stable(self, index: int) -> int:
        """The offset up to which readers of committed records get."""
        return (
            self.members[self.leader("orders", index)].partition("orders", index).last_stable_offset
        )

    def state(self, transactional_id: str = "x") -> str:
        request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
        answer = self.members[self.coordinator].ask(request, 0)
        told: str = answer.transaction_states[0].transaction_state
        return told

    def sent(self, kind: type) -> list[tuple[int, int, Any]]:
        return [each for each in self.network.sent if isinstance(each[2], kind)]


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    house = House(tmp_path)
    yield house
    house.close()


def test_a_transaction_ends_wherever_its_partitions_are(house: House) -> None:
    producer = house.producer()
    assert [house.produce(producer, index) for index in (0, 1)] == [ErrorCode.NONE] * 2
    assert house.commit_offset(producer, 7) is ErrorCode.NONE
    assert (house.stable(0), house.stable(1), house.committed_offset()) == (0, 0, -1)
    code, following = house.end(producer)
    house.run()
    assert (code, house.state()) == (ErrorCode.NONE, "CompleteCommit")
    assert (house.stable(0), house.stable(1), house.committed_offset()) == (2, 2, 7)
    assert house.produce(following, 0) is ErrorCode.NONE
    assert house.end(following, committed=False)[0] is ErrorCode.NONE
    house.run()
    assert house.stable(0) == 4


def test_each_broker_is_told_once_of_all_its_partitions(house: House) -> None:
    producer = house.producer()
    for index in (0, 1):
        house.produce(producer, index)
    house.commit_offset(producer, 7)
    house.end(producer)
    house.run()
    told = {
        to: sorted(topic.name for marker in request.markers for topic in marker.topics)
        for _, to, request in house.sent(WriteTxnMarkersRequest)
    }
    assert told == {2: ["orders"], 3: [OFFSETS, "orders"]}
    assert len(house.sent(WriteTxnMarkersRequest)) == 2


def test_while_one_request_is_under_way_the_next_markers_gather(house: House) -> None:
    producers = [house.producer(f"x{number}") for number in range(5)]
    for producer in producers:
        house.produce(producer, 0)
    house.network.hold()
    for producer in producers:
        house.end(producer)
    house.network.release()
    house.run()
    assert [len(each[2].markers) for each in house.sent(WriteTxnMarkersRequest)] == [1, 4]
    assert all(house.state(each.transactional_id) == "CompleteCommit" for each in producers)


def test_while_markers_are_on_their_way_the_next_transaction_waits(house: House) -> None:
    producer = house.producer()
    house.produce(producer, 0)
    house.network.hold()
    code, following = house.end(producer)
    assert (code, house.state()) == (ErrorCode.NONE, "PrepareCommit")
    answers: list[Any] = []
    request = house.produce_request(following, 0)
    house.members[2].begin(request, 12, answers.append)
    house.run(10)
    assert not answers
    house.network.release()
    house.run(200)
    assert answers[0].responses[0].partition_responses[0].error_code == ErrorCode.NONE
    assert house.stable(0) == 2


def test_offsets_wait_for_the_transaction_before_as_records_do(house: House) -> None:
    producer = house.producer()
    house.produce(producer, 0)
    house.network.cut_off.add(2)
    _, following = house.end(producer)
    assert house.commit_offset(following, 7) is ErrorCode.CONCURRENT_TRANSACTIONS
    house.network.cut_off.clear()
    house.run(40_000)
    assert house.commit_offset(following, 7) is ErrorCode.NONE


def test_a_marker_that_is_lost_is_sent_again(house: House) -> None:
    producer = house.producer()
    house.produce(producer, 0)
    house.network.cut_off.add(2)
    house.end(producer)
    house.run(1_000)
    assert house.state() == "PrepareCommit"
    house.network.cut_off.clear()
    house.run(31_000)
    assert (house.state(), house.stable(0)) == ("CompleteCommit", 2)


def test_a_marker_follows_its_partition_to_another_leader_at_once(house: House) -> None:
    house.create_topic("kept", 2, replicas=(2, 3))
    producer = house.producer()
    partition = house.members[2].partition("kept")
    request = house.produce_request(producer, 0)
    request.topic_data[0].name = "kept"
    house.members[2].ask(request, 12)
    house.run(50)
    house.network.cut_off.add(2)
    house.end(producer)
    house.run(100)
    assert house.state() == "PrepareCommit"
    house.fence(2)
    house.lead("kept", 0, 3, isr=(3,))
    house.run(100)
    assert house.state() == "CompleteCommit"
    assert house.members[3].partition("kept").last_stable_offset == 2
    assert partition.log.log_end_offset == 1


def test_a_leader_that_has_not_heard_of_it_yet_is_asked_until_it_has(house: House) -> None:
    house.create_topic("kept", 2, replicas=(2, 3))
    producer = house.producer()
    request = house.produce_request(producer, 0)
    request.topic_data[0].name = "kept"
    house.members[2].ask(request, 12)
    house.run(50)
    house.behind[3] = []
    house.lead("kept", 0, 3, isr=(3,))
    house.end(producer)
    house.run(100)
    assert house.state() == "PrepareCommit"
    house.catch_up(3)
    house.run(1_000)
    assert house.state() == "CompleteCommit"


def test_a_topic_deleted_with_its_leader_away_is_not_waited_for(house: House) -> None:
    producer = house.producer()
    house.produce(producer, 0)
    house.lead("orders", 0, -1)
    house.end(producer)
    house.run(5_000)
    assert house.state() == "PrepareCommit"
    house.delete_topic("orders")
    house.run(1_000)
    assert house.state() == "CompleteCommit"


def test_the_next_coordinator_ends_what_the_one_before_decided(house: House) -> None:
    producer = house.producer()
    house.produce(producer, 0)
    house.network.hold()
    code, following = house.end(producer)
    assert code is ErrorCode.NONE
    house.run(50)
    late = house.network.held
    house.network.held = None
    house.coordinator = 4
    house.lead(STATE, 0, 4, isr=(4,))
    house.run(100)
    assert (house.state(), house.stable(0)) == ("CompleteCommit", 2)
    assert house.produce(following, 0) is ErrorCode.NONE
    for arrive in late or ():
        arrive()  # what the old coordinator sent ends nothing of the next transaction
    house.run(100)
    assert house.stable(0) == 2
    assert house.end(following)[0] is ErrorCode.NONE
    house.run()
    assert house.stable(0) == 4


def test_a_coordinator_cut_off_decides_nothing(house: House) -> None:
    producer = house.producer()
    house.produce(producer, 0)
    house.run(50)
    house.network.cut_off.add(1)
    house.behind[1] = []
    house.lead(STATE, 0, 4, isr=(4,))
    assert house.end(producer)[0] is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert house.end(producer)[0] is ErrorCode.CONCURRENT_TRANSACTIONS
    house.run(10_000)
    house.coordinator = 4
    assert house.stable(0) == 0
    code, _ = house.end(producer, committed=False)
    assert code is ErrorCode.NONE
    house.network.cut_off.clear()
    house.catch_up(1)
    house.run(40_000)
    assert (house.state(), house.stable(0)) == ("CompleteAbort", 2)
    fetched = house.members[2].partition("orders").fetch(0, 1 << 20, isolation=1)
    assert fetched.aborted_transactions == [(producer.producer_id, 0)]


def test_who_leads_again_loads_what_others_wrote_meanwhile(house: House) -> None:
    producer = house.producer()
    house.produce(producer, 0)
    house.run(50)
    house.coordinator = 4
    house.lead(STATE, 0, 4)
    house.end(producer)
    house.run(100)
    assert house.state() == "CompleteCommit"
    house.coordinator = 1
    house.lead(STATE, 0, 1)
    house.run(50)
    assert house.state() == "CompleteCommit"


# Verification


def test_questions_about_one_transaction_do_not_share_a_request(house: House) -> None:
    producers = [house.producer(name) for name in "xyz"]
    house.network.hold()
    answers: list[Any] = []
    for producer in producers:
        house.members[2].begin(house.produce_request(producer, 0), 12, answers.append)
    house.members[2].begin(house.produce_request(producers[1], 0), 12, answers.append)
    house.network.release()
    house.run()
    asked = [
        [each.transactional_id for each in request.transactions]
        for _, to, request in house.sent(AddPartitionsToTxnRequest)
    ]
    assert asked == [["x"], ["y", "z"], ["y"]]
    assert len(answers) == 4


@pytest.mark.parametrize("version", [11, 12])
def test_without_a_coordinator_producers_try_again(house: House, version: int) -> None:
    producer = house.producer()
    house.lead(STATE, 0, -1)
    answer = house.members[2].ask(house.produce_request(producer, 0), version)
    told = answer.responses[0].partition_responses[0]
    assert told.error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    house.lead(STATE, 0, 1)
    assert house.produce(producer, 0) is (ErrorCode.NONE)


def test_a_coordinator_that_died_or_moved_is_asked_again_by_the_client(house: House) -> None:
    producer = house.producer()
    house.run(50)
    house.network.dead.add(1)
    assert house.produce(producer, 0) is ErrorCode.NOT_ENOUGH_REPLICAS
    assert house.commit_offset(producer, 7) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    house.behind[3] = []
    house.coordinator = 4
    house.lead(STATE, 0, 4, isr=(4,))
    house.network.dead.clear()
    assert house.commit_offset(producer, 7) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    house.catch_up(3)
    assert house.commit_offset(producer, 7) is ErrorCode.NONE
    assert house.produce(producer, 0) is ErrorCode.NONE


def test_nobody_waits_for_a_coordinator_that_was_fenced(house: House) -> None:
    producer = house.producer()
    house.run(50)
    house.network.cut_off.add(1)
    answers: list[Any] = []
    house.members[2].begin(house.produce_request(producer, 0), 12, answers.append)
    house.run(100)
    assert not answers
    house.fence(1)
    house.run(1)
    told = answers[0].responses[0].partition_responses[0]
    assert told.error_code == ErrorCode.NOT_ENOUGH_REPLICAS


def test_one_that_was_replaced_is_fenced_at_the_partition(house: House) -> None:
    zombie = house.producer()
    house.producer()
    assert house.produce(zombie, 0) is ErrorCode.INVALID_PRODUCER_EPOCH
