"""Produce (key 0): append record batches to the partitions this broker leads.

v3 record batch format 2; v5 log start offset in the answer; v7 zstd; v8 errors record by record;
v9 flexible; v10 the current leader beside NOT_LEADER_OR_FOLLOWER; v12 transactions that need no
AddPartitionsToTxn; v13 topics by id.
"""

from collections.abc import Hashable
from typing import Any

from barnabas.coordinator.topics import INTERNAL_TOPICS
from barnabas.log import LogAppendInfo, VerificationGuard
from barnabas.replication import Partition
from barnabas.server.cluster_view import add_current_leaders
from barnabas.server.errors import error_of
from barnabas.server.request_context import RequestContext
from barnabas.server.transactions.produce_verification import (
    FIRST_VERSION_WITH_TOPIC_IDS,
    NotVerified,
    Verified,
    verify_batches,
)
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from barnabas.wire.records.batch import CODEC_BITS, MAGIC, MAGIC_AT, TRANSACTIONAL_BIT
from barnabas.wire.records.compression import Codec
from barnabas.wire.records.validate import InvalidRecords, UnfitRequest

FIRST_VERSION_WITH_ZSTD = 7
FIRST_VERSION_WITH_LEADERS = 10

NO_ANSWER = 0
ACKS = frozenset((-1, NO_ANSWER, 1))
ADMIN_CLIENT_ID = "__admin_client"
"""The one client that may write to internal topics, to mend them."""

_ATTRIBUTES_AT = 22  # the byte of a v2 batch that holds all the attributes there are
_NO_RECORDS = memoryview(b"")
_NOTHING_VERIFIED: Verified = {}

_SAYING_NOTHING_OF_THE_LOG = frozenset(
    (
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.INVALID_REQUIRED_ACKS,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    )
)
"""Errors that come without the log start offset, in Kafka's answers as in ours."""


async def handle(request: ProduceRequest, context: RequestContext) -> ProduceResponse | None:
    is_transactional = request.transactional_id is not None
    verified = await verify_batches(request, context) if is_transactional else _NOTHING_VERIFIED
    appends = _Appends(request, context, verified)
    append = appends.append
    response = ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[
                    append(topic.topic_id if appends.by_id else topic.name, wanted)
                    for wanted in topic.partition_data
                ],
            )
            for topic in request.topic_data
        ]
    )
    if appends.owed and appends.failure is not None:
        appends.look_again()
    if appends.owed:
        purgatory = context.broker.purgatory
        context.allows_next_produce = True
        await purgatory.delay(appends.owed, request.timeout_ms, appends.take_note, "Produce")
        appends.give_up()
    failure = appends.failure
    if request.acks == NO_ANSWER:
        if failure is not None:
            raise failure  # nobody reads an answer, so the connection is closed
        return None
    if failure is not None and context.api_version >= FIRST_VERSION_WITH_LEADERS:
        _name_leaders(response, context)
    return response


class _Appends:
    """The appends of one request, and which of them are not yet acknowledged."""

    __slots__ = (
        "_acks",
        "_context",
        "_find",
        "_knows_zstd",
        "_metrics",
        "_now_ms",
        "_request",
        "_verified",
        "by_id",
        "failure",
        "owed",
    )

    def __init__(
        self, request: ProduceRequest, context: RequestContext, verified: Verified
    ) -> None:
        broker = context.broker
        self.by_id = context.api_version >= FIRST_VERSION_WITH_TOPIC_IDS
        self.failure: Exception | None = None
        self.owed: dict[Partition, tuple[int, list[PartitionProduceResponse]]] = {}
        """By partition the offset to wait for, and the answers that wait for it."""
        self._acks = request.acks
        self._context = context
        self._find: Any = broker.partitions.get if self.by_id else broker.partitions.get_by_name
        self._knows_zstd = context.api_version >= FIRST_VERSION_WITH_ZSTD
        self._metrics = broker.metrics.topic
        self._now_ms = broker.clock() if verified else context.now_ms
        self._request = request
        self._verified = verified

    def append(self, topic: str | bytes, wanted: PartitionProduceData) -> PartitionProduceResponse:
        partition: Partition | None = None
        try:
            partition = self._find(topic, wanted.index)
            records: Any = wanted.records
            size_bytes = len(records) if records is not None else 0
            is_batch = size_bytes > _ATTRIBUTES_AT and records[MAGIC_AT] == MAGIC
            attributes = records[_ATTRIBUTES_AT] if is_batch else 0
            verification = None
            if (
                attributes & TRANSACTIONAL_BIT
                or (attributes & CODEC_BITS >= Codec.ZSTD and not self._knows_zstd)
                or partition.topic in INTERNAL_TOPICS
                or self._acks not in ACKS
            ):
                verification = self._admit(partition, attributes)
            appended = partition.append(
                records if size_bytes else _NO_RECORDS,
                acks=self._acks,
                now_ms=self._now_ms,
                verification=verification,
            )
        except Exception as failure:
            self.failure = failure
            return self._refused(wanted, partition, failure)
        return self._appended(partition, appended, size_bytes)

    def take_note(self, partition: Hashable, _: int) -> bool:
        """Whether, now that this partition moved on, everything can be answered."""
        assert isinstance(partition, Partition)
        waiting = self.owed.get(partition)
        if waiting is not None:
            next_offset, answers = waiting
            outcome = partition.commit_result(next_offset, self._acks)
            if outcome is not None:
                del self.owed[partition]
                self._settle(answers, outcome)
        return not self.owed

    def look_again(self) -> None:
        """A later append may have ended the disk of an earlier one, before that one waited."""
        for partition in tuple(self.owed):
            self.take_note(partition, 0)

    def give_up(self) -> None:
        """The wait is over: what has not been promised by now was not kept."""
        for _, answers in self.owed.values():
            self._settle(answers, ErrorCode.REQUEST_TIMED_OUT)

    def _settle(self, answers: list[PartitionProduceResponse], outcome: ErrorCode) -> None:
        if outcome is not ErrorCode.NONE:
            self.failure = KafkaError(outcome)
            for answer in answers:
                answer.error_code = outcome

    def _appended(
        self, partition: Partition, appended: LogAppendInfo, size_bytes: int
    ) -> PartitionProduceResponse:
        first_offset = appended.first_offset
        next_offset = appended.last_offset + 1
        metrics = self._metrics(partition.topic)
        metrics.produce_requests += 1
        metrics.bytes_in += size_bytes
        metrics.messages_in += next_offset - first_offset
        answer = PartitionProduceResponse(
            index=partition.index,
            base_offset=first_offset,
            log_append_time_ms=appended.append_time_ms,
            log_start_offset=partition.log.log_start_offset,
        )
        if self._acks != NO_ANSWER and not partition.is_committed(next_offset, self._acks):
            _, waiting = self.owed.get(partition, (0, []))
            self.owed[partition] = next_offset, [*waiting, answer]
        return answer

    def _admit(self, partition: Partition, attributes: int) -> VerificationGuard | None:
        """Refuse what must not be appended here, whatever the batch is like; if it begins a
        transaction, what that was verified by."""
        request = self._request
        if request.acks not in ACKS:
            raise KafkaError(
                ErrorCode.INVALID_REQUIRED_ACKS, f"acks is {request.acks}; use -1 (all), 0 or 1."
            )
        if partition.topic in INTERNAL_TOPICS and self._context.client_id != ADMIN_CLIENT_ID:
            raise KafkaError(
                ErrorCode.INVALID_TOPIC_EXCEPTION, f"{partition.topic} is for the broker to write."
            )
        if attributes & CODEC_BITS >= Codec.ZSTD and not self._knows_zstd:
            raise UnfitRequest(
                ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
                f"Produce v{self._context.api_version} has no zstd; "
                f"v{FIRST_VERSION_WITH_ZSTD} is the first that has.",
            )
        if not attributes & TRANSACTIONAL_BIT:
            return None
        if request.transactional_id is None:
            raise KafkaError(
                ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
                "The batch is transactional, the request has no transactional id.",
            )
        outcome = self._verified.get(partition)
        if isinstance(outcome, NotVerified):
            raise outcome
        return outcome

    def _refused(
        self, wanted: PartitionProduceData, partition: Partition | None, failure: Exception
    ) -> PartitionProduceResponse:
        code, message = error_of(failure, "Produce", self._context)
        answer = PartitionProduceResponse(
            index=wanted.index, error_code=code, base_offset=-1, error_message=message or None
        )
        if partition is not None:
            metrics = self._metrics(partition.topic)
            metrics.failed_produce_requests += 1
            if code == ErrorCode.MESSAGE_TOO_LARGE and isinstance(wanted.records, memoryview):
                metrics.bytes_rejected += len(wanted.records)
            looked_at = not isinstance(failure, UnfitRequest | NotVerified)
            if looked_at and code not in _SAYING_NOTHING_OF_THE_LOG:
                answer.log_start_offset = partition.log.log_start_offset
        if isinstance(failure, InvalidRecords):
            answer.record_errors = [
                BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=reason)
                for index, reason in failure.record_errors
            ]
        return answer


def _name_leaders(response: ProduceResponse, context: RequestContext) -> None:
    """Tell who leads the partitions that this broker does not."""
    refused = (
        (topic.name or topic.topic_id, answer.index, answer)
        for topic in response.responses
        for answer in topic.partition_responses
        if answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    )
    response.node_endpoints = add_current_leaders(refused, context, LeaderIdAndEpoch, NodeEndpoint)
