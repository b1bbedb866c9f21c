"""The conversations in `recorded/`, held with our coordinator: its responses are Kafka's."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.coordinator.transactions.harness import TransactionHarness
from tests.coordinator.transactions.scenario import LAST_EPOCH, Conversation, Coordinator

from barnabas.coordinator.decision import CoordinatorDecision
from barnabas.coordinator.transactions.records import TRANSACTION_RECORDS, to_record
from barnabas.wire.messages.producer_ids import InitProducerIdRequest
from barnabas.wire.messages.transaction_descriptions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    ListTransactionsRequest,
)
from barnabas.wire.messages.transaction_records import TransactionLogValue
from barnabas.wire.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
)
from barnabas.wire.schema import Message

RECORDED = sorted((Path(__file__).parent / "recorded").glob("*.txt"))


class Barnabas(Coordinator):
    def __init__(self) -> None:
        self._harness = TransactionHarness(
            transaction_abort_timed_out_transaction_cleanup_interval_ms=100
        )

    def send(self, request: Message, version: int) -> Any:
        coordinator = self._harness.coordinator
        methods: dict[type[Message], Callable[[], Any]] = {
            InitProducerIdRequest: lambda: coordinator.init_producer_id(request, version),  # type: ignore[arg-type]
            AddPartitionsToTxnRequest: lambda: coordinator.add_partitions(request, version),  # type: ignore[arg-type]
            AddOffsetsToTxnRequest: lambda: coordinator.add_offsets(request, version),  # type: ignore[arg-type]
            EndTxnRequest: lambda: coordinator.end(request, version),  # type: ignore[arg-type]
            DescribeTransactionsRequest: lambda: coordinator.describe(
                request.transactional_ids  # type: ignore[attr-defined]
            ).map(lambda states: DescribeTransactionsResponse(transaction_states=states)),
            ListTransactionsRequest: lambda: coordinator.list(request),  # type: ignore[arg-type]
        }
        self.wait(1)
        return methods[type(request)]().result()

    def settle(self, transactional_id: str) -> None:
        """All partitions are local: what ends has ended."""

    def wait(self, delay_ms: int) -> None:
        self._harness.advance(delay_ms)

    def exhaust(self, transactional_id: str) -> None:
        state = self._harness.transactions
        worn = replace(state.by_id[transactional_id], producer_epoch=LAST_EPOCH)
        version = self._harness.image.features["transaction.version"]
        shard = self._harness.coordinator.runtime.shard(0)
        shard.write(lambda _: CoordinatorDecision([to_record(worn, version)], None))

    def finalize(self, transaction_version: int) -> None:
        self._harness.image.features["transaction.version"] = transaction_version

    def records(self, transactional_id: str) -> list[tuple[int, TransactionLogValue | None]]:
        return [
            (record.version, record.value)
            for record in self._harness.log.records(TRANSACTION_RECORDS)
            if record.key.transactional_id == transactional_id
        ]


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_a_recorded_conversation_has_kafkas_responses(path: Path) -> None:
    assert list(Conversation(Barnabas()).held(path)) == path.read_text().splitlines()
