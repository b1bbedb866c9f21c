"""Records the responses of the real Kafka in `recorded/`.

PYTHONPATH=. python -m tests.coordinator.transactions.record [NAME...]
"""

import struct
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.conformance.brokers import PeerBroker
from tests.conformance.side_by_side.sides import Side
from tests.coordinator.transactions.scenario import LAST_EPOCH, Conversation, Coordinator
from tests.wait import wait_until

from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.producer_ids import InitProducerIdRequest
from barnabas.wire.messages.topics import CreatableTopic, CreateTopicsRequest
from barnabas.wire.messages.transaction_descriptions import DescribeTransactionsRequest
from barnabas.wire.messages.transaction_records import TransactionLogKey, TransactionLogValue
from barnabas.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from barnabas.wire.records.batch import iterate_batches
from barnabas.wire.records.read import read_records
from barnabas.wire.schema import Message

SETTINGS = {
    "transaction.state.log.num.partitions": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
}
NOT_YET = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)


class Kafka(Coordinator):
    def __init__(self, broker: PeerBroker) -> None:
        self._broker = broker
        self._side = Side("kafka", broker)
        topics = [CreatableTopic(name="t", num_partitions=4, replication_factor=1)]
        self.send(CreateTopicsRequest(topics=topics, timeout_ms=5_000), 5)
        for key_type in (0, 1):  # both internal topics are created by the first request
            request = FindCoordinatorRequest(coordinator_keys=["first"], key_type=key_type)
            wait_until(lambda request=request: self._finds(request), "a coordinator is found")  # type: ignore[misc]

    def _finds(self, request: FindCoordinatorRequest) -> bool:
        return bool(self.send(request, 4).coordinators[0].error_code == ErrorCode.NONE)

    def send(self, request: Message, version: int) -> Any:
        while True:
            response: Any = self._side.send(request, version)
            if getattr(response, "error_code", ErrorCode.NONE) not in NOT_YET:
                return response
            time.sleep(0.05)

    def settle(self, transactional_id: str) -> None:
        request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
        while self.send(request, 0).transaction_states[0].transaction_state.startswith("Prepare"):
            time.sleep(0.01)
        time.sleep(0.02)  # the last record is committed a moment later

    def wait(self, delay_ms: int) -> None:
        time.sleep(delay_ms / 1000)

    def exhaust(self, transactional_id: str) -> None:
        request = InitProducerIdRequest(
            transactional_id=transactional_id, transaction_timeout_ms=60_000
        )
        while (response := self.send(request, 5)).producer_epoch < LAST_EPOCH:
            assert response.error_code == ErrorCode.NONE, response

    def finalize(self, transaction_version: int) -> None:
        for upgrade_type in (1, 2):  # whichever it is
            update = FeatureUpdateKey(
                feature="transaction.version",
                max_version_level=transaction_version,
                upgrade_type=upgrade_type,
            )
            self.send(UpdateFeaturesRequest(timeout_ms=5_000, feature_updates=[update]), 1)
        time.sleep(0.5)

    def records(self, transactional_id: str) -> list[tuple[int, TransactionLogValue | None]]:
        actual: list[tuple[int, TransactionLogValue | None]] = []
        for segment in sorted(self._broker.directory.glob("**/__transaction_state-0/*.log")):
            contents = segment.read_bytes()
            for position, _ in iterate_batches(contents):
                for record in read_records(contents, position):
                    assert record.key is not None
                    key, _ = TransactionLogKey.reader(0)(record.key, 2)
                    if key.transactional_id == transactional_id:
                        actual.append(decoded(record.value))
        return actual


def decoded(value: bytes | None) -> tuple[int, TransactionLogValue | None]:
    if value is None:
        return 0, None
    (version,) = struct.unpack_from(">h", value)
    return version, TransactionLogValue.reader(version)(value, 2)[0]


def main(*names: str) -> None:
    with TemporaryDirectory() as directory:
        broker = PeerBroker(Path(directory), settings=SETTINGS)
        broker.start()
        try:
            kafka = Kafka(broker)
            for path in sorted((Path(__file__).parent / "recorded").glob("*.txt")):
                if not names or path.stem in names:
                    path.write_text("\n".join(Conversation(kafka).held(path)) + "\n")
        finally:
            broker.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
