"""Conversations with a transaction coordinator, recorded with the responses of the real Kafka.

A file in `recorded/` is a list of commands, each a line that begins with `>`, and under each what
came back. `record.py` holds the conversations with Kafka and records the responses;
`test_recorded_with_kafka.py` holds them with ours. Producer ids are named P0, P1... as they appear.

    > init v5 id [id and epoch] [timeout=ms]        InitProducerId
    > add v3 id P0 0 t-0 t-1                        AddPartitionsToTxn
    > verify v5 id P0 0 t-0                         the same, to verify alone
    > offsets v3 id P0 0 group                      AddOffsetsToTxn
    > end v5 id P0 0 commit|abort                   EndTxn, and its markers
    > describe id                                   DescribeTransactions
    > list v2 [states=A,B] [producers=P0] [pattern=...] [duration=ms]
    > exhaust id                                    raise the epoch to the last but one
    > wait ms
    > version 2                                     finalize this transaction.version
    > log id [count]                                its latest records in `__transaction_state`
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.producer_ids import InitProducerIdRequest
from barnabas.wire.messages.transaction_descriptions import (
    DescribeTransactionsRequest,
    ListTransactionsRequest,
)
from barnabas.wire.messages.transaction_records import TransactionLogValue
from barnabas.wire.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
    EndTxnRequest,
)
from barnabas.wire.schema import Message

TIMEOUT_MS = 60_000
LAST_EPOCH = 32_766
"""The highest that is given out: one more is kept to fence its owner with."""

STATES = ["Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort"]


class Coordinator(ABC):
    """The coordinator that a conversation is held with."""

    @abstractmethod
    def send(self, request: Message, version: int) -> Any: ...

    @abstractmethod
    def settle(self, transactional_id: str) -> None:
        """Wait until a transaction that ends has ended."""

    @abstractmethod
    def wait(self, delay_ms: int) -> None: ...

    @abstractmethod
    def exhaust(self, transactional_id: str) -> None: ...

    @abstractmethod
    def finalize(self, transaction_version: int) -> None: ...

    @abstractmethod
    def records(self, transactional_id: str) -> list[tuple[int, TransactionLogValue | None]]:
        """Versions and values of all there are, oldest first."""


class Conversation:
    """One file, held with one coordinator."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator
        self._names: dict[int, str] = {}
        self._ids: dict[str, int] = {}

    def held(self, path: Path) -> Iterator[str]:
        """The lines of the file with the responses of this coordinator under its commands."""
        for line in path.read_text().splitlines():
            if line.startswith(">"):
                yield line
                verb, *words = line[1:].split()
                yield from getattr(self, f"_{verb}")(*words)
            elif line.startswith("#") or not line:
                yield line

    def _init(self, version: str, transactional_id: str, *words: str) -> Iterator[str]:
        timeout_ms = TIMEOUT_MS
        if words and words[-1].startswith("timeout="):
            timeout_ms = int(words[-1].partition("=")[2])
            words = words[:-1]
        request = InitProducerIdRequest(
            transactional_id="" if transactional_id == "empty" else transactional_id,
            transaction_timeout_ms=timeout_ms,
        )
        if words:
            request.producer_id, request.producer_epoch = self._identity(*words)
        response = self._send(request, version)
        self._coordinator.settle(transactional_id)
        yield self._format(response)

    def _add(self, version: str, *words: str) -> Iterator[str]:
        yield from self._partitions(version, False, *words)

    def _verify(self, version: str, *words: str) -> Iterator[str]:
        yield from self._partitions(version, True, *words)

    def _partitions(
        self, version: str, verify: bool, transactional_id: str, name: str, epoch: str, *words: str
    ) -> Iterator[str]:
        producer_id, producer_epoch = self._identity(name, epoch)
        topics: dict[str, list[int]] = {}
        for word in words:
            topic, _, index = word.rpartition("-")
            topics.setdefault(topic, []).append(int(index))
        requests = [
            AddPartitionsToTxnTopic(name=topic, partitions=indexes)
            for topic, indexes in topics.items()
        ]
        if int(version[1:]) < 4:
            request = AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=transactional_id,
                v3_and_below_producer_id=producer_id,
                v3_and_below_producer_epoch=producer_epoch,
                v3_and_below_topics=requests,
            )
        else:
            transaction = AddPartitionsToTxnTransaction(
                transactional_id=transactional_id,
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                verify_only=verify,
                topics=requests,
            )
            request = AddPartitionsToTxnRequest(transactions=[transaction])
        response = self._send(request, version)
        results = response.results_by_topic_v3_and_below
        for transaction in response.results_by_transaction:
            results = transaction.topic_results
        yield " ".join(
            sorted(
                f"{topic.name}-{each.partition_index}={_code(each.partition_error_code)}"
                for topic in results
                for each in topic.results_by_partition
            )
        )

    def _offsets(
        self, version: str, transactional_id: str, name: str, epoch: str, group_id: str
    ) -> Iterator[str]:
        producer_id, producer_epoch = self._identity(name, epoch)
        request = AddOffsetsToTxnRequest(
            transactional_id=transactional_id,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            group_id=group_id,
        )
        yield _code(self._send(request, version).error_code)

    def _end(
        self, version: str, transactional_id: str, name: str, epoch: str, how: str
    ) -> Iterator[str]:
        producer_id, producer_epoch = self._identity(name, epoch)
        request = EndTxnRequest(
            transactional_id="" if transactional_id == "empty" else transactional_id,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            committed=how == "commit",
        )
        response = self._send(request, version)
        self._coordinator.settle(transactional_id)
        yield self._format(response) if int(version[1:]) >= 5 else _code(response.error_code)

    def _describe(self, transactional_id: str) -> Iterator[str]:
        name = "" if transactional_id == "empty" else transactional_id
        response = self._send(DescribeTransactionsRequest(transactional_ids=[name]), "v0")
        for each in response.transaction_states:
            partitions = sorted(
                f"{topic.topic}-{index}" for topic in each.topics for index in topic.partitions
            )
            if each.error_code:
                yield _code(each.error_code)
                continue
            yield (
                f"{_code(each.error_code)} {each.transaction_state} "
                f"{self._name(each.producer_id)} {each.producer_epoch} "
                f"timeout={each.transaction_timeout_ms} "
                f"start={_moment(each.transaction_start_time_ms)} {' '.join(partitions)}"
            ).rstrip()

    def _list(self, version: str, *words: str) -> Iterator[str]:
        filters = dict(word.split("=", 1) for word in words)
        request = ListTransactionsRequest(
            state_filters=filters["states"].split(",") if "states" in filters else [],
            producer_id_filters=[
                self._ids[name] for name in filters.get("producers", "").split(",") if name
            ],
        )
        if "duration" in filters:
            request.duration_filter = int(filters["duration"])
        if "pattern" in filters:
            request.transactional_id_pattern = filters["pattern"]
        response = self._send(request, version)
        yield f"{_code(response.error_code)} unknown={','.join(response.unknown_state_filters)}"
        for each in sorted(response.transaction_states, key=lambda state: state.transactional_id):
            yield (
                f"{each.transactional_id} {self._name(each.producer_id)} {each.transaction_state}"
            )

    def _exhaust(self, transactional_id: str) -> Iterator[str]:
        self._coordinator.exhaust(transactional_id)
        yield from self._describe(transactional_id)

    def _wait(self, delay_ms: str) -> Iterator[str]:
        self._coordinator.wait(int(delay_ms))
        yield from ()

    def _version(self, transaction_version: str) -> Iterator[str]:
        self._coordinator.finalize(int(transaction_version))
        yield from ()

    def _log(self, transactional_id: str, count: str = "99") -> Iterator[str]:
        for version, value in self._coordinator.records(transactional_id)[-int(count) :]:
            yield "tombstone" if value is None else self._record(version, value)

    def _record(self, version: int, value: TransactionLogValue) -> str:
        partitions = value.transaction_partitions
        response = (
            "null"
            if partitions is None
            else ",".join(
                sorted(
                    f"{each.topic}-{index}" for each in partitions for index in each.partition_ids
                )
            )
        )
        return (
            f"v{version} {STATES[value.transaction_status]} "
            f"{self._name(value.producer_id)} {value.producer_epoch} "
            f"previous={self._name(value.previous_producer_id)} "
            f"next={self._name(value.next_producer_id)},{value.next_producer_epoch} "
            f"timeout={value.transaction_timeout_ms} "
            f"start={_moment(value.transaction_start_timestamp_ms)} "
            f"client={value.client_transaction_version} partitions={response}"
        )

    def _send(self, request: Message, version: str) -> Any:
        return self._coordinator.send(request, int(version[1:]))

    def _format(self, response: Any) -> str:
        name = self._name(response.producer_id)
        return f"{_code(response.error_code)} {name} {response.producer_epoch}"

    def _identity(self, name: str, epoch: str) -> tuple[int, int]:
        return self._ids[name] if name.startswith("P") else int(name), int(epoch)

    def _name(self, producer_id: int) -> str:
        if producer_id < 0:
            return str(producer_id)
        if producer_id not in self._names:
            name = f"P{len(self._names)}"
            self._names[producer_id] = name
            self._ids[name] = producer_id
        return self._names[producer_id]


def _code(code: int) -> str:
    return ErrorCode.of(code).name


def _moment(timestamp_ms: int) -> str:
    return "set" if timestamp_ms > 0 else str(timestamp_ms)
