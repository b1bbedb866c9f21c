"""Produce (key 0): append record batches to the partitions that this broker leads.

v3 record batch format 2; v5 log start offset in the response; v7 zstd; v8 errors of single records;
v9 flexible; v10 the current leader beside NOT_LEADER_OR_FOLLOWER; v12 transactions that need no
AddPartitionsToTxn; v13 topics by id.
"""

from collections.abc import Coroutine
from typing import Any

from barnabas.coordinator.records import INTERNAL_TOPICS
from barnabas.log import LogAppendInfo, VerificationGuard
from barnabas.replication import Partition
from barnabas.security.authorizer.model import (
    AclOperation,
    ResourceType,
    transactional_id_resource,
)
from barnabas.server.authorization import denied
from barnabas.server.cluster_view import add_current_leaders
from barnabas.server.errors import error_of, response_or_error
from barnabas.server.request_context import RequestContext
from barnabas.server.topic_authorization import split_by_permission, split_ids_by_permission
from barnabas.server.transactions.produce_verification import (
    FIRST_VERSION_WITH_TOPIC_IDS,
    NotVerified,
    Verified,
    verify_batches,
)
from barnabas.server.uncommitted_appends import UncommittedAppends
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.leaders import LeaderIdAndEpoch, NodeEndpoint
from barnabas.wire.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from barnabas.wire.records.batch import CODEC_BITS, MAGIC, MAGIC_AT, TRANSACTIONAL_BIT
from barnabas.wire.records.compression import Codec
from barnabas.wire.records.validate import RejectedRecords, UnfitRequest

FIRST_VERSION_WITH_ZSTD = 7
FIRST_VERSION_WITH_LEADERS = 10

NO_RESPONSE = 0
ACKS = frozenset((-1, NO_RESPONSE, 1))
ADMIN_CLIENT_ID = "__admin_client"
"""The client that may write to internal topics, to repair them."""

_ATTRIBUTES_AT = 22  # the byte of a v2 batch with all attributes in use
_NO_RECORDS = memoryview(b"")
_NO_BATCHES_VERIFIED: Verified = {}

_WITHOUT_LOG_START_OFFSET = frozenset(
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
"""Errors whose responses have no log start offset, as in Kafka."""


def handle(
    request: ProduceRequest, context: RequestContext
) -> Coroutine[Any, None, ProduceResponse | None]:
    if context.broker.authorizer is None:
        return _append_all(request, context)
    return _append_allowed(request, context)


async def _append_allowed(
    request: ProduceRequest, context: RequestContext
) -> ProduceResponse | None:
    """Appends to the topics that the client may write to. The others are errors."""
    if _has_transactional_batches(request):
        if request.transactional_id is None:
            raise denied(ResourceType.TRANSACTIONAL_ID)
        context.require_allowed(
            AclOperation.WRITE, transactional_id_resource(request.transactional_id)
        )
    by_id = context.api_version >= FIRST_VERSION_WITH_TOPIC_IDS
    split = split_ids_by_permission if by_id else split_by_permission
    request.topic_data, rejected = split(request.topic_data, AclOperation.WRITE, context)
    if not rejected:
        return await _append_all(request, context)
    response = await response_or_error(_append_all(request, context), request, context)
    if response is None:
        raise denied(ResourceType.TOPIC)  # the client reads no response
    response.responses += [
        TopicProduceResponse(
            name=topic.name,
            topic_id=topic.topic_id,
            partition_responses=[
                PartitionProduceResponse(
                    index=data.index,
                    error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
                    base_offset=-1,
                )
                for data in topic.partition_data
            ],
        )
        for topic in rejected
    ]
    return response


def _has_transactional_batches(request: ProduceRequest) -> bool:
    for topic in request.topic_data:
        for data in topic.partition_data:
            records: Any = data.records
            if (
                records is not None
                and len(records) > _ATTRIBUTES_AT
                and records[MAGIC_AT] == MAGIC
                and records[_ATTRIBUTES_AT] & TRANSACTIONAL_BIT
            ):
                return True
    return False


async def _append_all(request: ProduceRequest, context: RequestContext) -> ProduceResponse | None:
    is_transactional = request.transactional_id is not None
    verified = await verify_batches(request, context) if is_transactional else _NO_BATCHES_VERIFIED
    appends = _Appends(request, context, verified)
    append = appends.append
    response = ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[
                    append(topic.topic_id if appends.by_id else topic.name, data)
                    for data in topic.partition_data
                ],
            )
            for topic in request.topic_data
        ]
    )
    uncommitted = appends.uncommitted
    if uncommitted is not None:
        if appends.failure is not None:
            uncommitted.recheck()
        if uncommitted.partitions:
            context.allows_next_produce = True
            await uncommitted.wait(context.broker.purgatory, request.timeout_ms)
            uncommitted.expire()
        for partition_response, outcome in uncommitted.errors:
            partition_response.error_code = outcome
            appends.failure = KafkaError(outcome)
    failure = appends.failure
    if request.acks == NO_RESPONSE:
        if failure is not None:
            raise failure  # the client reads no response, so the connection is closed
        return None
    if failure is not None and context.api_version >= FIRST_VERSION_WITH_LEADERS:
        set_current_leaders(response, context)
    return response


class _Appends:
    """The appends of one request, and those of them that are not yet committed."""

    __slots__ = (
        "_acks",
        "_context",
        "_find",
        "_metrics",
        "_now_ms",
        "_request",
        "_supports_zstd",
        "_verified",
        "by_id",
        "failure",
        "uncommitted",
    )

    def __init__(
        self, request: ProduceRequest, context: RequestContext, verified: Verified
    ) -> None:
        broker = context.broker
        self.by_id = context.api_version >= FIRST_VERSION_WITH_TOPIC_IDS
        self.failure: Exception | None = None
        self.uncommitted: UncommittedAppends[PartitionProduceResponse] | None = None
        """None if all of them are committed."""
        self._acks = request.acks
        self._context = context
        self._find: Any = broker.partitions.get if self.by_id else broker.partitions.get_by_name
        self._supports_zstd = context.api_version >= FIRST_VERSION_WITH_ZSTD
        self._metrics = broker.metrics.topic
        self._now_ms = broker.clock() if verified else context.now_ms
        self._request = request
        self._verified = verified

    def append(self, topic: str | bytes, data: PartitionProduceData) -> PartitionProduceResponse:
        partition: Partition | None = None
        try:
            partition = self._find(topic, data.index)
            records: Any = data.records
            size_bytes = len(records) if records is not None else 0
            is_batch = size_bytes > _ATTRIBUTES_AT and records[MAGIC_AT] == MAGIC
            attributes = records[_ATTRIBUTES_AT] if is_batch else 0
            verification = None
            if (
                attributes & TRANSACTIONAL_BIT
                or (attributes & CODEC_BITS >= Codec.ZSTD and not self._supports_zstd)
                or partition.topic in INTERNAL_TOPICS
                or self._acks not in ACKS
            ):
                verification = self._check_admission(partition, attributes)
            appended = partition.append(
                records if size_bytes else _NO_RECORDS,
                acks=self._acks,
                now_ms=self._now_ms,
                verification=verification,
            )
        except Exception as failure:
            self.failure = failure
            return failed_response(data.index, data.records, partition, failure, self._context)
        return self._appended(partition, appended, size_bytes)

    def _appended(
        self, partition: Partition, appended: LogAppendInfo, size_bytes: int
    ) -> PartitionProduceResponse:
        first_offset = appended.first_offset
        next_offset = appended.last_offset + 1
        metrics = self._metrics(partition.topic)
        metrics.produce_requests += 1
        metrics.bytes_in += size_bytes
        metrics.messages_in += next_offset - first_offset
        response = PartitionProduceResponse(
            index=partition.index,
            base_offset=first_offset,
            log_append_time_ms=appended.append_time_ms,
            log_start_offset=partition.log.log_start_offset,
        )
        if self._acks != NO_RESPONSE and not partition.is_committed(next_offset, self._acks):
            if self.uncommitted is None:
                self.uncommitted = UncommittedAppends(self._acks)
            self.uncommitted.add(partition, next_offset, response)
        return response

    def _check_admission(self, partition: Partition, attributes: int) -> VerificationGuard | None:
        """Raises an error if the batch must not be appended here.

        Returns the verification guard if the batch starts a transaction in the partition.
        """
        request = self._request
        if request.acks not in ACKS:
            raise KafkaError(
                ErrorCode.INVALID_REQUIRED_ACKS, f"acks is {request.acks}; use -1 (all), 0 or 1."
            )
        if partition.topic in INTERNAL_TOPICS and self._context.client_id != ADMIN_CLIENT_ID:
            raise KafkaError(
                ErrorCode.INVALID_TOPIC_EXCEPTION,
                f"{partition.topic} is written by the brokers only.",
            )
        if attributes & CODEC_BITS >= Codec.ZSTD and not self._supports_zstd:
            raise UnfitRequest(
                ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
                f"Produce v{self._context.api_version} does not support zstd; "
                f"use v{FIRST_VERSION_WITH_ZSTD} or later.",
            )
        if not attributes & TRANSACTIONAL_BIT:
            return None
        if request.transactional_id is None:
            raise KafkaError(
                ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
                "The batch is transactional, but the request has no transactional id.",
            )
        outcome = self._verified.get(partition)
        if isinstance(outcome, NotVerified):
            raise outcome
        return outcome


def failed_response(
    index: int,
    records: Any,
    partition: Partition | None,
    failure: Exception,
    context: RequestContext,
) -> PartitionProduceResponse:
    """Returns the response for a partition to which nothing was appended, and counts the failure.

    The partition is None if it is unknown.
    """
    code, message = error_of(failure, "Produce", context)
    response = PartitionProduceResponse(
        index=index, error_code=code, base_offset=-1, error_message=message or None
    )
    if partition is not None:
        metrics = context.broker.metrics.topic(partition.topic)
        metrics.failed_produce_requests += 1
        if code == ErrorCode.MESSAGE_TOO_LARGE and isinstance(records, memoryview):
            metrics.bytes_rejected += len(records)
        was_validated = not isinstance(failure, UnfitRequest | NotVerified)
        if was_validated and code not in _WITHOUT_LOG_START_OFFSET:
            response.log_start_offset = partition.log.log_start_offset
        if isinstance(failure, RejectedRecords):
            topic_partition = f"{partition.topic}-{partition.index}"
            response.error_message = failure.summary(topic_partition)
            response.record_errors = [
                BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=reason)
                for index, reason in failure.record_errors(topic_partition)
            ]
    return response


def set_current_leaders(response: ProduceResponse, context: RequestContext) -> None:
    """Sets the current leaders of partitions that this broker does not lead, from v10 on."""
    rejected = (
        (topic.name or topic.topic_id, partition.index, partition)
        for topic in response.responses
        for partition in topic.partition_responses
        if partition.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    )
    response.node_endpoints = add_current_leaders(rejected, context, LeaderIdAndEpoch, NodeEndpoint)
